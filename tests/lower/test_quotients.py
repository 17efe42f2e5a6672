# SPDX-License-Identifier: Apache-2.0
"""Quotients as products: what they give, evaluated as the kernel evaluates them."""

# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.compiler.dtypes import DType
from nfuser.compiler.lower.cuda import quotients
from nfuser.compiler.lower.kernel.kernel_ir import Call, Let, Number, Value, Var
from nfuser.execution.interpret.primitives import ELEMENTWISE

if TYPE_CHECKING:
    from nfuser.compiler.lower.kernel.kernel_ir import Stmt

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -3.0, 1e-45, 1e-38, 3e38, np.inf, -np.inf, np.nan], np.float32
)


def _evaluated(value: Value, known: dict[Var, Any]) -> Any:
    match value:
        case Var():
            return known[value]
        case Number(number, dtype):
            return dtype.numpy.type(number)
        case Call("select", operands):
            condition, yes, no = (_evaluated(x, known) for x in operands)
            return np.where(condition, yes, no)
        case Call("less", (a, b)):
            return _evaluated(a, known) < _evaluated(b, known)
        case Call("reciprocal_near", (a,)):
            return np.reciprocal(_evaluated(a, known))
        case Call(op, operands):
            meaning = ELEMENTWISE[op].meaning
            return meaning(*(_evaluated(x, known) for x in operands))
        case _:
            raise AssertionError(value)


def _quotient(
    make: quotients.Exact | quotients.Near,
    x: np.ndarray,
    y: np.ndarray,
    least: float = -np.inf,
) -> np.ndarray:
    element, divisor = Var(DType.F32), Var(DType.F32)
    stmts: list[Stmt] = []
    inverse = make.inverse(divisor, stmts, least)
    known: dict[Var, Any] = {element: x, divisor: y}
    with np.errstate(all="ignore"):
        for stmt in stmts:
            assert isinstance(stmt, Let)
            known[stmt.var] = _evaluated(stmt.value, known)
        return _evaluated(make.product(element, inverse), known)


def _pairs() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**32, (2, 1_000_000), np.uint32)
    x, y = bits.view(np.float32)
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    return np.concatenate([x, a.ravel()]), np.concatenate([y, b.ravel()])


def test_an_exact_quotient_is_that_of_a_division() -> None:
    x, y = _pairs()
    with np.errstate(all="ignore"):
        want = x / y
    got = _quotient(quotients.exact, x, y)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("scale", [1, 2**-30, 2**-126, 2**-140, 2**100])
def test_a_near_quotient_is_within_3_ulp(scale: float) -> None:
    random = np.random.default_rng(0)
    x = random.uniform(0.5, 2, 10_000).astype(np.float32)
    y = (random.uniform(0.5, 1, 10_000) * scale).astype(np.float32)
    x = (x * np.float32(min(scale, 1))).astype(np.float32)
    with np.errstate(all="ignore"):
        want = x.astype(np.float64) / y
    got = _quotient(quotients.near, x, y)
    np.testing.assert_allclose(got, want, rtol=3 * 2.0**-23)


def test_a_near_quotient_by_what_is_not_tiny_is_one_product() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal(10_000).astype(np.float32)
    y = (2.0 ** random.uniform(-50, 127, x.size)).astype(np.float32)
    got = _quotient(quotients.near, x, y, float(y.min()))
    np.testing.assert_allclose(
        got, x.astype(np.float64) / y, rtol=3 * 2.0**-23, atol=1e-37
    )
    stmts: list[Stmt] = []
    assert len(quotients.near.inverse(Var(DType.F32), stmts, float(y.min()))) == 1


def test_a_near_quotient_of_what_is_not_finite_is_that_of_a_division() -> None:
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        want = x / y
    got = _quotient(quotients.near, x, y)
    special = (~np.isfinite(want)) | (want == 0)
    np.testing.assert_array_equal(got[special], want[special])
