# SPDX-License-Identifier: Apache-2.0
"""Gradients by the meaning of their fusions, and by central differences."""

# What is differentiated has no static type.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from nfuser.compiler.trace import call_of, trace_function
from nfuser.compiler.trace.call import tree
from tests.hand_built import sizes_of
from tests.oracle.fusion_meaning import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable

STEP = 1e-6


def meaning(fused: nfuser.Fused[..., Any], *xs: Any) -> Any:
    """Return what the fusion of a call means, run by NumPy: no kernel is compiled."""
    trace = trace_function(fused._function, call_of(xs))
    taken = trace.captured.read(xs)
    assert taken is not None
    arrays = [*tree.flatten(tuple(xs))[0], *taken]
    found = Evaluator(arrays, sizes_of(*(np.shape(x) for x in arrays)))
    return tree.unflatten(trace.output_tree, found.run(trace.fusion))


def gradients(function: Callable[..., Any], *xs: Any) -> tuple[Any, ...]:
    """Return the gradient in each argument."""
    everywhere = tuple(range(len(xs)))
    return meaning(nfuser.grad(function, argnums=everywhere), *xs)


def differences(
    function: Callable[..., Any], *xs: Any, step: float = STEP
) -> list[Any]:
    """Return central differences of the function of f64 arrays in each argument.

    Those of two steps leave out what a step's own length adds, to the third order.
    """
    found: list[Any] = []
    for place, x in enumerate(xs):
        slope = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            sides: list[Any] = []
            for by in (step, -step, 2 * step, -2 * step):
                moved = x.copy()
                moved[at] += by
                given = (*xs[:place], moved, *xs[place + 1 :])
                with np.errstate(all="ignore"):
                    sides.append(function(*given))
            near, far = sides[0] - sides[1], sides[2] - sides[3]
            slope[at] = (8 * near - far) / (12 * step)
        found.append(slope)
    return found


def agree(function: Callable[..., Any], *xs: Any, rtol: float = 1e-5) -> None:
    """Assert that the gradients are what central differences say."""
    for found, wanted in zip(
        gradients(function, *xs), differences(function, *xs), strict=True
    ):
        scale = 1 + np.abs(wanted).max(initial=0)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=rtol * scale)


def numbers(*shape: int, seed: int = 0) -> Any:
    """Return numbers between 0.1 and 1, no two of which are nearly the same."""
    count = int(np.prod(shape))
    places = np.random.default_rng(seed).permutation(count)
    return (0.1 + 0.75 * (places + 0.5) / count + seed / 99).reshape(shape)
