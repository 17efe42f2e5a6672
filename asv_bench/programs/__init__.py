# SPDX-License-Identifier: Apache-2.0
"""Twelve NumPy programs of stencils, sweeps, masks and sums; the decorator fuses them.

``python -m asv_bench.programs`` prints how fast they are beside NumPy, Numba's parallel
loops, JAX and torch.compile; with ``ocean_step``, that of a body of 600 operations.
"""
