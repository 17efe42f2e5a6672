# SPDX-License-Identifier: Apache-2.0
"""Statements of host programs, and what must hold of them."""
