# SPDX-License-Identifier: Apache-2.0
"""A sine or cosine evaluates one polynomial, whatever its quadrant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from llvmlite import ir

from nfuser.codegen.primitives.cpu.math.trigonometry import Reach, cos, sin
from nfuser.codegen.primitives.cpu.math.value import DOUBLE, FLOAT, Value

if TYPE_CHECKING:
    from collections.abc import Callable


def _products(
    function: Callable[[Value, Reach], Value], kind: Any, reach: Reach
) -> int:
    """Return how many products and products with a sum a function takes."""
    made: Any = ir.Function(ir.Module(), ir.FunctionType(kind, [kind]), "made")
    builder: Any = ir.IRBuilder(made.append_basic_block())
    builder.ret(function(Value(builder, made.args[0]), reach).ir)
    found = [str(x) for block in made.blocks for x in block.instructions]
    return sum("llvm.fma" in x or "fmul" in x for x in found)


@pytest.mark.parametrize("function", [sin, cos])
def test_a_sine_is_few_products(function: Callable[[Value, Reach], Value]) -> None:
    assert _products(function, FLOAT, "narrow") <= 14
    assert _products(function, DOUBLE, "bounded") <= 17
