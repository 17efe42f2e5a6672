# SPDX-License-Identifier: Apache-2.0
"""All that knows Numba and LLVM."""
