# SPDX-License-Identifier: Apache-2.0
"""What puts elements elsewhere, against NumPy: values, memory orders, open sizes."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from nfuser.errors import NfuserError, ShapeError
from tests.end_to_end.moves import FUNCTIONS, OPEN, SHAPES
from tests.fuzz.backends import from_torch, to_torch

if TYPE_CHECKING:
    from collections.abc import Callable

BACKENDS = ("cpu", "interpret", pytest.param("cuda", marks=pytest.mark.gpu))
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "permuted": lambda x: np.moveaxis(np.moveaxis(x, -1, 0).copy(), 0, -1),
}


def _fused(function: Callable[..., Any], backend: str) -> Any:
    if backend != "cuda":
        return nfuser.fuse(function, backend=backend)
    return nfuser.fuse(function, dialect="numpy")


def _call(fused: Any, backend: str, *args: Any) -> list[Any]:
    if backend == "cuda":
        args = tuple(to_torch(a) if isinstance(a, np.ndarray) else a for a in args)
    return [from_torch(x) if backend == "cuda" else x for x in _listed(fused(*args))]


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _order(x: Any) -> list[int]:
    """Return the axes from the slowest; those of size 1 have no place."""
    wide = [k for k in range(x.ndim) if x.shape[k] > 1]
    return sorted(wide, key=lambda k: -x.strides[k])


def _assert_like(found: Any, wanted: Any, label: str, *, ordered: bool = True) -> None:
    wanted = np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), label
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-5, err_msg=label)
    if ordered and wanted.size > 1:
        assert _order(np.asarray(found)) == _order(wanted), label


def _array(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("group", FUNCTIONS)
def test_a_move_is_numpys(group: str, layout: str, backend: str) -> None:
    if backend == "interpret" and layout != "C":
        pytest.skip("strides are the plan's: the cpu backend shows them")
    x = LAYOUTS[layout](_array((4, 6, 5)))
    for number, function in enumerate(FUNCTIONS[group]):
        found = _call(_fused(function, backend), backend, x)
        wanted = _listed(function(x))
        for got, want in zip(found, wanted, strict=True):
            _assert_like(got, want, f"{group} {number}", ordered=backend == "cpu")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", OPEN)
def test_one_trace_serves_every_size(name: str, backend: str) -> None:
    fused = _fused(OPEN[name], backend)
    served = 0
    for shape in SHAPES:
        x = _array(shape)
        try:
            wanted = _listed(OPEN[name](x))
        except ValueError:  # an empty axis has no border to continue
            with pytest.raises(ShapeError, match="extend empty axis"):
                fused(*([to_torch(x)] if backend == "cuda" else [x]))
            continue
        served += 1
        for got, want in zip(_call(fused, backend, x), wanted, strict=True):
            _assert_like(got, want, f"{name} {shape}", ordered=False)
    assert served >= 4
    assert fused.cache_info().traces == 1


def _index_calls() -> list[tuple[Any, Any]]:
    random = np.random.default_rng(3)
    shapes = [(5, 4, 3), (1, 4, 2), (5, 4, 0), (5, 1, 1), (2, 3, 7)]
    return [
        (_array((a, b)), random.integers(-min(a, b), min(a, b), k))
        for a, b, k in shapes
    ]


INDEXED: dict[str, Callable[[Any, Any], Any]] = {
    "take": lambda x, i: np.take(x, i, axis=0) + 1,
    "wrap": lambda x, i: np.take(x, i * 9, axis=1, mode="wrap"),
    "clip": lambda x, i: np.take(x, i * 9, axis=1, mode="clip"),
    "rows": lambda x, i: x[i, :, None] + 1,
    "columns": lambda x, i: x[:, i] * 2,
    "narrow": lambda x, i: x[i.astype(np.int8)],
    "u64": lambda x, i: x[np.abs(i).astype(np.uint64) % x.shape[0]],
    "flat": lambda x, i: x.reshape(-1)[i],
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", INDEXED)
def test_one_trace_serves_every_index(name: str, backend: str) -> None:
    fused = _fused(INDEXED[name], backend)
    for x, i in _index_calls():
        (got,) = _call(fused, backend, x, i)
        _assert_like(got, INDEXED[name](x, i), f"{name} {x.shape}", ordered=False)
    assert fused.cache_info().traces == 1


# One function each, called with a (4, 3) array and each number in turn.
NUMBERS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    "pad": (lambda x, n: np.pad(x, ((n, 0), (0, n))), (2, 0, 5)),
    "crop": (lambda x, n: xp.pad(x, ((n, 1), (0, n))), (2, 0, -1, -3)),
    "fill": (lambda x, n: np.pad(x, 1, constant_values=n), (2, -5)),
    "reflect": (lambda x, n: np.pad(x, ((0, n), (n, 1)), mode="reflect"), (2, 0, 11)),
    "reshape": (lambda x, n: x.reshape(n, -1), (2, 6, 12, 1)),
    "roll": (lambda x, n: np.roll(x, n, 1), (2, -7, 0)),
    "tile": (lambda x, n: np.tile(x, (n, 2)), (2, 0, 5, 1)),
    "repeat": (lambda x, n: np.repeat(x, n, 0), (2, 0, 5, 1)),
    "zeros": (lambda x, n: xp.zeros((n, 4, 3)) + x, (2, 0, 5, 1)),
    "arange": (lambda x, n: xp.arange(n, -5, -2) + x[0, 0], (4, 5, -5, -8)),
    "eye": (lambda x, n: xp.eye(n, k=1) + xp.eye(n, 4, n - 2).sum(), (4, 1, 0)),
    "linspace": (lambda x, n: xp.linspace(0, n, n) + x[0, 0], (4, 1, 0, 100)),
    "values": (lambda x, n: x * x.shape[0] + np.sqrt(n) + x / n + n // 2, (4, 1, 9)),
    "triangle": (lambda x, n: np.tril(x, n) + np.triu(x, n + 1), (0, -5, 9)),
    "sum of copies": (lambda x, n: np.broadcast_to(x, (n, 4, 3)).sum(0), (4, 1, 0)),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", NUMBERS)
def test_one_trace_serves_every_number(name: str, backend: str) -> None:
    function, numbers = NUMBERS[name]
    fused, x = _fused(function, backend), _array((4, 3))
    for n in numbers:
        (got,) = _call(fused, backend, x, n)
        _assert_like(got, function(x, n), f"{name} {n}", ordered=False)
    assert fused.cache_info().traces == 1


SLICES: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, n: x[n:] + 1,
    lambda x, n: x[:n] + 1,
    lambda x, n: x[n::-1] + 1,
    lambda x, n: x[n : n + 2, -n:] + 1,
)


@pytest.mark.filterwarnings("ignore:.*was traced 8 times")  # one for each case
@pytest.mark.parametrize("function", SLICES)
def test_slices_by_run_time_numbers_are_numpys(function: Any) -> None:
    fused = nfuser.fuse(function, backend="cpu")
    for size in (4, 1, 0):
        for n in (2, 0, -1, 9, -9, 3):
            x = _array((size, 3))
            _assert_like(fused(x, n), function(x, n), f"{size} {n}", ordered=False)


# One function each; the second call is refused by the trace or by its check.
BAD: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...], str]] = {
    "reshape": (lambda x: x.reshape(2, -1) + 1, ((4, 3),), ((3, 3),), "into shape"),
    "sizes": (lambda x, n: x.reshape(n, 6), ((4, 3), 2), ((4, 3), 3), "into shape"),
    "two": (
        lambda x, n: x.reshape(n, -1),
        ((4, 3), 2),
        ((4, 3), -1),
        "one unknown dimension",
    ),
    "crop": (lambda x, n: xp.pad(x, n), ((4, 3), 2), ((4, 3), -2), "drop more than"),
    "pad": (lambda x, n: np.pad(x, n), ((4, 3), 2), ((4, 3), -1), "negative values"),
    "edge": (
        lambda x: np.pad(x, 1, mode="edge"),
        ((4, 3),),
        ((4, 0),),
        "can't extend empty axis 1",
    ),
    "join": (
        lambda x, y: np.concatenate([x, y]),
        ((4, 3), (2, 3)),
        ((4, 3), (2, 4)),
        "size 3 and the array at 1 has size 4",
    ),
    "squeeze": (lambda x: x.squeeze(0) + 1, ((1, 3),), ((2, 3),), "not equal to one"),
    "split": (
        lambda x: np.split(x, 2)[0] + 1,
        ((4, 3),),
        ((3, 3),),
        "equal division: 2 parts of axis 0 of shape (3,3)",
    ),
    "index": (
        lambda x, n: x[:, n] + 1,
        ((4, 3), -3),
        ((4, 3), 3),
        "index 3 is out of bounds for axis 1 with size 3",
    ),
    "list": (
        lambda x: x[[0, 3]] + 1,
        ((4, 3),),
        ((3, 3),),
        "index 3 is out of bounds for axis 0 with size 3",
    ),
    "take": (
        lambda x: np.take(x, [0, -2], axis=1),
        ((4, 3),),
        ((4, 1),),
        "take: index -2 is out of bounds for axis 1 with size 1",
    ),
    "tile": (
        lambda x, n: np.tile(x, n),
        ((4, 3), 2),
        ((4, 3), -1),
        "negative dimensions",
    ),
    "zeros": (
        lambda x, n: xp.zeros((n, 3)) + x[0],
        ((4, 3), 2),
        ((4, 3), -1),
        "negative dimensions are not allowed: the result would get the shape (-1,3)",
    ),
    "step": (lambda x, n: x[::n] + 1, ((4, 3), 2), ((4, 3), 0), "cannot be zero"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_later_call_that_does_not_fit_is_refused(name: str) -> None:
    function, good, bad, message = BAD[name]
    fused = nfuser.fuse(function, backend="cpu")

    def arguments(listed: tuple[Any, ...]) -> list[Any]:
        return [_array(a) if isinstance(a, tuple) else a for a in listed]

    fused(*arguments(good))
    with pytest.raises(NfuserError) as caught:
        fused(*arguments(bad))
    assert message in str(caught.value)
    assert f"{__file__}:" in str(caught.value)
    if name in ("index", "list", "take"):
        assert isinstance(caught.value, IndexError)
    else:
        assert isinstance(caught.value, ValueError)
    found = fused(*arguments(good))
    _assert_like(found, function(*arguments(good)), name, ordered=False)


def test_plain_numpy_forces_a_size_and_says_so_once() -> None:
    def shifted(x: Any) -> Any:
        return x + np.zeros((x.shape[0], 3)) + np.arange(x.shape[0])[:, None]

    fused = nfuser.fuse(shifted, backend="cpu")
    with warnings.catch_warnings(record=True, action="always") as seen:
        for shape in ((4, 3), (1, 3), (0, 3), (4, 1), (4, 3)):
            x = _array(shape)
            _assert_like(fused(x), shifted(x), str(shape))
    (warned,) = seen
    assert "arange of nfuser.numpy keep it open" in str(warned.message)
    assert f"{__file__}:" in str(warned.message)
    assert fused.cache_info().traces == 3


def test_what_numpy_makes_like_a_traced_array_keeps_sizes_open() -> None:
    def made(x: Any) -> Any:
        rows = np.arange(x.shape[0], like=x)
        return np.ones((x.shape[0], 3), like=x) + rows[:, None]

    fused = nfuser.fuse(made, backend="cpu")
    for size in (4, 1, 0, 5):
        wanted = np.ones((size, 3)) + np.arange(size)[:, None]
        _assert_like(fused(_array((size,))), wanted, str(size))
    assert fused.cache_info().traces == 1


def test_an_index_on_the_device_is_clipped() -> None:
    fused = nfuser.fuse(lambda x, i: x[i] + 0, backend="cpu")
    x = np.arange(4.0)
    found = fused(x, np.array([7, -7, 3, -4]))
    np.testing.assert_array_equal(found, [3.0, 0.0, 3.0, 0.0])


def test_a_captured_index_is_checked_while_tracing() -> None:
    index = np.array([0, 5])
    fused = nfuser.fuse(lambda x: x[index] + 0, backend="cpu")
    assert fused(np.arange(6.0)).tolist() == [0.0, 5.0]
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0"):
        fused(np.arange(5.0))
