# SPDX-License-Identifier: Apache-2.0
"""Fifty functions in three modules that call each other, in their users' words."""
