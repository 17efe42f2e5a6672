# SPDX-License-Identifier: Apache-2.0
"""What is returned of an array as it was before it was assigned to again.

It has memory of its own, in the order that NumPy gives it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

_BASE = np.arange(1.0, 73).reshape(6, 12)
LAYOUTS: dict[str, Callable[[], Any]] = {
    "C": _BASE.copy,
    "F": lambda: np.asfortranarray(_BASE),
    "reversed rows": lambda: _BASE.copy()[::-1],
    "reversed columns": lambda: _BASE.copy()[:, ::-1],
    "reversed, transposed": lambda: _BASE.copy()[::-1].T,
    "strided rows": lambda: _BASE.copy()[::2],
    "strided columns": lambda: _BASE.copy()[::2, ::-3],
    "strided columns of F": lambda: np.asfortranarray(_BASE)[::2, ::-1],
    "one row": lambda: _BASE.copy()[:1, ::-1],
    "one column": lambda: _BASE.copy()[:, 3:4],
    "no row": lambda: _BASE.copy()[:0, ::-1],
    "half": lambda: _BASE.astype("f2")[:, ::-1],
    "complex": lambda: (_BASE * (1 + 2j))[::-2],
    "real parts": lambda: (_BASE * (1 + 2j)).real,
}


def filled(a: Any) -> Any:
    """Return what an array is between two assignments."""
    a -= 1
    z = np.zeros_like(a)
    z[...] = a
    a[1:] += a[:-1]
    return z


def two_states(a: Any) -> Any:
    """Return two states, one of them transposed."""
    a -= 1
    z = a.copy()
    a[1:] += a[:-1]
    y = np.empty_like(a.T)
    y[...] = a.T
    a *= 2
    return z, y


def in_orders(a: Any) -> Any:
    """Return one state in two orders."""
    a -= 1
    z, y = a.copy(order="C"), a.copy(order="F")
    a[1:] += a[:-1]
    return z, y


def both_go_on(a: Any) -> Any:
    """Go on with an array, and with a copy of it."""
    a[:, 1:] -= 1
    z = np.zeros_like(a)
    z[...] = a
    a[:, 1:] *= a[:, :-1]
    z[:1] = 7
    return z, a


def inner_goes_on(a: Any) -> Any:
    """Go on with two arrays that are one at first."""
    b = a * 1
    b[:, 1:] -= 1
    z = b.copy()
    b[:, 1:] *= b[:, :-1]
    z[:1] = 7
    return z, b


def three_go_on(a: Any) -> Any:
    """Go on with copies after the array went on."""
    a[:, 1:] -= 1
    z = a.copy()
    a[:, 1:] *= a[:, :-1]
    y = a.copy()
    z[:1], y[-1:], a[:1] = 7, 3, 1
    return z, y


def around_a_loop(a: Any) -> Any:
    """Return what an array is before a loop, which may take no turn."""
    a[1:] -= 1
    z = np.empty_like(a)
    z[...] = a
    for _ in range(a.shape[0] - 3):
        a[1:] += a[:-1]
    return z


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "function",
    [
        filled,
        two_states,
        in_orders,
        both_go_on,
        inner_goes_on,
        three_go_on,
        around_a_loop,
    ],
)
def test_states_of_an_array_are_apart(
    function: Callable[[Any], Any], layout: str
) -> None:
    ours, numpys = LAYOUTS[layout](), LAYOUTS[layout]()
    expected, actual = function(numpys), nfuser.fuse(function)(ours)
    if not isinstance(expected, tuple):
        expected, actual = (expected,), (actual,)
    expected, actual = (*expected, numpys), (*actual, ours)
    for wanted, found in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype
        long = [k for k, n in enumerate(wanted.shape) if n > 1 and wanted.size]
        assert [found.strides[k] for k in long] == [wanted.strides[k] for k in long]
        shared = [np.shares_memory(wanted, other) for other in expected]
        assert [np.shares_memory(found, other) for other in actual] == shared


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_two_arrays_are_exchanged(dtype: str) -> None:
    def exchange(a: Any, b: Any) -> None:
        old = b.copy()
        b[...] = a
        a[...] = old

    a, b = np.arange(4).astype(dtype), np.arange(4, 8).astype(dtype)
    nfuser.fuse(exchange)(a, b)
    np.testing.assert_array_equal((a, b), ([4, 5, 6, 7], [0, 1, 2, 3]))


def test_a_copy_that_is_read_late_is_the_only_one() -> None:
    told = nfuser.fuse(filled).explain(_BASE.copy())
    copies = [o.name for p in told.pieces for o in p.operations if o.name == "copy"]
    assert len(copies) == 2, str(told)  # of what is returned, and of rows that overlap


def _kept_beside(a: Any, b: Any) -> Any:
    old = a.copy()
    a[...] = old
    b[1:3, 1:3] = a[1:3, 1:3]
    return a


def _kept_alone(a: Any, b: Any) -> Any:
    old = a.copy()
    a[...] = a
    a[...] = old
    return a


def _kept_and_copied(a: Any, b: Any) -> Any:
    old = a.copy()
    a[...] = a
    a[...] = old
    return a.copy()


def _kept_in_another(a: Any, b: Any) -> Any:
    old = a.copy()
    a[...] = old
    c = np.zeros_like(a)
    c[...] = a
    c[1:] += b[1:]
    return c


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("dtype", ["f2", "f4"])
@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize(
    "function", [_kept_beside, _kept_alone, _kept_and_copied, _kept_in_another]
)
def test_an_array_that_keeps_its_elements_lies_where_it_did(
    function: Any, step: int, dtype: str, backend: Any
) -> None:
    def arrays() -> list[Any]:
        made = [np.arange(24).reshape(6, 4) + 30 * k for k in range(2)]
        return [x.astype(dtype)[:, ::step] for x in made]

    given, plain = arrays(), arrays()
    found = nfuser.fuse(function, backend=backend)(*given)
    wanted = function(*plain)
    np.testing.assert_array_equal(found, wanted)
    assert (found is given[0]) == (wanted is plain[0])
    for one, other in zip(given, plain, strict=True):
        np.testing.assert_array_equal(one, other)
