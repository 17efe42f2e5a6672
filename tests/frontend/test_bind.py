# SPDX-License-Identifier: Apache-2.0
"""Calls with fixed forms: what they run with, what they refuse, where results go."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.config as config
from nfuser.errors import ArgumentError, DTypeError, ShapeError


def _plain(x: Any, y: Any) -> Any:
    return x * 2 + y


def _array(*shape: int, dtype: Any = np.float32) -> Any:
    return (np.arange(np.prod(shape, dtype=int)) % 13 + 1).reshape(shape).astype(dtype)


def test_it_reads_the_elements_anew() -> None:
    x, y = _array(4, 6), _array(6)
    bound = nfuser.fuse(_plain).bind(x, y)
    for k in range(5):
        x[1], y[2] = k, -k
        np.testing.assert_array_equal(bound(), _plain(x, y))


def test_results_are_fresh_each_time() -> None:
    x = _array(4)
    bound = nfuser.fuse(_plain).bind(x, x)
    assert not np.shares_memory(bound(), bound())


def test_it_takes_other_arguments_of_the_same_forms() -> None:
    x, y = _array(4, 6), _array(4, 6)
    bound = nfuser.fuse(_plain).bind(x, y)
    for _ in range(3):
        np.testing.assert_array_equal(bound(x + 1, y * 3), _plain(x + 1, y * 3))
        np.testing.assert_array_equal(bound(), _plain(x, y))


@pytest.mark.parametrize(
    "other",
    [
        _array(6, 4),
        _array(4, 6, dtype=np.float64),
        _array(6, 4).T,
        _array(6),
        np.frombuffer(_array(25).tobytes(), "f4")[1:].reshape(4, 6),
        2.0,
    ],
)
def test_it_refuses_other_forms(other: Any) -> None:
    x = _array(4, 6)
    bound = nfuser.fuse(_plain).bind(x, x)
    for _ in range(3):
        with pytest.raises(ArgumentError, match="bind it again"):
            bound(x, other)
        with pytest.raises(ArgumentError, match="bind it again"):
            bound(x)


def test_an_array_that_was_resized_is_not_read_as_before() -> None:
    x = np.arange(8, dtype=np.float32)
    bound = nfuser.fuse(lambda x: x + 1).bind(x)
    assert bound().shape == (8,)
    x.resize((2, 4), refcheck=False)
    np.testing.assert_array_equal(bound(), x + 1)


def test_numbers_are_passed_on() -> None:
    x = _array(4, 6)
    bound = nfuser.fuse(_plain).bind(x, 2.5)
    np.testing.assert_array_equal(bound(), _plain(x, 2.5))
    np.testing.assert_array_equal(bound(x, 4.5), _plain(x, 4.5))


def test_keywords_are_bound_too() -> None:
    x = _array(4, 6)
    bound = nfuser.fuse(lambda x, *, axis: x.sum(axis=axis)).bind(x, axis=1)
    for _ in range(3):
        np.testing.assert_array_equal(bound(), x.sum(axis=1))


def test_results_go_where_they_are_wanted() -> None:
    x, y = _array(4, 6), _array(4, 6)
    fused = nfuser.fuse(lambda x, y: (x + y, {"sum": x.sum(axis=0)}))
    one, other = np.empty((4, 6), "f4"), np.empty(6, "f4")
    bound = fused.bind(x, y, out=(one, other))
    for k in range(3):
        x[0] = k
        found = bound()
        assert found[0] is one
        assert found[1]["sum"] is other
        np.testing.assert_array_equal(one, x + y)
        np.testing.assert_array_equal(other, x.sum(axis=0))


@pytest.mark.parametrize("order", ["same", "shifted", "other", "self"])
def test_an_output_that_overlaps_acts_as_in_numpy(order: str) -> None:
    def apart() -> tuple[Any, Any]:
        memory = _array(41)
        x = memory[:40].reshape(8, 5)
        out = {
            "same": x,
            "shifted": memory[1:].reshape(8, 5),
            "other": np.empty((16, 5), "f4")[::2],
            "self": x[::-1],
        }[order]
        return x, out

    x, out = apart()
    expected = x[::-1] * 2 + x
    bound = nfuser.fuse(lambda x: x[::-1] * 2 + x).bind(x, out=out)
    assert bound() is out
    np.testing.assert_array_equal(out, expected)


def test_other_arguments_may_overlap_the_output() -> None:
    x, y, out = _array(8, 5), _array(8, 5), np.empty((8, 5), "f4")
    bound = nfuser.fuse(lambda x, y: x[::-1] + y).bind(x, y, out=out)
    bound()
    for _ in range(3):
        expected = out[::-1] + y
        assert bound(out, y) is out
        np.testing.assert_array_equal(out, expected)


def test_a_captured_array_may_overlap_the_output() -> None:
    memory, x = _array(44), _array(8, 5)
    held, out = memory[:40].reshape(8, 5), memory[4:].reshape(8, 5)

    def shifted(x: Any) -> Any:
        return x + held

    bound = nfuser.fuse(shifted).bind(x, out=out)
    for _ in range(3):
        expected = x + held
        assert bound() is out
        np.testing.assert_array_equal(out, expected)


def test_static_arguments_are_bound_too() -> None:
    x, out = _array(8, 5), np.empty(8, "f4")
    bound = nfuser.fuse(lambda x, axis, mode: x.sum(axis=axis)).bind(
        x, (1,), "fast", out=out
    )
    one = nfuser.fuse(lambda x, mode: x.sum(axis=1)).bind(x, "fast", out=out)
    for _ in range(3):
        x[0] += 1
        np.testing.assert_array_equal(bound(), x.sum(axis=1))
        np.testing.assert_array_equal(one(), x.sum(axis=1))


def test_outputs_that_overlap_one_another_are_refused() -> None:
    x, memory = _array(4), np.zeros(6, "f4")
    fused = nfuser.fuse(lambda x: (x + 1, x + 2))
    with pytest.raises(ArgumentError, match=r"out\[1\].*that of out\[0\]"):
        fused.bind(x, out=(memory[:4], memory[2:]))
    assert not memory.any()


def test_a_result_without_axes() -> None:
    x, out = _array(4), np.empty((), "f4")
    assert nfuser.fuse(lambda x: x.sum()).bind(x, out=out)() is out
    assert out == x.sum()
    assert type(nfuser.fuse(lambda x: x.sum()).bind(x)()) is np.float32


def test_outputs_that_do_not_fit_are_refused() -> None:
    x = _array(4, 6)
    fused = nfuser.fuse(lambda x: x + 1)
    with pytest.raises(ShapeError, match="expected shape"):
        fused.bind(x, out=_array(6, 4))
    with pytest.raises(DTypeError, match="expected f32"):
        fused.bind(x, out=_array(4, 6, dtype=np.float64))
    with pytest.raises(ArgumentError, match="expected 1 arrays"):
        fused.bind(x, out=(x, x))
    with pytest.raises(ArgumentError, match="written"):
        fused.bind(x, out=np.broadcast_to(x[0], (4, 6)))


def test_the_configuration_still_counts() -> None:
    x = _array(4)
    bound = nfuser.fuse(_plain).bind(x, x)
    with config.override(disable_all=True):
        np.testing.assert_array_equal(bound(), _plain(x, x))
    np.testing.assert_array_equal(bound(), _plain(x, x))


def test_a_captured_value_that_changed_is_seen() -> None:
    by, x = 2.0, _array(4)

    def scaled(x: Any) -> Any:
        return x * by

    bound = nfuser.fuse(scaled).bind(x)
    bound()
    by = 3.0
    np.testing.assert_array_equal(bound(), x * 3)


def test_it_refuses_one_array_for_two_results() -> None:
    def both(x: Any) -> Any:
        return x + 1, x * 2

    x, out = _array(4), np.zeros(8, np.float32)
    for twice in ((out[:4], out[:4]), (out[:4], out[:4][:])):
        with pytest.raises(ArgumentError, match=r"out\[1\].*that of out\[0\]"):
            nfuser.fuse(both).bind(x, out=twice)
    nfuser.fuse(both).bind(x, out=(out[:4], out[4:]))()
    np.testing.assert_array_equal(out, [*(x + 1), *(x * 2)])
    none = _array(0)
    nfuser.fuse(both).bind(none, out=(none, none))()
