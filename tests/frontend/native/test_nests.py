# SPDX-License-Identifier: Apache-2.0
"""Lists, tuples and dicts of arrays in native calls."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import gc
import sys
import threading
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import nfuser
from nfuser.execution.device.native.shared import is_as_expected

pytestmark = pytest.mark.skipif(not is_as_expected(), reason="no native calls here")

A, B, C = (np.arange(6.0) + k for k in range(3))


class Pair(NamedTuple):
    left: Any
    right: Any


def _every(nest: Any) -> list[Any]:
    if isinstance(nest, dict):
        return [x for key in nest for x in (len(key), *_every(nest[key]))]
    if isinstance(nest, (list, tuple)):
        return [x for part in nest for x in (1, *_every(part))]
    return [] if nest is None else [nest]


def _sum(nest: Any) -> Any:
    total = np.zeros(6)
    for k, x in enumerate(_every(nest)):
        total = total * 2 + (k + 1) * x
    return total


def served(fused: Any, *args: Any) -> int:
    before = fused.native_calls
    fused(*args)
    return fused.native_calls - before


NESTS: dict[str, Any] = {
    "dict": {"a": A, "bc": B},
    "dict in another order": {"bc": B, "a": A},
    "dict with other keys": {"a": A, "bcd": B},
    "larger dict": {"a": A, "bc": B, "d": C},
    "list": [A, B],
    "tuple": (A, B),
    "longer list": [A, B, C],
    "nested": {"a": [A, (B, 2.0)], "bc": {}},
    "nested otherwise": {"a": [A, (B,), 2.0], "bc": {}},
    "with nothing": [A, None, B],
    "with an integer": [A, 3],
    "with a number of NumPy's": [A, np.float32(3)],
    "empty": [[], (), {}, A],
    "named": Pair(A, B),
    "ordered": OrderedDict(a=A, bc=B),
}


def _is_plain(nest: Any) -> bool:
    return type(nest) in (list, tuple, dict)


@pytest.mark.filterwarnings("ignore:_sum was traced")
@pytest.mark.parametrize("name", NESTS)
def test_a_nest_is_served_and_told_apart_from_others(name: str) -> None:
    fused = nfuser.fuse(_sum)
    nest = NESTS[name]
    for _ in range(3):
        np.testing.assert_array_equal(fused(nest), _sum(nest))
    assert served(fused, nest) == _is_plain(nest)
    for other in NESTS.values():
        for _ in range(3):
            np.testing.assert_array_equal(fused(other), _sum(other))
    assert served(fused, nest) == _is_plain(nest)


def test_numbers_and_sizes_inside_are_read_anew() -> None:
    fused = nfuser.fuse(lambda d, s: d["x"] * d["s"] + s)
    for k in range(5):
        fused({"x": A, "s": float(k)}, 1.0)
    for k in range(5):
        given = {"x": A + k, "s": k / 3}
        assert served(fused, given, 2.0) == 1
        np.testing.assert_array_equal(fused(given, 2.0), (A + k) * (k / 3) + 2.0)
    short = {"x": A[:4], "s": 2.0}
    np.testing.assert_array_equal(fused(short, 0.0), A[:4] * 2)


def test_names_and_nests_go_together() -> None:
    fused = nfuser.fuse(lambda x, pair, scale: (x + pair[0] * scale, pair[1]))
    for _ in range(3):
        fused(A, scale=2.0, pair=[B, C])
    first, second = fused(A, scale=2.0, pair=[B, C])
    np.testing.assert_array_equal(first, A + B * 2)
    np.testing.assert_array_equal(second, C)
    before = fused.native_calls
    fused(A, scale=3.0, pair=[C, B])
    assert fused.native_calls == before + 1


def test_a_list_that_changes_while_a_kernel_runs_keeps_its_arrays() -> None:
    fused = nfuser.fuse(lambda xs: np.sin(xs[0]) + xs[1])
    size = 400_000
    shared = [np.full(size, 1.0), np.full(size, 2.0)]
    for _ in range(3):
        fused(shared)
    is_over = threading.Event()

    def change() -> None:
        while not is_over.is_set():
            shared[0], shared[1] = np.full(size, 1.0), np.full(size, 2.0)

    other = threading.Thread(target=change)
    other.start()
    try:
        for _ in range(20):
            assert (fused(shared) == np.sin(1.0) + 2.0).all()
    finally:
        is_over.set()
        other.join()
    assert fused.native_calls >= 15


def test_calls_leave_the_counts_of_references_as_they_were() -> None:
    fused = nfuser.fuse(lambda d: d["x"] + d["y"][0])
    x, y = np.ones(5), np.ones(5)
    nest = {"x": x, "y": [y]}
    other = {"x": x, "y": [y, y]}  # which no record serves at first
    for given in (nest, other) * 4:
        fused(given)
    gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(nest)
    for _ in range(50):
        fused(nest)
        fused({"x": x, "y": [y, 2.0]})
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(nest)) == before


def test_more_than_a_frame_holds_goes_through_python() -> None:
    fused = nfuser.fuse(lambda xs: sum(xs))
    many = [A + k for k in range(40)]
    for _ in range(4):
        np.testing.assert_allclose(fused(many), sum(many))
    deep: Any = A
    for _ in range(40):
        deep = [deep]

    def innermost(nest: Any) -> Any:
        while isinstance(nest, list):
            nest = nest[0]
        return nest * 2

    unwrapped = nfuser.fuse(innermost)
    for _ in range(4):
        np.testing.assert_array_equal(unwrapped(deep), A * 2)
