# SPDX-License-Identifier: Apache-2.0
"""Calls whose sizes keep changing: one record serves many sizes, and only its own."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.execution.device.native.shared import is_as_expected

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(not is_as_expected(), reason="no native calls here")


def _recurrence(x: Any) -> Any:
    return x[1:] * 0.5 + x[:-1]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "scaled": lambda x: x * 2 + 1,
    "sum of rows": lambda x: x.sum(axis=-1),
    "sum of all": lambda x: x.sum(),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True),
    "neighbours": _recurrence,
    "turned": lambda x: x.T * 2,
    "joined": lambda x: np.concatenate([x, x * 2]),
    "flat": lambda x: x.reshape(-1) + 1,
    "two results": lambda x: (x + 1, x.max(initial=0.0)),
    "row of means": lambda x: x - x.mean(axis=0),
    "running": lambda x: np.cumsum(x, axis=-1),
    "size itself": lambda x: x * x.shape[0] + len(x),
    "branches": lambda x: x * 2 if x.shape[0] > 7 else x - 1,
    "every other": lambda x: x[::2] * 3,
    "rolled": lambda x: np.roll(x, 1, axis=-1) + x,
}


VIEWED = ("flat", "rolled")  # whose order of memory is that of a copy in nfuser


def _arrays(seed: int, count: int) -> list[Any]:
    """Return arrays of many sizes that lie in many ways."""
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    base = rng.standard_normal((70, 70))
    for k in range(count):
        n, m = (int(v) for v in rng.integers(0 if k % 9 == 0 else 1, 60, 2))
        way = k % 6
        whole = base[:n, :m]
        if way == 0:
            found.append(whole.copy())
        elif way == 1:
            found.append(whole)
        elif way == 2:
            found.append(np.asfortranarray(whole))
        elif way == 3:
            found.append(whole[::-1, ::-1])
        elif way == 4:
            found.append(np.broadcast_to(base[0, :m], (n, m)))
        else:
            found.append(base[: 2 * n : 2, :m].copy())
    return found


def _ends(function: Callable[..., Any], *args: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return function(*args)
    except (ValueError, IndexError) as error:
        return type(error).__mro__[-4:]


def _same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    kind: type[Any] = type(expected)
    if kind is tuple and expected and isinstance(expected[0], np.ndarray):
        for one, other in zip(found, expected, strict=True):
            _same(one, other)
    elif hasattr(kind, "dtype"):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def _order(x: Any) -> Any:
    """Return the strides of axes that have more than one element."""
    pairs = zip(x.shape, x.strides, strict=True)
    return [s for n, s in pairs if n > 1] if x.size else []


@pytest.mark.filterwarnings("ignore:.*was traced")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_and_strides_in_any_order_give_what_numpy_gives(name: str) -> None:
    function = FUNCTIONS[name]
    fused = nfuser.fuse(function)
    for seed in range(2):
        for x in _arrays(seed, 36):
            for given in (x, x[0]) if x.shape[0] and seed else (x,):
                expected = _ends(function, given)
                found = _ends(fused, given)
                _same(found, expected)
                if isinstance(expected, np.ndarray) and name not in VIEWED:
                    assert _order(found) == _order(expected)
    assert fused.native_calls > 0


PAIRS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, y, s: x + y * s,
    "product": lambda x, y, s: (x * y).sum(axis=-1) + s,
    "choice": lambda x, y, s: np.where(x > y, x, s),
}


@pytest.mark.parametrize("name", PAIRS)
def test_sizes_of_two_arrays_that_stretch_or_do_not_fit(name: str) -> None:
    function = PAIRS[name]
    fused = nfuser.fuse(function)
    rng = np.random.default_rng(3)
    for k in range(120):
        n, m = (int(v) for v in rng.integers(1, 9, 2))
        x = rng.standard_normal((n, m))
        rows = (1, n, n + 1)[k % 11 % 3]
        y = rng.standard_normal((rows, m if k % 7 else 1))
        given = (x, y, k / 7)
        _same(_ends(fused, *given), _ends(function, *given))
    assert fused.native_calls > 20


def test_growing_slices_are_native_at_first_sight() -> None:
    fused = nfuser.fuse(lambda x, s: x * s + 1)
    x = np.arange(2000.0)
    for k in range(1, 1200):
        np.testing.assert_array_equal(fused(x[:k], 2.0), x[:k] * 2.0 + 1)
    assert fused.native_calls > 1150
    info = fused.cache_info()
    assert info.calls == 1199
    assert info.traces == 1


def test_more_lengths_than_tables_hold_stay_native_in_cycles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NFUSER_CACHE_SIZE", "64")
    fused = nfuser.fuse(lambda x: x * 2)
    x = np.arange(400.0)
    for _ in range(3):
        for k in range(1, 400):
            assert fused(x[:k]).shape == (k,)
    assert fused.native_calls > 1150


def test_sizes_cross_into_other_kernels_as_they_grow() -> None:
    fused = nfuser.fuse(lambda x: np.sin(x).sum(axis=-1))
    for n in (*range(2, 40), 1000, 1001, 1002, 1003, 20_000, 20_001, 20_002):
        x = np.arange(3.0 * n).reshape(3, n)
        np.testing.assert_allclose(fused(x), np.sin(x).sum(axis=-1), atol=1e-9)


def test_captured_arrays_and_values_are_looked_at_at_each_size() -> None:
    scale, weights = [2.0], np.arange(10.0)

    def weighed(x: Any) -> Any:
        return x * scale[0] + weights.sum()

    fused = nfuser.fuse(weighed)
    for n in range(2, 10):
        np.testing.assert_allclose(fused(np.ones(n)), weighed(np.ones(n)))
    scale[0] = 3.0
    weights[3] = 100.0
    for n in range(2, 10):
        np.testing.assert_allclose(fused(np.ones(n)), weighed(np.ones(n)))


def test_a_cleared_function_starts_anew() -> None:
    fused = nfuser.fuse(lambda x: x * 2)
    for n in range(2, 12):
        fused(np.ones(n))
    assert fused.native_calls
    fused.cache_clear()
    assert fused.native_calls == 0
    for n in range(2, 12):
        np.testing.assert_array_equal(fused(np.ones(n)), np.full(n, 2.0))
    assert fused.cache_info().traces == 1


def test_memory_that_does_not_fit_an_element_is_read_right_at_each_size() -> None:
    fused = nfuser.fuse(lambda x: x * 2)
    for n in range(2, 12):
        fused(np.ones(n))
    odd = np.zeros(13 * 4, np.uint8)
    fields = np.zeros(13, np.dtype([("a", "f8"), ("b", "u1")]))
    for n in (4, 5, 6):
        other = odd[: 8 * n - 8].view(np.float64)
        np.testing.assert_array_equal(fused(other), other * 2)
        fields["a"] = np.arange(13.0)
        np.testing.assert_array_equal(fused(fields["a"][:n]), np.arange(n) * 2.0)
