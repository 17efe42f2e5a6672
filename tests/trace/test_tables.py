# SPDX-License-Identifier: Apache-2.0
"""Arrays that plain NumPy makes inside a function are constants that never go stale."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import json
import pathlib
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import TraceError
from nfuser.execution.runtime.caches.shared_cache import forget_all

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.linspace(1, 2, 12).reshape(3, 4)
H = 0.5
TABLE = np.random.default_rng(0).random((50, 4))
SPARSE = np.arange(400.0).reshape(20, 20)[:, ::2]
FLAT = np.arange(24.0)
HELD = SimpleNamespace(first=FLAT[:8], second=FLAT[4:])


def staggered(n: int) -> Any:
    return (np.arange(n) + 0.5) * H


def written_later(x: Any) -> Any:
    table = np.arange(x.shape[1]) * 1.5
    first = x + table
    table *= 2
    return first * table


MADE: dict[str, Callable[[Any], Any]] = {
    "arange": lambda x: x * staggered(x.shape[1]),
    "array": lambda x: x * np.array([0.3, 0.6, 0.1, 0.2]),
    "single": lambda x: x * np.array([0.3, 0.6, 0.1, 0.2], np.float32),
    "asarray": lambda x: np.convolve(x[0], np.asarray([0.25, 0.5, 0.25]) * H),
    "eye": lambda x: x @ np.eye(4) + np.eye(3, 4, 1),
    "mgrid": lambda x: x + np.mgrid[0:3, 0:4][1] * np.mgrid[0:3, 0:4][0],
    "windows": lambda x: x * np.hanning(x.shape[1]) + np.kaiser(4, 3.0),
    "linspace": lambda x: x + np.linspace(0, 1, x.shape[1]),
    "meshgrid": lambda x: x + np.meshgrid(np.arange(4) * H, np.ones(3))[0],
    "repeated": lambda x: x + np.tile(np.array([1.0, 3.0]), 2),
    "complex": lambda x: x * np.exp(1j * np.arange(4)),
    "result": lambda x: (x, np.array([1.0, 3.0, 7.0]) * H),
    "columns": lambda x: x * np.asfortranarray(np.arange(12.0).reshape(3, 4) + H),
    "written": written_later,
    "computed": lambda x: x + (TABLE * 255)[: x.shape[0]],
    "gathered": lambda x: x + TABLE[[1, 2, 3]],
    "bytes": lambda x: x + TABLE.view(np.int64)[:3],
    "sparse": lambda x: x + SPARSE[0, :4],
    "ambiguous": lambda x: x + HELD.first[4:8] + HELD.second[:4],
}


@pytest.mark.parametrize("name", MADE)
def test_they_follow_what_they_are_made_of(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = MADE[name]
    fused = nfuser.fuse(function)

    def check() -> None:
        for _ in range(4):  # the third call on may be native
            found, expected = fused(X), function(X)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)
                assert a.dtype == b.dtype

    check()
    monkeypatch.setitem(globals(), "H", 0.25)
    check()
    for table in (TABLE, SPARSE, FLAT):
        table += 1
    check()
    monkeypatch.setattr(HELD, "first", HELD.first * 3)
    check()


def test_another_size_is_traced_again_and_shares_the_kernel() -> None:
    forget_all()  # another test may have compiled this kernel
    fused = nfuser.fuse(lambda x: x * (np.arange(len(x)) + 0.5))
    for n in (5, 6, 7, 5, 6, 7, 5):
        np.testing.assert_array_equal(fused(np.ones(n)), np.arange(n) + 0.5)
    assert (fused.cache_info().traces, fused.cache_info().compiled) == (3, 1)


def test_calls_with_a_table_are_native() -> None:
    fused = nfuser.fuse(lambda x: x * (np.arange(4) + 0.5))
    for _ in range(8):
        fused(X)
    assert fused.native_calls >= 5


def test_an_array_that_a_loop_reads_twice_is_no_input_beside_a_table() -> None:
    weight = np.array([1.0, 2.0, 3.0, 4.0])

    def function(x: Any) -> Any:
        held = weight
        for _ in range(3):
            x = x * held
        return x + held * 255

    fused = nfuser.fuse(function)
    for _ in range(5):
        np.testing.assert_allclose(fused(X), function(X))
        weight[:] += 1


def test_equal_tables_are_one_input() -> None:
    fused = nfuser.fuse(lambda x: x * (np.arange(4) + 0.5) + (np.arange(4) + 0.5))
    assert str(fused.explain(X)).count("the table of") == 1


def test_what_files_and_libraries_give_is_refused_by_name(tmp_path: Any) -> None:
    place = tmp_path / "table.npy"
    np.save(place, TABLE[0])
    text = tmp_path / "table.json"
    text.write_text("[1.0, 2.0, 4.0, 9.0]")
    readers: dict[str, Callable[[Any], Any]] = {
        "load": lambda x: x + np.load(place),
        "fromfile": lambda x: x + np.fromfile(place, count=4),
        "memmap": lambda x: x + np.array(np.memmap(place, float, "r", 128)) * 2,
        "read_text": lambda x: x + np.array(json.loads(pathlib.Path(text).read_text())),
    }
    for name, function in readers.items():
        with pytest.raises(TraceError, match=rf"{name}|loads"):
            nfuser.fuse(function)(X)


def test_what_nothing_can_compare_is_refused_by_name() -> None:
    memory = memoryview(bytearray(range(32)))
    with pytest.raises(TraceError, match="memory may have given it"):
        nfuser.fuse(lambda x: x + np.frombuffer(memory, np.uint8)[:4] ** 2)(X)


@pytest.mark.filterwarnings("ignore:a part that plain NumPy:RuntimeWarning")
def test_large_arrays_that_are_compared_at_each_call_are_warned_of() -> None:
    large = np.ones((1 << 17, 4))
    with pytest.warns(RuntimeWarning, match=r"^write xp\.asarray\(large\)"):
        nfuser.fuse(lambda x: x + large[: len(x)] + (np.arange(4) + 0.5))(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nfuser.fuse(lambda x: x + nfuser.numpy.asarray(large)[: len(x)])(X)


@pytest.mark.filterwarnings("ignore:an array that plain NumPy makes:RuntimeWarning")
def test_tables_are_returned_where_no_argument_has_a_size() -> None:
    doubled = nfuser.fuse(lambda t: np.arange(t) * 2)
    for count in (4.0, 4.0, 5.0):
        np.testing.assert_array_equal(doubled(count), np.arange(count) * 2)
