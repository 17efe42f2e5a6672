# SPDX-License-Identifier: Apache-2.0
"""Where the best element of a CPU's row is: found after what it is."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser

STEP = 2048  # elements that are folded before the best of them is looked for
LONG = 33 * STEP + 5  # of a row in parts, some of more than one step
DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
BOTH = (np.argmax, np.argmin)


def _source(function: Any, *arguments: Any) -> str:
    (kernel,) = nfuser.fuse(function).kernels(*arguments)
    return kernel.source


def _assert_same(function: Any, *arguments: Any) -> None:
    found = nfuser.fuse(function)(*arguments)
    np.testing.assert_equal(found, function(*arguments))


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_type_are_found(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for find in BOTH:
        f = nfuser.fuse(lambda x, find=find: find(x, axis=-1))
        for length in (1, 7, 64, 65, 1000, STEP, STEP + 1):
            several = (rng.random((3, length)) * 100).astype(dtype)
            for x in (several, np.zeros_like(several), several == several.max()):
                np.testing.assert_array_equal(f(x), find(x, axis=-1))


@pytest.mark.parametrize("length", [2, 100, STEP + 2, 3 * STEP])
@pytest.mark.parametrize("others", [0.0, 1.0, np.inf, -np.inf, np.nan])
def test_the_first_of_equals_and_of_nans_wins(length: int, others: float) -> None:
    places = (0, length // 3, length // 2, length - 1)
    for find in BOTH:
        f = nfuser.fuse(lambda x, find=find: find(x))
        for best in (np.nan, np.inf, -np.inf, -0.0):
            for k, place in enumerate(places):
                x = np.full(length, others, "f4")
                x[[place, *places[k:]]] = best
                assert f(x) == find(x)


@pytest.mark.parametrize("dtype", ["f8", "u1"])
def test_parts_of_a_row_that_are_equal_leave_the_first(dtype: str) -> None:
    places = (0, STEP - 1, STEP, 2 * STEP - 1, 2 * STEP, 5 * STEP + 7, LONG - 1)
    f = nfuser.fuse(lambda x: (x.argmax(), x.argmin()))
    for k in range(len(places)):
        x = np.full(LONG, 3, dtype)
        x[list(places[k:])] = 7
        assert f(x) == (places[k], x.argmin())


def test_rows_in_any_order_of_memory_count_places_in_their_own() -> None:
    x = np.random.default_rng(0).integers(0, 9, (5, 70, 300))
    for view in (x, x.T, x.transpose(1, 0, 2), x[:, ::-1, ::3], x[:, :, ::-1]):
        for find in BOTH:
            _assert_same(lambda x, find=find: find(x), view)
            _assert_same(lambda x, find=find: find(x, axis=-1, keepdims=True), view)


def test_what_is_only_read_is_read_again_and_the_rest_is_kept() -> None:
    x = np.random.default_rng(0).random((3, 1000)).astype("f4")
    assert "stack_f32" not in _source(lambda x: x.argmax(-1), x)
    work = _source(lambda x: (np.exp(x).argmax(-1), np.exp(x).argmin(-1)), x)
    assert work.count("= stack_f32") == 1  # both look into the same
    for length in (1000, 3 * STEP):
        x = np.random.default_rng(0).random((3, length)).astype("f4")
        _assert_same(lambda x: (abs(x - 0.5).argmin(-1), (x * 2).argmax(-1)), x)
        _assert_same(lambda x: np.concatenate([x[:, ::-1], x], axis=1).argmax(-1), x)


def test_the_search_ends_where_the_best_is() -> None:
    x = np.ones((3, 1000), "f4")
    for source in (_source(np.argmax, x), _source(lambda x: x.argmin(-1), x > 0)):
        assert "first_like" in source
        assert source.count("for i") <= 2  # what folds the row: in parts, and the rest
    # Rows that are not read again from memory, as they lie apart there, are kept.
    assert "= stack_f32" in _source(lambda x: x.argmax(-1), x[:, ::2])


def test_a_row_with_infinities_of_both_signs_has_no_nan() -> None:
    for length in (3, 100, 3 * STEP):
        x = np.zeros((4, length), "f4")
        x[1:, 1], x[1:, 2], x[2, 0], x[3, -1] = np.inf, -np.inf, -np.inf, np.nan
        for find in BOTH:
            _assert_same(lambda x, find=find: find(x, axis=-1), x)
            _assert_same(lambda x, find=find: find(x * 2 - 1, axis=-1), x)
        x[3, -1] = 3e38
        x[0] = 3e38  # whose sum is infinite
        for find in BOTH:
            _assert_same(lambda x, find=find: find(x, axis=-1), x)


def test_a_row_that_is_overwritten_is_not_read_again() -> None:
    f = nfuser.fuse(lambda x: (-x, x.argmax(-1)))
    for length in (1000, 3 * STEP):
        x = np.random.default_rng(0).random((2, length)).astype("f4")
        wanted, most = -x, x.argmax(-1)
        places = np.empty(2, "i8")
        f.bind(x, out=(x, places))()
        np.testing.assert_array_equal(x, wanted)
        np.testing.assert_array_equal(places, most)


def test_other_reductions_go_beside_it_in_several_pieces() -> None:
    x = np.random.default_rng(0).integers(0, 99, (2, 5000)).astype("i4")

    def several(x: Any) -> Any:  # in two passes, which keep the row
        below = (x.max(-1, keepdims=True) - x).sum(-1)
        return x.argmax(-1), below, x.sum(-1), x.argmin(-1)

    _assert_same(several, x)
    assert _source(several, x).count("load(T0") > 4


def test_many_places_take_no_more_stack_than_a_row() -> None:
    x = np.random.default_rng(0).integers(-99, 99, (4, 50_000))
    (kernel,) = nfuser.fuse(_three_places).kernels(x)
    assert "stack_i64(16384)" not in kernel.source
    for found, wanted in zip(
        nfuser.fuse(_three_places)(x), _three_places(x), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def _three_places(x: Any) -> Any:
    return [np.argmax((x * (k + 2)) ^ (k + 1), axis=-1) for k in range(3)]
