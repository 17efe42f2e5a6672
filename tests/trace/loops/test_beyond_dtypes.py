# SPDX-License-Identifier: Apache-2.0
"""Numbers of Python's that a dtype lacks, which branches choose and loops count."""

# Traced functions are given what has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _clipped(u, c):
    return np.clip(u, 0, c), u.clip(None, c)


def _clipped_below(u, c):
    return np.clip(u, c, None), u.clip(c, 120)


def _between_both(u, c):
    return np.clip(u, c, c + 1)


def _clipped_of_two_dtypes(u, c):
    return np.clip(u, np.array([-300, 1, 300], np.int32), c)


def _smallest(u, c):
    return np.minimum(u, c)


def _largest(u, c):
    return np.maximum(c, u)


def _compared(u, c):
    return u < c, u <= c, u > c, c >= u, u == c, u != c


def _one_or_other(u, c):
    return np.where(u > 1, u, c), np.where(u > 1, c, u)


def _full(u, c):
    return np.full(3, c, dtype=u.dtype)


def _full_like(u, c):
    return np.full_like(u, c)


def _array(u, c):
    return np.array([c, 1], dtype=u.dtype)


def _array_of_one(u, c):
    return np.asarray(c, dtype=u.dtype)


def _beside_an_element(u, c):
    return np.asarray([u[0], c], dtype=u.dtype)


def _filled(v, c):
    v.fill(c)


def _all(v, c):
    v[...] = c


def _one(v, c):
    v[1] = c


def _slice(v, c):
    v[1:] = c


def _list(v, c):
    v[:2] = [c, 1]


def _masked(v, c):
    v[v > 1] = c


def _nowhere(v, c):
    v[v > 100] = c


def _listed(v, c):
    v[v > 1] = [c]


def _places(v, c):
    v[np.array([0, 2])] = c


def _listed_places(v, c):
    v[[0, 1]] = [c, 1]


def _put(v, c):
    np.put(v, [0, 1], c)


def _placed(v, c):
    np.place(v, v > 1, [c])


def _copied(v, c):
    np.copyto(v, c)


def _copied_where(v, c):
    np.copyto(v, c, where=v > 1)


def _put_where(v, c):
    np.putmask(v, v > 1, c)


def _added_to(v, c):
    v += c


def _added_where(v, c):
    v[v > 1] += c


def _folded_from(u, c):
    return u.sum(initial=c)


def _greatest_from(u, c):
    return u.max(initial=c)


VALUES = (
    *(_clipped, _clipped_below, _between_both, _clipped_of_two_dtypes, _smallest),
    *(_largest, _compared, _one_or_other, _full, _full_like, _array, _array_of_one),
    *(_beside_an_element, _folded_from, _greatest_from),
)
WRITES = (
    *(_filled, _all, _one, _slice, _list, _masked, _nowhere, _listed, _places),
    *(_listed_places, _put, _placed, _copied, _copied_where, _put_where),
    *(_added_to, _added_where),
)


def _chosen(verb: Callable[..., Any]) -> Callable[..., Any]:
    def function(u, p):
        c = 1
        if p[0] == 1:
            c = 200
        elif p[0] == 2:
            c = -1
        elif p[0] == 3:
            c = 2**40
        v = u.copy()
        found = verb(v, c)
        return v if found is None else found

    return function


def _result(function: Callable[..., Any], *args: Any) -> Any:
    try:
        found = function(*args)
    except OverflowError:
        return "raises"
    parts = found if isinstance(found, tuple) else (found,)
    return [(np.asarray(x).dtype, np.asarray(x).tolist()) for x in parts]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i8", "u8", "f4"])
@pytest.mark.parametrize("verb", [*VALUES, *WRITES])
def test_all_verbs_take_what_a_branch_chooses_as_numpy_does(
    verb: Callable[..., Any], dtype: str
) -> None:
    function = _chosen(verb)
    fused = nfuser.fuse(function, backend="interpret")
    u = np.array([1, 2, 3], dtype)
    for number in range(4):
        p = np.array([number])
        assert _result(fused, u, p) == _result(function, u, p), number


