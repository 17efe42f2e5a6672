# SPDX-License-Identifier: Apache-2.0
"""What a power is made of on the CPU."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import types

import nfuser
from nfuser.codegen.primitives.cpu.features import vector_bits
from nfuser.codegen.primitives.cpu.math.power import power
from nfuser.codegen.primitives.cpu.math.value import DOUBLE, FLOAT, Value
from tests.cpu_harness import apply, binary_loop

KINDS = {FLOAT: types.float32, DOUBLE: types.float64}


def _raised(kind: Any) -> list[str]:
    """Return the instructions of a power of this type."""
    function_type: Any = ir.FunctionType(kind, [kind, kind])
    function: Any = ir.Function(ir.Module(), function_type, "raised")
    builder: Any = ir.IRBuilder(function.append_basic_block())
    x, y = (Value(builder, argument) for argument in function.args)
    builder.ret(power(KINDS[kind], x, y).ir)
    return [str(x) for block in function.blocks for x in block.instructions]


def _to_1_7(x: Any) -> Any:
    return x**1.7


@pytest.mark.parametrize(("kind", "most"), [(FLOAT, 110), (DOUBLE, 125)])
def test_a_power_is_few_instructions(kind: Any, most: int) -> None:
    found = _raised(kind)
    assert not any("fdiv" in x for x in found)
    assert len(found) <= most


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_lane_that_is_not_ordinary_leaves_the_others(dtype: str) -> None:
    drawn = np.random.default_rng(2).uniform(0.1, 9, (2, 203)).astype(dtype)
    alone = np.concatenate([apply("power", *drawn[:, [k]]) for k in range(203)])
    np.testing.assert_array_equal(apply("power", *drawn), alone)
    least = np.finfo(dtype).smallest_subnormal
    odd = np.array([0, -0.0, -2, np.inf, -np.inf, np.nan, least, -1], dtype)
    bases, exponents = np.meshgrid(odd, np.append(odd, [1, 3, 0.5, 900]).astype(dtype))
    for x, y in zip(bases.flat, exponents.flat, strict=True):
        some = drawn.copy()
        some[:, 77] = x, y
        found = apply("power", *some)
        with np.errstate(all="ignore"):
            (wanted,) = np.power(*np.array([[x], [y]], np.longdouble)).astype(dtype)
        np.testing.assert_array_equal(np.delete(found, 77), np.delete(alone, 77))
        np.testing.assert_allclose(found[77], wanted, rtol=1e-6)
        assert np.isnan(wanted) or np.signbit(found[77]) == np.signbit(wanted)


@pytest.mark.skipif(vector_bits() != 512, reason="its loops are of other vectors")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops_hold_the_power_of_ordinary_vectors(dtype: str) -> None:
    text = binary_loop("power", dtype, dtype).text
    loop = text[text.rindex("\ndefine ", 0, text.index("ret i32")) :]
    calls = [x for x in loop.splitlines() if "call <" in x and "@nfuser.power" in x]
    assert "vpermi2var" in loop
    assert calls
    assert all(".rare" in x for x in calls)


def test_a_scalar_power_reads_its_tables() -> None:
    assert sum("load" in x for x in _raised(FLOAT)) == 4
    assert sum("load" in x for x in _raised(DOUBLE)) == 3


def test_what_surrounds_f64_inside_of_powers_fills_vectors_of_f32() -> None:
    fused = nfuser.fuse(_to_1_7)
    (kernel,) = fused.kernels(np.ones(1 << 14, np.float32))
    assert "lanes_of_32()" in kernel.source
    (kernel,) = fused.kernels(np.ones(1 << 14))
    assert "lanes_of_32()" not in kernel.source
