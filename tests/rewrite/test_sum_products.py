# SPDX-License-Identifier: Apache-2.0
"""A computed matrix times one row or column is added up where it is computed."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


def _array(*shape: int, dtype: str = "float64") -> Array:
    return np.random.default_rng(len(shape)).random(shape).astype(dtype)


def _column(matrix: Array, vector: Array) -> Array:
    return (matrix * 2) @ vector


def _row(matrix: Array, vector: Array) -> Array:
    return vector @ np.sqrt(matrix)


S = _array(5, 5)
M, B, F = _array(7, 5), _array(3, 7, 5), _array(7, 5, dtype="float32")
SUMS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "a column of one axis": (_column, (M, M[0])),
    "a column": (_column, (M, M[:1].T)),
    "a row of one axis": (_row, (M, M[:, 0])),
    "a row": (_row, (M, M[:, :1].T)),
    "matrices and a column of one axis": (_column, (B, M[0])),
    "matrices and a column": (_column, (B, M[:1].T)),
    "matrices and columns": (_column, (B, B[:, :1].swapaxes(1, 2))),
    "matrices and a row of one axis": (_row, (B, M[:, 0])),
    "matrices and rows": (_row, (B, B[:, :, :1].swapaxes(1, 2))),
    "f32": (_column, (F, F[0])),
    "no elements": (_column, (M[:, :0], M[0, :0])),
    "complex": (lambda a, b: (a * 2j) @ b, (M, M[0])),
}
PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "a matrix of the caller's": (lambda a, b: a @ b, (M, M[0])),
    "two columns": (_column, (M, M[:2].T)),
    "one matrix for several columns": (_column, (M, B[:, :1].swapaxes(1, 2))),
    "a matrix of one row": (_column, (M[:1], M[0])),
    "read again for a second product": (
        lambda a, b: np.exp(a) @ (np.exp(a) @ b),
        (S, M[0]),
    ),
    "read again as it lies turned": (lambda a, b: (c := a * 2).T @ (c @ b), (M, M[0])),
    "integers": (_column, ((M * 9).astype(int), np.arange(5))),
}


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("name", [*SUMS, *PRODUCTS])
def test_what_is_added_up_is_the_product(name: str, backend: str) -> None:
    function, given = (SUMS | PRODUCTS)[name]
    fused = nfuser.fuse(function, backend=backend)
    found, wanted = fused(*given), function(*given)
    assert found.dtype == wanted.dtype
    rtol = 1e-5 if wanted.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, wanted, rtol=rtol, strict=True)
    by_library = "matmul by" in str(fused.explain(*given))
    assert by_library == (name in PRODUCTS)


def test_several_products_of_one_matrix_are_one_kernel() -> None:
    def forces(place: Array, mass: Array) -> tuple[Array, ...]:
        apart = [place[:, k] - place[:, k : k + 1] for k in range(3)]
        weight = 1 / (sum(x * x for x in apart) + 0.1)
        return tuple((x * weight) @ mass for x in apart)

    place, mass = _array(40, 3), _array(40, 1)
    fused = nfuser.fuse(forces, backend="cpu")
    for found, wanted in zip(fused(place, mass), forces(place, mass), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    assert len(fused.kernels(place, mass)) == 1
