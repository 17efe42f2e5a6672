# SPDX-License-Identifier: Apache-2.0
"""Of a gradient that raises, what was written before is what the plain function writes.

Arguments that a derivative is taken of are never written.
"""

# What is differentiated has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import MutationError

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 4  # the first traces, the third is native
SEEN = np.zeros(2)


def _counted(x: Any, state: Any, is_wrong: bool) -> Any:
    """Write into an argument and into an array from outside, then raise or return."""
    state[:] = state + x
    SEEN[0] += 1
    if is_wrong:
        raise ValueError("no loss")
    return (x * x).sum()


WAYS: dict[str, Callable[..., Any]] = {
    "grad": nfuser.grad(_counted),
    "value_and_grad": nfuser.value_and_grad(_counted),
    "fused": nfuser.fuse(lambda x, s, bad: nfuser.grad(_counted)(x, s, bad)),
    "jvp": lambda x, s, bad: nfuser.jvp(lambda x: _counted(x, s, bad), (x,), (x,)),
    "hessian": nfuser.hessian(_counted),
}


@pytest.mark.parametrize("is_wrong", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_writes_before_it_happen_once_in_each_call(way: str, is_wrong: bool) -> None:
    SEEN[:] = 0
    x, state = np.arange(3.0), np.zeros(3)
    for call in range(1, CALLS + 1):
        if is_wrong:
            with pytest.raises(ValueError, match="no loss"):
                WAYS[way](x, state, is_wrong)
        else:
            WAYS[way](x, state, is_wrong)
        np.testing.assert_array_equal(state, call * np.arange(3.0))
        assert SEEN[0] == call
    np.testing.assert_array_equal(x, np.arange(3.0))


def test_statements_before_a_gradient_that_raises_are_carried_out() -> None:
    def wrong(x: Any) -> Any:
        raise KeyError("wrong")

    @nfuser.fuse
    def step(w: Any) -> None:
        w -= 1
        w -= nfuser.grad(wrong)(w)

    for _ in range(CALLS):
        w = np.arange(3.0)
        with pytest.raises(KeyError, match="wrong"):
            step(w)
        np.testing.assert_array_equal(w, np.arange(3.0) - 1)


def test_an_index_out_of_range_leaves_the_argument() -> None:
    @nfuser.fuse
    def step(w: Any, i: Any) -> None:
        w -= nfuser.grad(lambda w: (w[i] ** 2).sum())(w)

    for _ in range(CALLS):
        w = np.arange(3.0)
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            step(w, np.array([0, 9]))
        np.testing.assert_array_equal(w, np.arange(3.0))


def test_what_is_differentiated_is_refused_to_be_written() -> None:
    def wrong(x: Any) -> Any:
        x[0] = 5
        raise ValueError("too late")

    for _ in range(CALLS):
        x = np.arange(3.0)
        with pytest.raises(MutationError, match=r"assign to x\.copy\(\)"):
            nfuser.grad(wrong)(x)
        np.testing.assert_array_equal(x, np.arange(3.0))
