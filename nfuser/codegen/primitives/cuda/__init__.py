# SPDX-License-Identifier: Apache-2.0
"""The CUDA primitives by name: what emitted kernels import.

The same names exist for the CPU and for the interpreter; each is defined in the module
of its noun.
"""

# Numba carries no types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnsupportedDunderAll=false

from __future__ import annotations

from typing import Any

from numba.cuda import types

from nfuser.codegen.primitives.cuda import arithmetic as arithmetic
from nfuser.codegen.primitives.cuda import convert as convert
from nfuser.codegen.primitives.cuda import exchange as exchange
from nfuser.codegen.primitives.cuda import math as math
from nfuser.codegen.primitives.cuda import memory as memory
from nfuser.codegen.primitives.cuda import packets as packets
from nfuser.codegen.primitives.cuda import random_words as random_words
from nfuser.codegen.primitives.cuda.define import PRIMITIVES

_INTEGERS = (f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64))
_TYPES = {n: getattr(types, n) for n in ("boolean", "float32", "float64", *_INTEGERS)}
_NAMES: dict[str, Any] = _TYPES | PRIMITIVES
__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    """Return the primitive, or the type, that kernels call ``name``."""
    if name not in _NAMES:
        raise AttributeError(name)
    return _NAMES[name]
