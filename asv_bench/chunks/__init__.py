# SPDX-License-Identifier: Apache-2.0
"""Dask arrays: fused, as plain dask.array, and by hand over Numba's functions."""
