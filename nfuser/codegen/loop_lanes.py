# SPDX-License-Identifier: Apache-2.0
"""Tell LLVM how many lanes a loop shall have: what Numba has no words for.

A primitive in the loop marks its block while Numba lowers it, when the jump that closes
the loop is not there yet. Once all blocks are, that jump gets the number.
"""

# llvmlite carries no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir

_MARK = "nfuser.lanes"


def mark_loop(builder: Any, lanes: int) -> None:
    """Mark the block that ``builder`` is in, the first of a loop's body."""
    number = ir.Constant(ir.IntType(32), lanes)
    found = builder.module.add_metadata([number])
    # An instruction that does nothing: metadata have to be at one.
    nothing = builder.add(number, number, name=_MARK)
    nothing.set_metadata(_MARK, found)


def close_marked_loops(module: Any) -> None:
    """Give the jumps that close marked loops their number of lanes."""
    for function in module.functions:
        for block in function.blocks:
            for instruction in list(block.instructions):
                if _MARK in instruction.metadata:
                    (lanes,) = instruction.metadata[_MARK].operands
                    block.instructions.remove(instruction)
                    _set_lanes(module, block, lanes)


def _set_lanes(module: Any, first: Any, lanes: Any) -> None:
    """Say at each jump from the body that begins with ``first`` back to its head."""
    (head,) = (b for b in first.function.blocks if first in _next(b))
    name = ir.MetaDataString(module, "llvm.loop.vectorize.width")
    width = module.add_metadata([name, lanes])
    loop = ir.MDValue(module, [], name=str(len(module.metadata)))
    loop.operands = (loop, width)  # itself first: no two loops are one
    for block in _body(first, head):
        if head in _next(block):
            block.terminator.set_metadata("llvm.loop", loop)


def _body(first: Any, head: Any) -> list[Any]:
    found = [first]
    for block in found:
        found += [b for b in _next(block) if b is not head and b not in found]
    return found


def _next(block: Any) -> list[Any]:
    operands = block.terminator.operands if block.terminator else []
    return [x for x in operands if isinstance(x, ir.Block)]
