# SPDX-License-Identifier: Apache-2.0
"""The verb of loops, and which elements their turns read and write."""
