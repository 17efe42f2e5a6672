# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that are made of others give what NumPy gives."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import re
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser import numpy as xp
from nfuser.errors import NfuserError
from tests.end_to_end.compositions import MORE, MORE_REFUSALS, with_open_sizes

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES = ((3, 4), (5, 5), (4, 3))
DTYPES = ("f4", "f8", "i4", "?", "c16")
FUNCTIONS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "differences": {
        "diff": lambda x: np.diff(x),
        "diff twice": lambda x: np.diff(x, 2, axis=0),
        "diff of ends": lambda x: np.diff(x, prepend=0, append=x[:, :2]),
        "ediff1d": lambda x: np.ediff1d(x, to_begin=x[0], to_end=[0]),
        "gradient": lambda x: np.gradient(x),
        "gradient of a step": lambda x: np.gradient(x, 2.0, axis=0, edge_order=2),
        "gradient at places": lambda x: np.gradient(x, x.real[:, 0] ** 2 + 1, axis=0),
        "gradient at an edge": lambda x: np.gradient(
            x, 3.0 * xp.arange(x.shape[1]) ** 2, axis=-1, edge_order=2
        ),
        "trapezoid": lambda x: np.trapezoid(x),
        "trapezoid at places": lambda x: np.trapezoid(x, x.real[0], axis=1),
        "trapezoid of rows": lambda x: np.trapezoid(x, dx=0.5, axis=0),
    },
    "averages": {
        "average": lambda x: np.average(x, returned=True),
        "average of rows": lambda x: np.average(x, axis=1, keepdims=True),
        "weighted": lambda x: np.average(x, 0, x[:, 0] + 2, returned=True),
        "weighted each": lambda x: np.average(x, 1, abs(x) + 1),
        "cov": lambda x: np.cov(x),
        "cov of columns": lambda x: np.cov(x, rowvar=False, bias=True),
        # Imaginary parts of the diagonal are 0, or what BLAS leaves of it, over 0.
        "cov of few": lambda x: np.real(np.cov(x, ddof=9)),
        "cov of two": lambda x: np.cov(x[0], x[1]),
        "corrcoef": lambda x: np.corrcoef(x + xp.eye(*x.shape)),
    },
    "norms": {
        "norm": lambda x: np.linalg.norm(x),
        "norm of rows": lambda x: np.linalg.norm(x, axis=1, keepdims=True),
        "norm 1": lambda x: np.linalg.norm(x, 1, axis=0),
        "norm inf": lambda x: np.linalg.norm(x, np.inf, axis=0),
        "norm inf of nothing": lambda x: np.linalg.norm(x[:, :0], np.inf, axis=1),
        "norm 1 of nothing": lambda x: np.linalg.norm(x[:0], 1),
        "norm 0": lambda x: np.linalg.norm(x, 0, axis=0),
        "norm 3": lambda x: np.linalg.norm(x, 3, axis=-1),
        "matrix 1": lambda x: np.linalg.norm(x, 1),
        "matrix -inf": lambda x: np.linalg.norm(x, -np.inf, axis=(1, 0), keepdims=True),
        "frobenius": lambda x: np.linalg.matrix_norm(x),
        "vector": lambda x: np.linalg.vector_norm(x, axis=0, ord=-np.inf),
    },
    "diagonals": {
        "diagonal": lambda x: x.diagonal(),
        "diagonal above": lambda x: np.diagonal(x, 1),
        "diagonal below": lambda x: np.diagonal(x, -2, 1, 0),
        "trace": lambda x: np.trace(x),
        "trace of many": lambda x: np.linalg.trace(np.stack([x, x]), offset=1),
        "diag": lambda x: np.diag(x[0]),
        "diag off": lambda x: np.diag(x[0], -2),
        "diagflat": lambda x: np.diagflat(x, 1),
    },
    "products": {
        "outer": lambda x: np.outer(x, x[0]),
        "outer of a ufunc": lambda x: np.multiply.outer(x, x[0]),
        "dot": lambda x: np.dot(x, x.T),
        "dot of vectors": lambda x: x[0].dot(x[1]),
        "dot of many": lambda x: np.dot(np.stack([x, x]), np.stack([x.T, x.T])),
        "inner": lambda x: np.inner(x, x),
        "vdot": lambda x: np.vdot(x, x),
        "tensordot": lambda x: np.tensordot(x, x, ((0, 1), (0, 1))),
        "tensordot 1": lambda x: np.tensordot(x, x.T, 1),
        "kron": lambda x: np.kron(x, x[0]),
        "cross": lambda x: np.cross(x[:, :3], x[:, 2::-1]),
        "cross of columns": lambda x: np.cross(x[:3], x[2::-1], axis=0),
        "vecdot": lambda x: np.vecdot(x, x),
        "vecdot of columns": lambda x: np.linalg.vecdot(x, x[:, 0], axis=0),
        "matvec": lambda x: np.matvec(x, x[0]),
        "vecmat": lambda x: np.vecmat(x[:, 0], x),
        "power 0": lambda x: np.linalg.matrix_power(np.stack([x[:3, :3]] * 2), 0),
        "power 1": lambda x: np.linalg.matrix_power(x[:3, :3], 1),
        "power 3": lambda x: np.linalg.matrix_power(x @ x.T, 3),
        "power 6": lambda x: np.linalg.matrix_power(np.stack([x, x + 1]) / 8, 6),
        "power -2": lambda x: np.linalg.matrix_power(
            x @ x.conj().T + np.eye(len(x)), -2
        ),
    },
    "einsum": {
        "rows": lambda x: np.einsum("ij,ij->i", x, x),
        "matrices": lambda x: np.einsum("ij,kj", x, x),
        "three": lambda x: np.einsum("ij,kj,kl->il", x, x, x),
        "total": lambda x: np.einsum("ij->", x),
        "turned": lambda x: np.einsum("ij->ji", x),
        "diagonal": lambda x: np.einsum("ii->i", x[:3, :3]),
        "trace": lambda x: np.einsum("ii", x[:3, :3]),
        "many": lambda x: np.einsum("...ij,...kj->...ik", x[None] + x[0], x[None]),
        "dots": lambda x: np.einsum("i...,...->...", x, x[0]),
        "sizes of 1": lambda x: np.einsum("ij,jk", x[:, :1], x),
        "batches": lambda x: np.einsum("bij,bjk->bik", x[:, :, None], x[:, None]),
    },
    "choices": {
        "select": lambda x: np.select([x.real > 1, x.real > 0], [x, 2 * x], 7),
        "piecewise": lambda x: np.piecewise(x, [x.real < 0, x.real > 1], [1, 2, 3]),
        "meshgrid": lambda x: np.meshgrid(x[0], x[:, 0]),
        "meshgrid ij": lambda x: np.meshgrid(x[0], x[1], x[2], indexing="ij"),
        "meshgrid sparse": lambda x: np.meshgrid(x[0], x[:, 0], sparse=True),
        "vander": lambda x: np.vander(x[0]),
        "vander 3": lambda x: np.vander(x[0], 3, increasing=True),
        "rot90": lambda x: np.rot90(x),
        "rot90 back": lambda x: np.rot90(x, -1, axes=(1, 0)),
        "rot180": lambda x: np.rot90(x, 2),
        "modf": lambda x: np.modf(x / 3),
        "modf of bools": lambda x: np.modf(x.real > 0),
        "square of a bool": lambda x: (x.real > 0) ** 2,
    },
    "nan": {
        "nansum": lambda x: np.nansum(x, axis=1),
        "nanprod": lambda x: np.nanprod(x, axis=0, keepdims=True),
        "nanmax": lambda x: np.nanmax(x, axis=1),
        "nanmin": lambda x: np.nanmin(x),
        "nanmean": lambda x: np.nanmean(x, axis=1),
        "nanvar": lambda x: np.nanvar(x, axis=1, ddof=1),
        "nanstd": lambda x: np.nanstd(x, axis=0),
        "nanargmax": lambda x: np.nanargmax(x[:, 1:], axis=0),
        "nanargmin": lambda x: np.nanargmin(x, keepdims=True),
    },
    **MORE,
}

