# SPDX-License-Identifier: Apache-2.0
"""Random words on the CPU: a block at a time, where neighbours are wanted."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature

from nfuser.codegen.primitives.cpu.define import INTEGER, register
from nfuser.codegen.primitives.cpu.math.value import I64
from nfuser.codegen.primitives.philox import philox_block

_PART = ir.IntType(32)  # what a block is made of


def _draw_block(bits: int) -> Any:
    """Return what stores the words of the block of a number."""
    word = {16: types.uint16, 32: types.uint32, 64: types.uint64}[bits]

    def rule(_typing: Any, array: Any, at: Any, *given: Any) -> Any:
        plain = types.unliteral(at)
        words = all(x == types.uint64 for x in given)
        if array != types.CPointer(word) or plain not in INTEGER or not words:
            return None

        def emit(context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
            array, at, block, key, call = arguments
            element = builder.gep(array, [at], inbounds=True)
            first = builder.bitcast(element, _PART.as_pointer())
            words = philox_block(builder, block, key, call)
            for k, value in enumerate(words):
                slot = builder.gep(first, [ir.Constant(I64, k)], inbounds=True)
                builder.store(builder.trunc(value, _PART), slot, align=bits // 8)
            return context.get_dummy_value()

        return signature(types.void, array, plain, *given), emit

    def of_five(typing: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        return rule(typing, a, b, c, d, e)

    return register(f"draw_block_{bits}", of_five)


draw_block_16 = _draw_block(16)
draw_block_32 = _draw_block(32)
draw_block_64 = _draw_block(64)
