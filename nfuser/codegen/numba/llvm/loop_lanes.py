# SPDX-License-Identifier: Apache-2.0
"""Tell LLVM how wide a loop shall be: what Numba has no words for.

A primitive in the loop marks its block while Numba lowers it, when the jump that closes
the loop is not there yet. Once all blocks are, that jump gets the numbers.
"""

# llvmlite carries no types.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from llvmlite import ir

Wish: TypeAlias = Literal[
    "vectorize.width", "interleave.count", "vectorize.enable", "unroll.disable"
]

_NUMBERS = ("vectorize.width", "interleave.count")
_MARK = "nfuser.loop"


def mark_loop(builder: Any, wish: Wish, number: int = 1) -> None:
    """Mark the block that ``builder`` is in, the first of a loop's body."""
    count = ir.Constant(ir.IntType(32), number)
    # An instruction that does nothing: metadata have to be at one.
    nothing = builder.add(count, count, name=_MARK)
    nothing.set_metadata(_MARK, wish_of(builder.module, wish, number))


def wish_of(module: Any, wish: Wish, number: int) -> Any:
    """Return a wish as LLVM reads it: some are numbers, others are true."""
    name = ir.MetaDataString(module, f"llvm.loop.{wish}")
    bits = 32 if wish in _NUMBERS else 1
    return module.add_metadata([name, ir.Constant(ir.IntType(bits), number)])


def with_wishes(module: Any, wishes: list[Any]) -> Any:
    """Return what the jump that closes a loop with ``wishes`` has to carry."""
    loop = ir.MDValue(module, [], name=str(len(module.metadata)))
    loop.operands = (loop, *wishes)  # itself first: no two loops are one
    return loop


def close_marked_loops(module: Any) -> None:
    """Give the jumps that close marked loops what they are marked with."""
    for function in module.functions:
        for block in function.blocks:
            marks = [x for x in block.instructions if _MARK in x.metadata]
            for mark in marks:
                block.instructions.remove(mark)
            if marks:
                _set_wishes(module, block, [x.metadata[_MARK] for x in marks])


def _set_wishes(module: Any, first: Any, wishes: list[Any]) -> None:
    """Say at each jump back to where the loop is entered.

    Numba looks several blocks later whether there is another turn, which ``first`` then
    begins.
    """
    blocks = first.function.blocks
    (test,) = (b for b in blocks if first in _next(b))
    inside = _reached(first, test)
    outside = [b for b in blocks if b not in inside]
    (head,) = {x for b in outside for x in _next(b) if x in inside}
    loop = with_wishes(module, wishes)
    for block in inside:
        if head in _next(block):
            block.terminator.set_metadata("llvm.loop", loop)


def _reached(first: Any, last: Any) -> list[Any]:
    """Return ``first`` and what follows it, up to ``last``."""
    found = [first, last]
    for block in found:
        after = _next(block) if block is not last else []
        found += [b for b in after if b not in found]
    return found


def _next(block: Any) -> list[Any]:
    operands = block.terminator.operands if block.terminator else []
    return [x for x in operands if isinstance(x, ir.Block)]