# Complex numbers are neither ordered nor multiplied up.
REFUSED = {
    *((name, "c16") for name in ("vander", "vander 3", "nanprod")),
    *((f"nan{name}", "c16") for name in ("max", "min", "argmax", "argmin")),
}


def _numbers(dtype: str, shape: tuple[int, int], *, with_nan: bool) -> Any:
    random = np.random.default_rng(7)
    found: Any = random.integers(-3, 4, shape) + random.integers(0, 4, shape) / 4
    if dtype == "c16":
        found = found + 1j * random.integers(-3, 4, shape)
    found = found.astype(dtype)
    if with_nan and found.dtype.kind in "fc":
        found[0, ::2] = found[1] = np.nan
        found[2, 0] = np.inf
    return found


def _listed(found: Any) -> list[Any]:
    many = isinstance(found, (tuple, list))
    return [np.asarray(x) for x in (found if many else [found])]


def _wanted(function: Callable[[Any], Any], x: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(x.copy())
        except (TypeError, ValueError) as error:
            return error


def _same(got: Any, wanted: Any, x: Any) -> None:
    close = 1e-5 if x.dtype == np.float32 else 1e-12
    for one, other in zip(_listed(got), _listed(wanted), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=close, atol=close)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FUNCTIONS)
def test_it_gives_what_numpy_gives(family: str, dtype: str) -> None:
    for name, function in FUNCTIONS[family].items():
        fused = nfuser.fuse(function, backend="interpret")
        for shape in SHAPES:
            x = _numbers(dtype, shape, with_nan=family == "nan")
            wanted = _wanted(function, x)
            if isinstance(wanted, Exception) or (name, dtype) in REFUSED:
                with pytest.raises((NfuserError, TypeError, ValueError)):
                    fused(x)
            else:
                _same(fused(x), wanted, x)


