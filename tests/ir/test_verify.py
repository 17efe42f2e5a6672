# SPDX-License-Identifier: Apache-2.0
"""The verifier takes what is well formed and names what is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    Expand,
    ExpandDims,
    Permute,
    Pointwise,
    Reduce,
    ReduceOp,
    Slice,
    Squeeze,
)
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ir.scalars.scalar import const
from nfuser.compiler.ir.tensor import tensor
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.errors import VerifyError
from tests.fusions import CASES
from tests.hand_built import Hand, hand_softmax, settled, traced

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Expr


@pytest.mark.parametrize("name", CASES)
def test_named_fusions_verify_before_and_after_concretization(name: str) -> None:
    case = CASES[name]
    verify_fusion(traced(case.function, *case.arguments()))
    verify_fusion(settled(case.function, *case.arguments()))


def test_a_use_before_the_definition_is_refused() -> None:
    fusion = hand_softmax()
    swapped = (fusion.exprs[0], *fusion.exprs[2:], fusion.exprs[1])
    with pytest.raises(VerifyError, match="used before its definition"):
        verify_fusion(Fusion("swapped", swapped, fusion.outputs))


def test_a_second_definition_is_refused() -> None:
    fusion = hand_softmax()
    twice = (*fusion.exprs, replace(fusion.exprs[-1]))
    with pytest.raises(VerifyError, match="defined twice"):
        verify_fusion(Fusion("twice", twice, fusion.outputs))


def test_an_output_without_definition_is_refused() -> None:
    stray = tensor((3,), DType.F32)
    with pytest.raises(VerifyError, match="an output of stray has no definition"):
        verify_fusion(Fusion("stray", hand_softmax().exprs, [stray]))


HAND = Hand()
X, Y = HAND.shaped(4, 6), HAND.shaped(4, 6, dtype=DType.F64)
ADD, LESS = POINT_OPS["add"], POINT_OPS["less"]
SCALAR, VECTOR, OTHER = (tensor(s, DType.F32) for s in ((), (6,), (4, 5)))
TALL = tensor((4, 6, 1), DType.F32)
ZERO = const(0)
BAD: dict[str, tuple[Expr, str]] = {
    "arity": (Pointwise(ADD, (X,), replace(X)), "add takes 2 operands"),
    "operands": (Pointwise(ADD, (X, Y), replace(X)), "operands differ in dtype"),
    "result": (Pointwise(ADD, (X, X), replace(Y)), "the result's dtype differs"),
    "predicate": (Pointwise(LESS, (X, X), replace(X)), "a predicate gives bool"),
    "rank": (Pointwise(ADD, (X, X), VECTOR), "an operand has more axes"),
    "permute": (Permute(X, replace(X), (1, 0)), "the order does not fit"),
    "permute twice": (Permute(X, replace(X), (1, 1)), "the order does not fit"),
    "expand_dims": (ExpandDims(X, TALL, (0,)), "axes do not fit"),
    "squeeze": (Squeeze(X, VECTOR, (1,)), "axes do not fit"),
    "slice": (Slice(X, OTHER, (ZERO,), (1, 1)), "ranks differ"),
    "expand": (Expand(X, VECTOR), "drops axes"),
    "reduce": (Reduce(ReduceOp.SUM, X, (VECTOR,), (1,)), "the results' axes"),
    "moments": (Reduce(ReduceOp.MOMENTS, X, (VECTOR,), (0,)), "the results' axes"),
    "two sums": (
        Reduce(ReduceOp.SUM, X, (VECTOR, replace(VECTOR)), (0,)),
        "the results' axes",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_expression_is_refused_with_the_program(name: str) -> None:
    expr, problem = BAD[name]
    fusion = Fusion("bad", (*HAND.exprs, expr), [X])
    with pytest.raises(VerifyError, match=problem) as caught:
        verify_fusion(fusion)
    assert "expression 2 of bad" in str(caught.value)
    assert "fusion bad(T0: f32[4, 6], T1: f64[4, 6]) -> T0" in str(caught.value)


def test_a_case_of_a_select_has_its_own_dtype() -> None:
    hand = Hand()
    x = hand.argument(1)
    verify_fusion(hand.fusion(hand.point("select", hand.point("isnan", x), x, x)))
