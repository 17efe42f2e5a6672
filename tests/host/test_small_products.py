# SPDX-License-Identifier: Apache-2.0
"""Small products are made by NumPy's BLAS without NumPy, and are what NumPy makes."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.execution.host.call.library.small_products as small_products
from nfuser.compiler.dtypes import DType
from nfuser.execution.device.native.blas import gemm, gemv
from nfuser.execution.device.native.library import procedure_caller
from nfuser.execution.host.call.library.small_products import (
    MOST_WORK,
    by_blas,
    small_product,
)
from nfuser.execution.host.call.program import (
    CallLibrary,
    Operand,
    Slot,
    SlotPart,
    ViewOf,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Shape = tuple[int, ...]
RNG = np.random.default_rng(0)

PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[Shape, Shape]]] = {
    "matrices": (lambda x, y: x @ y, ((64, 8), (8, 16))),
    "first transposed": (lambda x, y: x.T @ y, ((8, 64), (8, 16))),
    "second transposed": (lambda x, y: x @ y.T, ((64, 8), (16, 8))),
    "both transposed": (lambda x, y: x.T @ y.T, ((8, 64), (16, 8))),
    "result transposed": (lambda x, y: (x @ y).T, ((64, 8), (8, 16))),
    "one column": (lambda x, y: x @ y, ((64, 8), (8, 1))),
    "one row": (lambda x, y: x @ y, ((1, 8), (8, 16))),
    "one row of a transposed": (lambda x, y: x @ y.T, ((1, 8), (16, 8))),
    "one column of a transposed": (lambda x, y: x.T @ y, ((8, 64), (8, 1))),
    "one column of a slice": (lambda x, y: x[:, :5] @ y[2:7, 3:4], ((64, 8), (8, 16))),
    "a row with steps": (lambda x, y: x[3:4, ::2] @ y, ((64, 8), (4, 16))),
    "many of one column": (lambda x, y: x @ y, ((200, 200), (200, 1))),
    "outer": (lambda x, y: x @ y, ((64, 1), (1, 16))),
    "outer of a row": (lambda x, y: x @ y, ((1, 1), (1, 16))),
    "inner": (lambda x, y: x @ y, ((8,), (8,))),
    "inner of matrices": (lambda x, y: x @ y, ((1, 8), (8, 1))),
    "vector first": (lambda x, y: x @ y, ((8,), (8, 16))),
    "vector second": (lambda x, y: x @ y, ((64, 8), (8,))),
    "slices": (lambda x, y: x[3:40, 2:6] @ y[1:5, 4:], ((64, 8), (8, 16))),
    "steps of rows": (lambda x, y: x[::3] @ y, ((64, 8), (8, 16))),
    "steps of columns": (lambda x, y: x[:, ::2] @ y[::2], ((64, 8), (8, 16))),
    "a column of many": (lambda x, y: x @ y[:, 3], ((64, 8), (8, 16))),
    "reversed": (lambda x, y: x[::-1] @ y, ((64, 8), (8, 16))),
    "reshaped": (lambda x, y: x.reshape(-1, 8) @ y, ((4, 16, 8), (8, 16))),
    "expanded": (lambda x, y: np.broadcast_to(x, (64, 8)) @ y, ((8,), (8, 16))),
    "one of many": (lambda x, y: x[1] @ y, ((3, 64, 8), (8, 16))),
    "no inner": (lambda x, y: x @ y, ((64, 0), (0, 16))),
    "a number": (lambda x, y: (x @ y) * 2, ((1, 1), (1, 1))),
    "the largest": (lambda x, y: x @ y, ((64, 64), (64, 64))),
    "one too large": (lambda x, y: x @ y, ((65, 64), (64, 64))),
}


def _arrays(shapes: tuple[Shape, ...], dtype: str, order: Any = "C") -> list[Any]:
    return [np.asarray(RNG.standard_normal(s), dtype, order) for s in shapes]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32"])
@pytest.mark.parametrize("case", PRODUCTS)
def test_each_call_of_a_product_gives_the_same_bits(
    case: str, dtype: str, order: str
) -> None:
    function, shapes = PRODUCTS[case]
    arrays = _arrays(shapes, dtype, order)
    fused = nfuser.fuse(function)
    first, *rest = (fused(*arrays) for _ in range(5))  # native from the third on
    wanted = function(*(a.astype(np.promote_types(dtype, "f8")) for a in arrays))
    limit = 1e-5 if dtype in ("float32", "complex64") else 1e-13
    np.testing.assert_allclose(first, wanted, limit, limit)
    assert first.dtype == dtype
    for found in rest:
        np.testing.assert_array_equal(found, first, strict=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_no_number_goes_where_numpy_puts_it(dtype: str) -> None:
    x, y = _arrays(((6, 4), (4, 5)), dtype)
    x[1, 2], x[3, 0], y[3, 3] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        wanted = x @ y
    fused = nfuser.fuse(lambda x, y: x @ y)
    for _ in range(4):
        np.testing.assert_allclose(fused(x, y), wanted, 1e-5)


def test_a_product_that_is_assigned_to_an_operand() -> None:
    @nfuser.fuse
    def step(x: Any, y: Any) -> None:
        x[:] = x @ y

    for _ in range(5):
        x, y = _arrays(((6, 6), (6, 6)), "float64")
        wanted = x @ y
        step(x, y)
        np.testing.assert_allclose(x, wanted, 1e-12)


def test_a_matrix_times_its_own_transpose_is_symmetric() -> None:
    (x,) = _arrays(((40, 30),), "float32")
    fused = nfuser.fuse(lambda x: x @ x.T)
    for _ in range(4):
        found = fused(x)
        np.testing.assert_array_equal(found, found.T)


def test_numpy_makes_products_where_its_blas_is_not_found(monkeypatch: Any) -> None:
    monkeypatch.setattr(small_products, "gemm", lambda _: None)
    x, y = _arrays(((6, 4), (4, 5)), "float32")
    fused = nfuser.fuse(lambda x, y: np.exp(x) @ y)
    for _ in range(4):
        np.testing.assert_allclose(fused(x, y), np.exp(x) @ y, 1e-5)


def _call(
    *operands: Operand, steps: Shape = (5, 1), dtype: DType = DType.F32
) -> CallLibrary:
    return CallLibrary("matmul", operands, Slot("z", (3, 5), steps, dtype))


X = Slot("x", (3, 4), (4, 1), DType.F32)
Y = Slot("y", (4, 5), (5, 1), DType.F32)


def test_a_product_says_how_its_matrices_lie() -> None:
    turned = Slot("y", (5, 4), (4, 1), DType.F32)
    view = ViewOf("permute", (1, 0))
    stmt = _call(Operand(SlotPart(X)), Operand(SlotPart(turned), (view,)))
    made = small_product(stmt)
    if made is None:
        pytest.skip("NumPy names no BLAS here")
    order, lhs, rhs, *sizes = made.parameters[:6]
    assert (order, lhs, rhs, sizes) == (101, 111, 112, [3, 5, 4])


def test_a_result_in_columns_is_the_transposed_product() -> None:
    made = small_product(
        _call(Operand(SlotPart(X)), Operand(SlotPart(Y)), steps=(1, 3))
    )
    if made is None:
        pytest.skip("NumPy names no BLAS here")
    assert made.parameters[3:6] == (5, 3, 4)
    first, second, out = (
        x.slot.name for x in made.parameters if isinstance(x, SlotPart)
    )
    assert (first, second, out) == ("y", "x", "z")


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
@pytest.mark.parametrize(
    ("shapes", "is_vector"),
    [
        (((6, 4), (4, 5)), False),
        (((6, 4), (4, 1)), True),
        (((1, 4), (4, 5)), True),
        (((1, 4), (4, 1)), True),
        (((6, 4), (4,)), True),
        (((4,), (4, 5)), True),
    ],
)
def test_one_column_or_one_row_is_a_product_with_a_vector(
    shapes: tuple[Shape, Shape], is_vector: bool, dtype: DType
) -> None:
    # NumPy asks for the same: that for two matrices takes four times as long.
    shape = np.matmul(*(np.ones(s) for s in shapes)).shape
    slots = (
        Slot(name, size, tuple(s // 8 for s in np.empty(size).strides), dtype)
        for name, size in zip("xyz", (*shapes, shape), strict=True)
    )
    lhs, rhs, out = slots
    stmt = CallLibrary("matmul", (Operand(SlotPart(lhs)), Operand(SlotPart(rhs))), out)
    if (made := small_product(stmt)) is None:
        pytest.skip("NumPy names no BLAS here")
    wanted = (gemv if is_vector else gemm)(dtype)
    assert wanted is not None
    assert made.address == wanted.address
    assert made.caller == procedure_caller(wanted.kinds)


def test_a_result_over_an_operand_is_left_to_numpy() -> None:
    slots = [Slot(name, (4, 4), (4, 1), DType.F32) for name in "xyz"]
    lhs, rhs, out = slots
    stmt = CallLibrary("matmul", (Operand(SlotPart(lhs)), Operand(SlotPart(rhs))), out)
    if (made := small_product(stmt)) is None:
        pytest.skip("NumPy names no BLAS here")
    called: list[Any] = []
    multiply = by_blas(made, slots, lambda *given: called.append(given))
    x, y = _arrays(((4, 4), (4, 4)), "float32")
    multiply(x, y, x)
    assert len(called) == 1
    multiply(x, y, z := np.empty_like(x))
    assert len(called) == 1
    np.testing.assert_allclose(z, x @ y, 1e-5, 1e-5)


@pytest.mark.parametrize(
    "stmt",
    [
        _call(Operand(SlotPart(X)), Operand(SlotPart(Y)), dtype=DType.F64),
        _call(Operand(SlotPart(X, step=48)), Operand(SlotPart(Y))),
        _call(Operand(SlotPart(X)), Operand(SlotPart(Y)), steps=(10, 2)),
        _call(Operand(SlotPart(X)), Operand(SlotPart(X), (ViewOf("permute", (1, 0)),))),
    ],
    ids=["two dtypes", "a part that moves", "a result with gaps", "one array"],
)
def test_other_products_are_numpys(stmt: CallLibrary) -> None:
    assert small_product(stmt) is None


def test_large_products_let_other_threads_run() -> None:
    n = round(MOST_WORK ** (1 / 3)) + 1
    lhs, rhs, out = (Slot(name, (n, n), (n, 1), DType.F32) for name in "xyz")
    stmt = CallLibrary("matmul", (Operand(SlotPart(lhs)), Operand(SlotPart(rhs))), out)
    assert small_product(stmt) is None
