# SPDX-License-Identifier: Apache-2.0
"""What a loop cannot carry, or do, is refused by name, with what was found."""

# Carried values have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from nfuser import lax
from nfuser.errors import (
    ArgumentError,
    DTypeError,
    MutationError,
    RangeError,
    ShapeError,
    TraceError,
    UnsupportedError,
)

F = np.ones((5, 7), np.float32)
RNG = nfuser.random.default_rng(0)


def written_from_outside(x: Any) -> Any:
    total = xp.zeros(7)

    def step(i: Any, s: Any) -> Any:
        nonlocal total
        total += x[i]
        return s

    lax.fori_loop(0, 3, step, x)
    return total


def read_afterwards(x: Any) -> Any:
    seen: dict[str, Any] = {}

    def step(_: Any, s: Any) -> Any:
        seen["last"] = s * 2
        return s

    return lax.fori_loop(0, 3, step, x) + seen.pop("last")


def written_after_a_choice(x: Any) -> Any:
    one, other = np.zeros(7, np.float32), np.ones(7, np.float32)
    chosen = one if x[0, 0] > 0 else other
    one[0] = 5  # which may be what was chosen
    return chosen + x


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "another dtype": (
        lambda x: lax.fori_loop(0, 3, lambda _, s: s * np.float64(2), x),
        DTypeError,
        "start init with x.astype.*expected f32 with 2 axes, found f64",
    ),
    "another dtype in a nest": (
        lambda x: lax.fori_loop(
            0, 3, lambda _, s: {"a": s["a"], "b": s["b"] * 1j}, {"a": x, "b": x}
        ),
        DTypeError,
        r"start init\['b'\] with .*expected f32 .*, found c64",
    ),
    "another size": (
        lambda x: lax.fori_loop(0, 3, lambda _, s: s[1:], x),
        ShapeError,
        r"expected \(5,7\), found \(4,7\)",
    ),
    "a size that stretches": (
        lambda x: lax.fori_loop(0, 3, lambda _, s: s + x, x[:1]),
        ShapeError,
        r"expected \(1,7\), found \(5,7\)",
    ),
    "more axes": (
        lambda x: lax.fori_loop(0, 3, lambda _, s: s + x, 0.0),
        ShapeError,
        "np.zeros.*expected 0, found 2",
    ),
    "another structure": (
        lambda x: lax.fori_loop(0, 3, lambda _, s: {"b": s["a"]}, {"a": x}),
        ArgumentError,
        r"expected \{'a': \*\}, found \{'b': \*\}",
    ),
    "a string": (
        lambda x: lax.fori_loop(0, 3, lambda _, s: s, (x, "x")),
        ArgumentError,
        r"leave init\[1\] out .*found str",
    ),
    "a number of Python's": (
        lambda x: lax.fori_loop(0, 3, lambda i, s: s * complex(s.sum() > i), x),
        TraceError,
        r"leave complex\(\) out",
    ),
    "a bound that is no integer": (
        lambda x: lax.fori_loop(0, x.sum(), lambda _, s: s, x),
        ArgumentError,
        "counts between integers, found f32",
    ),
    "a draw": (
        lambda x: lax.fori_loop(0, 3, lambda _, s: s + RNG.random(), x),
        TraceError,
        "draw before the loop",
    ),
    "an effect": (written_from_outside, TraceError, "would be written once"),
    "an effect on an argument": (
        lambda x: lax.fori_loop(0, 3, lambda _, s: x.__setitem__(0, s) or s, x[0]),
        TraceError,
        "would be written once",
    ),
    "an effect on a view": (
        lambda x: lax.fori_loop(0, 3, lambda _, s: (x[1:].__imul__(0), s)[1], x[0]),
        TraceError,
        "would be written once",
    ),
    "an effect of a choice": (
        lambda x: lax.cond(x.sum() > 0, lambda: x.__setitem__(0, 1) or x, lambda: x),
        TraceError,
        "both would write",
    ),
    "an array of the body's": (read_afterwards, TraceError, "return it from the body"),
    "an array for a condition": (
        lambda x: lax.while_loop(lambda s: s > 0, lambda s: s - 1, x),
        ShapeError,
        r"write \(...\).any\(\)",
    ),
    "lengths that differ": (
        lambda x: lax.scan(lambda c, x: (c, x), 0.0, x, length=3),
        ShapeError,
        "length says 3 steps, and xs says 5",
    ),
    "no length": (
        lambda x: lax.scan(lambda c, x: (c, x), x),
        ArgumentError,
        "length=n",
    ),
    "no pair": (
        lambda x: lax.scan(cast("Any", lambda c, _: c), 0.0, x),
        ArgumentError,
        r"return \(carry, y\)",
    ),
    "a way back whose turns nobody knows": (
        lambda x: nfuser.grad(
            lambda y: lax.while_loop(lambda s: s.sum() < 9, lambda s: s * 2, y).sum()
        )(x),
        UnsupportedError,
        "fori_loop with a bound",
    ),
    "a number that does not fit": (
        lambda x: lax.fori_loop(0, 2, lambda _, s: cast("Any", 300), np.uint8(3)) + x,
        RangeError,
        "300",
    ),
    "an array of plain NumPy's that was chosen": (
        written_after_a_choice,
        MutationError,
        "read it before.*may be one that was updated in place since",
    ),
    "choices of other dtypes": (
        lambda x: lax.cond(x.sum() > 0, lambda: x, lambda: x.astype(np.float64)),
        DTypeError,
        "found f32 with 2 axes and f64 with 2 axes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_with_what_to_write_and_the_line(name: str) -> None:
    function, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words) as caught:
        nfuser.fuse(function)(F)
    assert "test_refused.py:" in str(caught.value)


def test_sizes_of_a_later_call_are_checked_too() -> None:
    fused = nfuser.fuse(lambda x, y: lax.fori_loop(0, 2, lambda _, s: s + y, x))
    np.testing.assert_array_equal(fused(F, F), F * 3)
    with pytest.raises(ShapeError, match=r"expected \(1,7\), found \(5,7\)"):
        fused(F[:1], F)
