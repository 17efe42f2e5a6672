# SPDX-License-Identifier: Apache-2.0
"""What sorts and what searches gives what NumPy gives."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from nfuser import DataType, FusionDefinition
from nfuser.errors import DTypeError, NfuserError

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES = ((3, 4), (4, 5), (1, 6))
DTYPES = ("f4", "f8", "i2", "u1", "?", "c8")
AXES = (-1, 0, None)
Q = [0.0, 0.1, 0.5, 0.77, 1.0]
SORTS: dict[str, Callable[[Any, Any], Any]] = {
    "sort": lambda x, axis: np.sort(x, axis),
    "argsort": lambda x, axis: np.argsort(x, axis, stable=True),
    "sort of what is computed": lambda x, axis: np.sort(x + x, axis) * 2,
    "median": lambda x, axis: np.median(x, axis),
    "nanmedian": lambda x, axis: np.nanmedian(x, axis, keepdims=True),
}
METHODS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "linear"),
    *("interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "lower"),
    *("normal_unbiased", "higher", "midpoint", "nearest"),
)


def _data(dtype: str, shape: tuple[int, ...], seed: int, *, nan: bool) -> Any:
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 6, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.integers(0, 3, shape).astype(dtype)
    if np.dtype(dtype).kind in "fc":
        found = found / 4
        if nan:
            found[0, -1] = np.nan
    if np.dtype(dtype).kind == "c" and nan:
        found[-1, 0] = complex(np.nan, 1)
        found[-1, 1] = complex(1, np.nan)
    return found


def _check(function: Callable[..., Any], *arrays: Any) -> None:
    """Compare with NumPy at each of several shapes: one fused function for all."""
    fused = nfuser.fuse(function)
    for given in zip(*arrays, strict=True):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            want = np.asarray(function(*given))
        got = np.asarray(fused(*given))
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, 2e-6, 1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SORTS)
def test_sorts_are_numpys(name: str, dtype: str) -> None:
    arrays = [
        _data(dtype, shape, k, nan=nan)
        for k, shape in enumerate(SHAPES)
        for nan in (False, True)
    ]
    for axis in AXES:
        _check(lambda x, a=axis: SORTS[name](x, a), arrays)


@pytest.mark.parametrize("method", METHODS)
def test_quantiles_are_numpys(method: str) -> None:
    for dtype in ("f4", "i2"):
        for nan in (False, True):
            arrays = [_data(dtype, shape, 7, nan=nan) for shape in SHAPES]
            _check(lambda x: np.quantile(x, Q, 0, method=method), arrays)
            _check(lambda x: np.nanpercentile(x, 30, 1, method=method), arrays)


def test_quantiles_of_several_axes_and_shares_of_several() -> None:
    x = np.random.default_rng(3).standard_normal((3, 4, 5)).astype("f4")
    share = np.float32([[0.25, 0.5], [0.75, 1]])
    _check(lambda x: np.quantile(x, 0.3, (0, 2), keepdims=True), [x])
    _check(lambda x, q: np.quantile(x, q, 1), [x, x[:2]], [share, share])
    _check(lambda x: np.percentile(x, [5, 95]), [x, x[1:]])
    _check(lambda x: np.median(x, (0, 1)), [x, x[:, 1:]])


def test_what_a_number_is_converted_to() -> None:
    x = np.arange(7, dtype="f4")
    _check(lambda x: np.quantile(x, np.float64(0.3)), [x])
    _check(lambda x: np.median(x), [np.full(4, 6e4, "f2"), x.astype("f2")])


def test_of_nothing_nothing_is_known() -> None:
    for dtype in ("f4", "i4"):
        x = np.ones((3, 0), dtype)
        _check(lambda x: np.median(x, 1), [x, x[:0]])
        _check(lambda x: np.nanmedian(x), [x])
        _check(lambda x: np.sort(x, 0), [x, x[:1]])
        got = nfuser.fuse(lambda x: np.quantile(x, 0.5, 1))(x)
        assert got.shape == (3,)
        assert np.isnan(got).all()


def test_halves_are_exact() -> None:
    x = np.random.default_rng(0).standard_normal((4, 9)).astype("f2")
    _check(lambda x: np.sort(x), [x, x[:, ::2]])
    _check(lambda x: np.argsort(x, 0, kind="stable"), [x, x[::-1]])


def test_parts_and_keys() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 3, (2, 3, 8))
    _check(lambda a, b: np.lexsort((a, b)), [a, a[:, 1:]], [b, b[:, 1:]])
    _check(lambda a: np.partition(a, 2)[..., :3].max(-1), [a, b])
    _check(lambda a: np.partition(a, np.array([1, 2]))[..., 1:3], [a, b])
    _check(lambda a: np.sort(np.take_along_axis(a, a.argpartition(3), -1)), [a, b])


def test_parts_are_left_as_numpy_leaves_them() -> None:
    rng = np.random.default_rng(0)
    several = rng.standard_normal((3, 700)), rng.integers(0, 9, (3, 700))
    for x in (*several, several[0].T, several[1] > 4, several[0].astype("f4")):
        for kth, axis in (
            (2, -1),
            (-2, 0),
            ((0, 2), 1),
            (np.array([1, 2]), 0),
            (2, None),
        ):
            _check(lambda x, k=kth, a=axis: np.partition(x, k, a), [x])
            _check(lambda x, k=kth, a=axis: np.argpartition(x, k, a), [x])


def test_memory_lies_as_numpys() -> None:
    x = np.random.default_rng(1).standard_normal((3, 4, 5)).transpose(1, 2, 0)
    for function in (np.sort, np.argsort, lambda x: np.quantile(x, [0.1, 0.6], 1)):
        fused: Any = nfuser.fuse(lambda x, f=function: f(x))
        assert fused(x).strides == function(x).strides


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_arrays_of_other_libraries_are_sorted(library: str) -> None:
    module = pytest.importorskip(library)
    array = module.from_numpy if library == "torch" else module.numpy.asarray
    x = np.random.default_rng(6).standard_normal((5, 7)).astype("f4")

    def function(x: Any) -> Any:
        return np.sort(x * 2, 0), x.argsort(1, stable=True), np.median(x, 0)

    given = array(x)
    for found, wanted in zip(nfuser.fuse(function)(given), function(x), strict=True):
        assert isinstance(found, type(given))
        np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_what_surrounds_a_sort_is_fused(backend: str) -> None:
    fused = nfuser.fuse(
        lambda x: np.sort(np.exp(x) + 1, -1)[..., ::-1] * 2, backend=backend
    )
    x = np.random.default_rng(2).standard_normal((5, 6))
    np.testing.assert_allclose(fused(x), np.sort(np.exp(x) + 1)[:, ::-1] * 2, 1e-14)
    summary = fused.explain(x).summary[0]
    assert "2 kernels, 1 call of the array library" in summary


def test_what_is_no_share_has_no_quantile() -> None:
    share = np.array([0.5, np.nan, 7, -1])
    got = nfuser.fuse(lambda x, q: np.quantile(x, q))(np.arange(4.0), share)
    np.testing.assert_array_equal(got, [1.5, np.nan, np.nan, np.nan])


def test_the_library_that_sorts_is_named() -> None:
    torch = pytest.importorskip("torch")
    found = nfuser.fuse(lambda x: np.sort(x)).explain(torch.ones(3))
    assert found.pieces[0].name == "sort by numpy"


# -- searches ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "i8", "u1"])
@pytest.mark.parametrize("right", [False, True])
def test_searches_are_numpys(dtype: str, right: bool) -> None:
    rng = np.random.default_rng(5)
    side = "right" if right else "left"
    rows = [np.sort(rng.integers(0, 90, n).astype(dtype)) for n in (1, 2, 16, 17, 300)]
    values = [rng.integers(0, 90, (3, n)).astype(dtype) for n in (1, 4, 5, 9, 40)]
    _check(lambda a, v: np.searchsorted(a, v, side), rows, values)
    _check(lambda a, v: np.digitize(v, a, right), rows, values)
    _check(lambda a, v: np.digitize(v, a[::-1], right), rows, values)


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 40])
def test_kernels_of_a_gpu_search_inside_the_row_alone(count: int) -> None:
    # The interpreter refuses what reads past the end of an array.
    rng = np.random.default_rng(count)
    row = np.sort(rng.integers(0, 9, count) / 2)
    values = np.array([np.nan, -1, 0, 1.5, 9, np.inf])

    def function(a: Any, v: Any) -> Any:
        found = np.searchsorted(a, v, "right"), np.digitize(v, a[::-1])
        return (*found, np.interp(v, a + xp.arange(a.size), a), np.pad(found[0], 2))

    fused = nfuser.fuse(function, backend="interpret")
    pairs = zip(fused(row, values), function(row, values), strict=True)
    for found, wanted in pairs:
        np.testing.assert_allclose(found, wanted)


def test_searches_have_nan_last() -> None:
    row = np.array([-1, 2, np.nan, np.nan])
    values = np.array([np.nan, 2, 3, -np.inf, np.inf])
    for side in ("left", "right"):
        _check(lambda a, v, s=side: np.searchsorted(a, v, s), [row], [values])


def test_a_search_of_nothing_and_through_an_order() -> None:
    row, values = np.array([3.0, 1, 2]), np.array([0, 1.5, 9])
    _check(lambda a, v: np.searchsorted(a, v), [row[:0]], [values])
    _check(lambda a, v: a.searchsorted(v, sorter=a.argsort()), [row], [values])
    _check(lambda a: np.searchsorted(np.sort(a), 1.5), [row])


def test_interpolation_is_numpys() -> None:
    places = np.array([0, 0, 1, 3, np.inf])
    heights = [np.array([1.0, 2, 5, 5, 5]), np.array([1, 2, np.inf, 5, 6])]
    x = np.array([-1, 0, 0.5, 1, 2, 3, 4, np.inf, np.nan])
    for y in heights:
        _check(lambda x, xp, y: np.interp(x, xp, y), [x], [places], [y])
        _check(lambda x, xp, y: np.interp(x, xp, y, -7, 8), [x], [places], [y])
    y = heights[0]
    _check(lambda x, xp, y: np.interp(x, xp, y * 1j), [x], [places[1:4]], [y[1:4]])
    _check(lambda x, xp, y: np.interp(x, xp, y), [x], [places[:1]], [y[:1]])


def test_rows_of_many_lengths_share_a_trace() -> None:
    def function(x: Any, k: int) -> Any:
        found = np.median(x, -1), np.quantile(x, Q, -1), np.nanmedian(x, 0)
        return *found, np.partition(x, k)[:, k]

    fused = nfuser.fuse(function)
    for n, k in ((5, 0), (6, 3), (9, -2), (31, 30)):
        x = np.random.default_rng(n).standard_normal((4, n))
        for found, wanted in zip(fused(x, k), function(x, k), strict=True):
            np.testing.assert_allclose(found, wanted)
    assert fused.cache_info().traces == 2  # k counts from either end


def test_from_the_largest_on() -> None:
    x = np.array([[3, np.nan, 1, 3, 2], [0, 5, 5, 2, 5.0]])
    down, places = (
        [[np.nan, 3, 3, 2, 1], [5, 5, 5, 2, 0]],
        [[1, 0, 3, 4, 2], [1, 2, 4, 3, 0]],
    )

    def function(x: Any) -> Any:
        return xp.sort(x, descending=True), xp.argsort(x, descending=True)

    for found in (function(x), nfuser.fuse(function)(x)):
        np.testing.assert_array_equal(found[0], down)
        np.testing.assert_array_equal(found[1], places)

    def flat(x: Any) -> Any:
        return (
            xp.sort(x, None, "stable"),
            xp.sort(x, None, descending=True),
            xp.argsort(x, axis=None, kind="stable", descending=True),
        )

    for found, same in zip(flat(x), nfuser.fuse(flat)(x), strict=True):
        np.testing.assert_array_equal(found, same)
    np.testing.assert_array_equal(flat(x)[0], np.sort(x, None))
    np.testing.assert_array_equal(x.ravel()[flat(x)[2]], flat(x)[1])


def test_rows_of_many_lengths_share_a_search() -> None:
    fused = nfuser.fuse(lambda a, v: np.searchsorted(a, v))
    for n in (260, 300, 1000, 4096):
        row = np.arange(n) / n
        np.testing.assert_array_equal(fused(row, row[::3]), np.arange(0, n, 3))
    assert fused.cache_info().compiled + fused.cache_info().loaded == 1


# -- what is refused ---------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (lambda x: np.sort(x, 2), ValueError, "axis 2 is out of bounds"),
        (lambda x: np.sort(x[0, 0]), ValueError, "out of bounds"),
        (lambda x: np.sort(x, order="a"), NotImplementedError, "fields of records"),
        (lambda x: np.sort(x, kind="slow"), ValueError, "found 'slow'"),
        (lambda x: np.partition(x, 9), ValueError, r"kth\(=9\) out of bounds \(4\)"),
        (lambda x: np.partition(x, 1, order="a"), NotImplementedError, "fields of"),
        (lambda x: np.quantile(x, 1.5), ValueError, r"the range \[0, 1\]"),
        (lambda x: np.percentile(x, -2), ValueError, r"the range \[0, 100\]"),
        (lambda x: np.quantile(x, 0.5, method="best"), ValueError, "'best' is none"),
        (lambda x: np.quantile(x * 1j, 0.5), TypeError, "array of real numbers"),
        (lambda x: np.searchsorted(x, 1), ValueError, "must have one dimension"),
        (lambda x: np.searchsorted(x[0], 1, "up"), ValueError, "found 'up'"),
        (
            lambda x: np.searchsorted(x[0], 1, sorter=x[0, :2].astype(int)),
            ValueError,
            r"shape of the array, \(4,\), found \(2,\)",
        ),
        (lambda x: np.interp(x * 1j, x[0], x[0]), TypeError, "expected real numbers"),
        (lambda x: np.interp(x, x[0], x[0, :2]), ValueError, "not of the same length"),
        (lambda x: np.interp(x, x[0], x[0], period=1), NotImplementedError, "period="),
    ],
)
def test_bad_input_is_refused(
    function: Callable[..., Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(NfuserError, match=message) as error:
        nfuser.fuse(function)(np.ones((3, 4)))
    assert isinstance(error.value, kind)
    assert __file__ in str(error.value)


# -- the builder's -----------------------------------------------------------


def test_the_largest_and_where_they_are() -> None:
    x = np.float32([[3, np.nan, 1, 3, -1], [0, 5, 5, 2, 5]])
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1], dtype=DataType.Float)
        k = fd.define_scalar(dtype=DataType.Int)
        for largest in (True, False):
            for found in fd.ops.topk(t, k, 1, largest=largest):
                fd.add_output(found)
        fd.add_output(fd.ops.argsort(t, 1, descending=True, stable=True))
        fd.add_output(fd.ops.sort(t, 0, descending=True))
    values, places, small, lows, order, down = fd.execute([x, 2])
    np.testing.assert_array_equal(values, np.float32([[np.nan, 3], [5, 5]]))
    np.testing.assert_array_equal(places, [[1, 0], [1, 2]])
    np.testing.assert_array_equal(small, [[-1, 1], [0, 2]])
    np.testing.assert_array_equal(lows, [[4, 2], [0, 3]])
    np.testing.assert_array_equal(order, [[1, 0, 3, 2, 4], [1, 2, 4, 3, 0]])
    np.testing.assert_array_equal(down, np.sort(x, 0)[::-1])
    with pytest.raises(ValueError, match=r"k is .*, more than axis 1"):
        fd.execute([x, 6])


@pytest.mark.parametrize("kth", [True, [True], 1.0, [1.5], [[1]]])
@pytest.mark.parametrize("part", [np.partition, np.argpartition])
def test_places_that_are_no_integers_are_refused_as_numpy_does(
    part: Any, kth: Any
) -> None:
    x = np.array([3.0, 1.0, 2.0])
    with pytest.raises((TypeError, ValueError)):
        part(x, kth)
    with pytest.raises(DTypeError, match="expected kth to be an integer"):
        nfuser.fuse(lambda x: part(x, kth))(x)
