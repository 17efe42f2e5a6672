# SPDX-License-Identifier: Apache-2.0
"""Matrices: products, norms, diagonals, what is solved."""