def _all_at_once(x: Any) -> Any:
    chosen = ("diff", "weighted", "norm of rows", "diagonal", "rows", "nanvar")
    table = {name: f for family in FUNCTIONS.values() for name, f in family.items()}
    return [table[name](x) for name in chosen]


def test_kernels_of_the_cpu_give_it_too() -> None:
    fused = nfuser.fuse(_all_at_once)
    for shape in SHAPES:
        x = _numbers("f8", shape, with_nan=False)
        for got, wanted in zip(fused(x), _all_at_once(x), strict=True):
            for one, other in zip(_listed(got), _listed(wanted), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("backend", [None, "interpret"])
def test_one_trace_serves_all_sizes(backend: Any) -> None:
    fused = nfuser.fuse(with_open_sizes, backend=backend)
    for length in (40, 30, 57):
        x = np.random.default_rng(length).random(length)
        given = x, x[10:] + x[:-10]
        for got, wanted in zip(fused(*given), with_open_sizes(*given), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)
    assert fused.cache_info().traces == 1


def test_a_product_of_rows_is_one_kernel() -> None:
    x = np.ones((40, 50))
    fused = nfuser.fuse(lambda x, y: np.einsum("ij,ij->i", x, y))
    assert len(fused.kernels(x, x)) == 1


REFUSALS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "order": (lambda x: np.diff(x, -1), "order n of 0 or more"),
    "spacings": (lambda x: np.gradient(x, 1, 2, 3), "one for each of 2 axes"),
    "edge": (lambda x: np.gradient(x, edge_order=3), "edge_order of 1 or 2"),
    "singular": (lambda x: np.linalg.norm(x, "nuc"), "singular values"),
    "letters": (lambda x: np.einsum("ij,jk->ik", x), "names 2 operands"),
    "axes": (lambda x: np.einsum("ijk->i", x), "does not name the axes"),
    "result": (lambda x: np.einsum("ij->ik", x), "letters of the operands"),
    "sizes": (lambda x: np.einsum("ij,jk", x, x), "the letter 'j' have sizes 4 and 3"),
    "lists": (lambda x: np.einsum(x, [0, 1]), "letters first"),
    "dots": (lambda x: np.einsum("...i,i->i", x, x[0]), "write '...' there, too"),
    "square": (lambda x: np.linalg.matrix_power(x, 2), "square matrices"),
    "lengths": (lambda x: np.linalg.vecdot(x, x[0, :1]), "vectors of one length"),
    "wide weights": (lambda x: np.average(x, 0, x[:1]), "weights of the sizes"),
    "weights": (lambda x: np.average(x, weights=x[0]), "axis must be given"),
    "choices": (lambda x: np.select([x > 0], [x, x]), "as many conditions"),
    "numbers": (lambda x: np.select([x], [x]), "conditions of dtype bool"),
    "pieces": (lambda x: np.piecewise(x, [x > 0], [np.exp]), "where(condition"),
    "vectors": (lambda x: np.cross(x, x), "vectors of 3 elements"),
    "tensordot": (lambda x: np.tensordot(x, x, 1), "axes of equal sizes"),
    "indexing": (lambda x: np.meshgrid(x[0], indexing="yx"), "'xy' or 'ij'"),
    "place": (lambda x: np.outer(x, x, out=x), "out= is not supported"),
    **MORE_REFUSALS,
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_it_cannot_do_says_so(case: str) -> None:
    function, words = REFUSALS[case]
    with pytest.raises(NfuserError, match=re.escape(words)):
        nfuser.fuse(function)(np.ones((3, 4)))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_the_extreme_of_no_numbers_is_none(backend: Any, axis: int | None) -> None:
    x = _numbers("f4", (6, 700), with_nan=True)
    x[:, 3] = np.nan
    x[4] = -np.inf
    for of in (x, x[1:2], x[4:5]):
        for name in ("nanmax", "nanmin"):
            function = partial(getattr(np, name), axis=axis, keepdims=True)
            got = nfuser.fuse(lambda a, f=function: f(a), backend=backend)(of)
            np.testing.assert_array_equal(got, _wanted(function, of))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("aim", [0.0, -0.0, 1.0, -np.inf, np.inf, np.nan])
def test_each_half_has_the_neighbours_it_has_in_numpy(dtype: Any, aim: float) -> None:
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    y = np.full_like(x, aim)
    with np.errstate(all="ignore"):
        wanted = np.nextafter(x, y)
    for backend in (None, "interpret"):
        found = nfuser.fuse(_nextafter, backend=backend)(x, y)
        same = found.view(np.uint16) == wanted.view(np.uint16)
        assert (same | (np.isnan(found) & np.isnan(wanted))).all()


def _nextafter(x: Any, y: Any) -> Any:
    return np.nextafter(x, y)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "any", "argmin", "ptp"])
def test_a_number_folds_along_its_first_axis_or_its_last(name: str) -> None:
    x, fold = np.array(3.0), getattr(np, name)
    fused = nfuser.fuse(lambda x: (fold(x, axis=0), fold(x, axis=-1)))
    assert fused(x) == (fold(x, axis=0), fold(x, axis=-1))
    with pytest.raises(NfuserError, match="out of bounds"):
        nfuser.fuse(lambda x: fold(x, axis=1))(x)


def test_more_numbers_than_a_half_can_count() -> None:
    x = np.tile(np.array([0, 0.5], "f2"), 35_000)
    found = nfuser.fuse(lambda x: (np.nanmean(x), np.nanvar(x), np.nanstd(x)))(x)
    assert found == (0.25, 0.0625, 0.25)
    assert {y.dtype for y in found} == {np.dtype("f2")}


def test_the_first_power_of_a_matrix_is_the_matrix() -> None:
    def work(a: Any) -> Any:
        b = np.linalg.matrix_power(a, 1)
        b[0, 0] = 9
        return a, b

    a = np.arange(4.0).reshape(2, 2)
    left, right = nfuser.fuse(work, backend="interpret")(a)
    assert left is a
    assert right is a
    assert a[0, 0] == 9
