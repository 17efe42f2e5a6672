# SPDX-License-Identifier: Apache-2.0
"""Loops and branches of plain Python, as functions written anew have them."""
