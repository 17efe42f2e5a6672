# SPDX-License-Identifier: Apache-2.0
"""The text of fusions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import FromScalar, Iota, Pointwise, ReduceOp
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ir.tensor import SourceLine, tensor
from nfuser.compiler.ir.text import text
from tests.hand_built import Hand, hand_softmax

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.fusion import Fusion


def test_a_softmax(golden: Callable[[str], None]) -> None:
    golden(text(hand_softmax()))


def _every_kind() -> Fusion:
    hand = Hand()
    x = hand.argument(2, DType.BF16)
    alpha = hand.number()
    wide = hand.cast(x, DType.F32)
    n, m = x.shape
    half = hand.slice(wide, (m // 2, 0), (1, 2), (n - m // 2, (m + 1) // 2))
    turned = hand.permute(half, 1, 0)
    mean, spread = hand.moments(turned, 0)
    column = hand.expand_dims(mean, 0)
    row = hand.squeeze(column, 0)
    full = hand.expand(hand.constant(-0.0), *row.shape)
    index = tensor(row.shape, DType.I64)
    hand.exprs.append(Iota(index))
    count = tensor((), DType.I64)
    hand.exprs.append(FromScalar(n * m + 1, count))
    where = hand.point("select", hand.point("less", index, count), row, full)
    top = hand.reduce(ReduceOp.ARGMAX, wide, 0, 1)
    return hand.fusion(where, hand.point("multiply", spread, alpha), top)


def test_every_kind_of_expression(golden: Callable[[str], None]) -> None:
    golden(text(_every_kind()))


def test_equal_fusions_print_alike() -> None:
    assert text(_every_kind()) == text(_every_kind())


def test_the_line_of_the_user_stands_behind_an_expression() -> None:
    hand = Hand()
    x = hand.argument(1)
    line = SourceLine("/somewhere/model.py", 12, "y = -x")
    y = tensor(x.shape, x.dtype, line)
    hand.exprs.append(Pointwise(POINT_OPS["negative"], (x,), y))
    assert text(hand.fusion(y)) == (
        "fusion hand(T0: f32[? n0]) -> T1\n"
        "  T1: f32[? n0] = negative(T0)  # model.py:12\n"
    )
