# SPDX-License-Identifier: Apache-2.0
"""CPU kernels as callables, and the threads that run them."""
