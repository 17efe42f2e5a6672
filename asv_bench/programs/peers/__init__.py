# SPDX-License-Identifier: Apache-2.0
"""The twelve programs by hand: Numba's loops, JAX's updates, torch's compiled steps.

Each module has functions ``numba``, ``jax`` and ``torch`` that return a function of the
program's own arguments. That of JAX returns what the program writes, and then what it
returns; the others write their arguments.
"""
