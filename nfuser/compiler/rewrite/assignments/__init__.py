# SPDX-License-Identifier: Apache-2.0
"""Where values of assignments are read, and in which memory they are written."""
