# SPDX-License-Identifier: Apache-2.0
"""16-bit floats are computed in f32 and rounded at outputs and casts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Argument, ReduceOp
from nfuser.compiler.ir.point_op import CAST
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.compiler.rewrite.dead_code import drop_dead_code
from nfuser.compiler.rewrite.types.compute_types import widen_halves
from tests.hand_built import Hand, hand_softmax, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.fusion import Fusion


def test_a_softmax_in_bf16(golden: Callable[[str], None]) -> None:
    golden(text(widen_halves(hand_softmax(DType.BF16))))


def _with_explicit_cast() -> Fusion:
    hand = Hand()
    x, alpha = hand.argument(1), hand.number(DType.F64)
    rounded = hand.cast(hand.point("exp", x), DType.F16)
    scaled = hand.point("multiply", rounded, hand.cast(alpha, DType.F16))
    return hand.fusion(hand.cast(scaled, DType.F32), rounded)


def test_an_explicit_cast_rounds(golden: Callable[[str], None]) -> None:
    made = widen_halves(_with_explicit_cast())
    verify_fusion(made)
    golden(text(made))


def _with_copy() -> Fusion:
    hand = Hand()
    x = hand.argument(2, DType.F16)
    y = hand.point("copy", hand.point("add", x, x))
    mean, spread = hand.moments(y, 1)
    top = hand.reduce(ReduceOp.ARGMAX, x, 1)
    return hand.fusion(mean, spread, top, y, x)


def _products(x: Any, y: Any) -> Any:
    return x.T @ np.exp(y), (x @ y.T) * 2, x.T + 1


def test_products_take_halves_and_give_f32_to_kernels(
    golden: Callable[[str], None],
) -> None:
    given = np.ones((3, 3), np.float16), np.ones((3, 3), np.float16)
    made = widen_halves(settled(_products, *given))
    verify_fusion(made)
    shown = text(drop_dead_code(made))
    golden(re.sub(r"  # \S+:\d+$", "", shown, flags=re.MULTILINE))


@pytest.mark.parametrize(
    "make", [lambda: hand_softmax(DType.F16), _with_explicit_cast, _with_copy]
)
def test_halves_are_left_in_arguments_casts_and_outputs_only(
    make: Callable[[], Fusion],
) -> None:
    before = make()
    after = widen_halves(before)
    verify_fusion(after)
    assert [t.dtype for t in after.outputs] == [t.dtype for t in before.outputs]
    for tensor, expr in after.definition.items():
        if tensor.dtype.is_half:
            is_cast = getattr(expr, "op", None) is CAST
            assert is_cast or isinstance(expr, Argument), expr
    for expr in after.exprs:
        if getattr(expr, "op", None) is not CAST and not isinstance(expr, Argument):
            read = [t for t, users in after.users.items() if expr in users]
            assert not any(t.dtype.is_half for t in read), expr


def test_the_same_object_comes_back_without_halves() -> None:
    fusion = hand_softmax()
    assert widen_halves(fusion) is fusion


def _plain(x: Any) -> Any:
    return np.tanh(x)


def _gate(x: Any) -> Any:
    return x * (1 + np.tanh(x))


def _rest(x: Any) -> Any:
    return x - np.tanh(x)


def _widened(x: Any) -> Any:
    return np.tanh(x).astype(np.float32)


@pytest.mark.parametrize("function", [_plain, _gate, _rest, _widened])
def test_a_near_tanh_is_taken_where_nobody_can_tell(
    function: Callable[[Any], Any],
) -> None:
    fused = nfuser.fuse(function, backend="interpret")
    (kernel,) = fused.kernels(np.ones((3, 8), np.float16))
    assert ("tanh_near" in kernel.source) == (function is _gate)
