# SPDX-License-Identifier: Apache-2.0
"""Random numbers that are made where they are used.

``default_rng(seed)`` gives a `Generator` with the methods of NumPy's; ``of(key)`` the
same distributions without a state. In a fused function both draw inside its kernels.
"""

from __future__ import annotations

from nfuser.random.generator import Generator, default_rng
from nfuser.random.keys import fold_in, key, of, split

__all__ = ["Generator", "default_rng", "fold_in", "key", "of", "split"]
