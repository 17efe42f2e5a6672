# SPDX-License-Identifier: Apache-2.0
"""From host program to host program."""
