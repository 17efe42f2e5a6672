# SPDX-License-Identifier: Apache-2.0
"""What a power is made of on the CPU."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from nfuser.codegen.primitives.cpu.math.power import power
from nfuser.codegen.primitives.cpu.math.value import FLOAT, Value


def test_a_power_of_float32_needs_no_quotient() -> None:
    kind: Any = ir.FunctionType(FLOAT, [FLOAT, FLOAT])
    function: Any = ir.Function(ir.Module(), kind, "raised")
    builder: Any = ir.IRBuilder(function.append_basic_block())
    x, y = (Value(builder, argument) for argument in function.args)
    builder.ret(power(types.float32, x, y).ir)
    assert "fdiv" not in str(function)
