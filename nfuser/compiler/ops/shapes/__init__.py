# SPDX-License-Identifier: Apache-2.0
"""Verbs that make, move and view elements."""
