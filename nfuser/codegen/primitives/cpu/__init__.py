# SPDX-License-Identifier: Apache-2.0
"""The primitives that emitted CPU kernels call, by name.

All are Numba intrinsics whose bodies are straight-line LLVM IR, so a loop over array
elements that calls them is vectorised. Only `floor_divide`, `remainder` and `fmod`
of floats call the C library (for its `fmod`), `gcd` is a loop of its own, one element
at a time, and `first_like` one over vectors. Compile kernels without fast-math flags:
compensated sums would be optimised away.
"""

# Numba carries no types.
# pyright: reportUnsupportedDunderAll=false

from __future__ import annotations

from typing import Any

from nfuser.codegen.primitives.cpu import cast as cast
from nfuser.codegen.primitives.cpu import elementwise as elementwise
from nfuser.codegen.primitives.cpu import memory as memory
from nfuser.codegen.primitives.cpu import random_words as random_words
from nfuser.codegen.primitives.cpu import search as search
from nfuser.codegen.primitives.cpu import target as target
from nfuser.codegen.primitives.cpu.define import PRIMITIVES, TYPES

_NAMES: dict[str, Any] = TYPES | PRIMITIVES
_NAMES["boolean"] = _NAMES.pop("bool")
__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    """Return the primitive, or the type, that kernels call ``name``."""
    if name not in _NAMES:
        raise AttributeError(name)
    return _NAMES[name]
