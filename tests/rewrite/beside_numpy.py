# SPDX-License-Identifier: Apache-2.0
"""What a function returns, and does to its arguments, beside NumPy."""

# What a traced function is given has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable


def assert_as_numpy(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    """Call a function of two arrays twice, fused and as it is, on the same numbers."""
    rng = np.random.default_rng(7)
    theirs = [rng.random(shape) for _ in range(2)]
    ours = [x.copy() for x in theirs]
    fused = nfuser.fuse(function)
    for _ in range(2):  # arguments are others in the second call
        wanted, found = _listed(function(*theirs)), _listed(fused(*ours))
        for one, other in zip((*found, *ours), (*wanted, *theirs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def _listed(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)
