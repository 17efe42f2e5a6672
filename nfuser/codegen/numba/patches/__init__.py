# SPDX-License-Identifier: Apache-2.0
"""Numba made quicker for kernels: its own functions, replaced by name."""
