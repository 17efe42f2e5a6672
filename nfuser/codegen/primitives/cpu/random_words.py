# SPDX-License-Identifier: Apache-2.0
"""Random words on the CPU: a block at a time, where neighbours are wanted."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature

from nfuser.codegen.primitives.cpu.define import INTEGER, register
from nfuser.codegen.primitives.cpu.math.value import I64
from nfuser.codegen.primitives.philox import philox_block


def _draw_block(bits: int) -> Any:
    """Return what stores the words of the block that begins at a place."""
    word = types.uint32 if bits == 32 else types.uint64

    def rule(_typing: Any, array: Any, at: Any, *given: Any) -> Any:
        plain = types.unliteral(at)
        words = all(x == types.uint64 for x in given)
        if array != types.CPointer(word) or plain not in INTEGER or not words:
            return None

        def emit(context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
            array, at, place, key, call = arguments
            first = builder.gep(array, [at], inbounds=True)
            words = philox_block(builder, bits, place, key, call)
            for k, value in enumerate(words):
                slot = builder.gep(first, [ir.Constant(I64, k)], inbounds=True)
                builder.store(builder.trunc(value, ir.IntType(bits)), slot)
            return context.get_dummy_value()

        return signature(types.void, array, plain, *given), emit

    def of_five(typing: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        return rule(typing, a, b, c, d, e)

    return register(f"draw_block_{bits}", of_five)


draw_block_32 = _draw_block(32)
draw_block_64 = _draw_block(64)
