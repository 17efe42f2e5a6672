# SPDX-License-Identifier: Apache-2.0
"""What a power is made of on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import types

import nfuser
import nfuser.codegen.primitives.cpu.features as features
from nfuser.codegen.primitives.cpu.math.power import power
from nfuser.codegen.primitives.cpu.math.value import DOUBLE, FLOAT, Value

KINDS = {FLOAT: types.float32, DOUBLE: types.float64}


def _raised(kind: Any) -> list[str]:
    """Return the instructions of a power of this type."""
    function_type: Any = ir.FunctionType(kind, [kind, kind])
    function: Any = ir.Function(ir.Module(), function_type, "raised")
    builder: Any = ir.IRBuilder(function.append_basic_block())
    x, y = (Value(builder, argument) for argument in function.args)
    builder.ret(power(KINDS[kind], x, y).ir)
    return [str(x) for block in function.blocks for x in block.instructions]


def _length(x: Any) -> Any:
    return np.hypot(x, 1.7)


@pytest.mark.parametrize(
    ("has_wide", "kind", "quotients", "most"),
    [
        (True, FLOAT, 0, 98),
        (True, DOUBLE, 1, 132),
        (False, FLOAT, 0, 106),
        (False, DOUBLE, 1, 138),
    ],
)
def test_a_power_is_few_instructions(
    has_wide: bool,  # the vectors of 512 bits, and what comes with them
    kind: Any,
    quotients: int,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def has(_feature: str) -> bool:
        return has_wide

    monkeypatch.setattr(features, "has", has)
    found = _raised(kind)
    assert sum("fdiv" in x for x in found) == quotients
    assert len(found) <= most


def test_what_surrounds_f64_inside_of_functions_fills_vectors_of_f32() -> None:
    fused = nfuser.fuse(_length)
    (kernel,) = fused.kernels(np.ones(1 << 14, np.float32))
    assert "lanes_of_32()" in kernel.source
    (kernel,) = fused.kernels(np.ones(1 << 14))
    assert "lanes_of_32()" not in kernel.source
