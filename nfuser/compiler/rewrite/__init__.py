# SPDX-License-Identifier: Apache-2.0
"""Passes from a concrete fusion to a better one."""
