# SPDX-License-Identifier: Apache-2.0
"""Parts of neural networks that NumPy has no words for."""

# What is dropped has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.dtypes import as_dtype
from nfuser.errors import DTypeError
from nfuser.frontend.fuse.decorator import fuse
from nfuser.random.distributions.words import probability
from nfuser.trace import current_tracer

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.random.methods import Distributions

__all__ = ["dropout"]


def dropout(x: Any, p: Any = 0.5, *, rng: Distributions, training: bool = True) -> Any:
    """Return ``x`` with each element zero with probability ``p``, else over ``1 - p``.

    A probability of 1 gives zeros. Without ``training`` it is ``x``, and nothing is
    drawn.
    """
    probability("p", p)
    if not training:
        return x
    if current_tracer() is None:
        return _at_once()(x, p, rng)
    return _dropped(x, p, rng)


@cache
def _at_once() -> Callable[..., Any]:
    made = fuse(_dropped)
    made.is_of_nfuser = True
    return made


def _dropped(x: Any, p: Any, rng: Distributions) -> Any:
    if as_dtype(x.dtype).kind not in "fc":
        message = f"write x.astype(np.float32): dropout takes floats, found {x.dtype}"
        raise DTypeError(message)
    kept = rng.random(x.shape, np.float32) >= p
    return np.where(kept, x / (1 - p), 0)