@pytest.mark.parametrize("verb", [_list, _listed_places, _listed, _beside_an_element])
def test_lists_of_numbers_that_a_dtype_lacks_raise(verb: Callable[..., Any]) -> None:
    def function(u):
        v = u.copy()
        found = verb(v, 200)
        return v if found is None else found

    for dtype in (np.int8, np.uint8):
        u = np.array([1, 2, 3], dtype)
        fused = nfuser.fuse(function, backend="interpret")
        assert _result(fused, u) == _result(function, u)


def _halved(row):
    c, rest = 0, row.sum() * 1.0
    while rest > 1:
        rest = rest * 0.5
        c += 1
    return row * c


def _halved_in_turns(row):
    y = row * 1
    c, k = 0, 0
    while row[k] > 0 and k < 3:
        y = y + row * c
        k += 1
        c += row.shape[0] * 30
    return y


def _where_it_is_positive(row):
    c = 100
    while row[0] > 0 and c < 400:
        c += 50
    return row * c if row[0] > 0 else row


@pytest.mark.parametrize("function", [_halved, _halved_in_turns, _where_it_is_positive])
def test_rows_count_beside_narrow_integers(function: Callable[..., Any]) -> None:
    def of_all(x: Any) -> Any:
        return nfuser.vmap(function)(x)

    def one_by_one(x: Any) -> Any:
        return np.stack([function(row) for row in x])

    rows = nfuser.fuse(of_all, backend="interpret")
    for values in (
        [[1, 2, 0, 4], [0, 1, 3, 4]],
        [[0, 2, 3, 4], [-3, 1, 1, 1]],
        [[1, 1, 1, 0], [0, 0, 0, 0]],
    ):
        for dtype in (np.int8, np.int16, np.float32):
            x = np.array(values, dtype)
            assert _result(rows, x) == _result(one_by_one, x)


def test_long_chains_of_chosen_numbers_have_ranges(tmp_path: Path) -> None:
    lines = ["def function(u):", "    c = 1", "    if u[0] > 0:", "        c = 2"]
    lines += ["    c = 3 - c"] * 800 + ["    return u * c", ""]
    path = tmp_path / "chain_of_numbers.py"
    path.write_text("\n".join(lines))
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)  # noqa: S102
    fused = nfuser.fuse(names["function"], backend="interpret")
    for dtype in (np.int8, np.uint8):
        u = np.array([1, 0, 1], dtype)
        assert _result(fused, u) == _result(names["function"], u)


def _squared(u):
    c = 2**40 if u[0] > 60 else 3
    return u * (c * c)


def test_a_product_of_chosen_integers_beyond_64_bits_raises() -> None:
    fused = nfuser.fuse(_squared, backend="interpret")
    for values in ([20, 1, 0], [50, -1, 61], [0, 0, 0]):
        for dtype in (np.float64, np.int64):
            u = np.array(values, dtype)
            assert _result(fused, u) == _result(_squared, u)
    for dtype in (np.float64, np.int64):  # NumPy's floats are as large as Python's
        u = np.array([100, 100, 100], dtype)
        with pytest.raises(OverflowError, match="out of bounds for int64"):
            fused(u)


def test_what_turns_multiply_needs_no_look_in_each() -> None:
    def hashed(u):
        h, sign, total = 5381, 1, 0
        for i in range(len(u)):
            h = (h * 33 + i) % 1000003
            sign *= -1
            total += i * sign
        return u * h, u * total

    def searched(u, wanted):
        low, high = 0, len(u)
        while low < high:
            middle = (low + high) // 2
            if u[middle] < wanted[0]:
                low = middle + 1
            else:
                high = middle
        return u * low

    def doubled(u):
        k = 1
        while k < len(u):
            k *= 2
        return u * k

    u = np.arange(50.0)
    tried = (hashed, (u,)), (searched, (u, u[20:21])), (doubled, (u,))
    for function, args in tried:
        fused = nfuser.fuse(function)
        assert _result(fused, *args) == _result(function, *args)
        assert "arithmetic" not in str(fused.explain(*args))
