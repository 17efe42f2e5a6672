# SPDX-License-Identifier: Apache-2.0
"""The loops of kernels, which go up by one, in as few instructions as that takes.

Numba's own lowering serves any step: it writes some 75 instructions for each loop. LLVM
has to read them, and leaves these.
"""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUnknownParameterType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.imputils import Registry

RANGES = Registry("ranges of kernels")
_BOUNDS = types.range_state64_type
_TURNS = types.range_iter64_type
_NUMBER = ir.IntType(64)


@RANGES.lower(range, types.int64)
def _up_to(context: Any, _builder: Any, sig: Any, args: Any) -> Any:
    return _bounds(context, _builder, ir.Constant(_NUMBER, 0), *args)


@RANGES.lower(range, types.int64, types.int64)
def _from(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _bounds(context, builder, *args)


def _bounds(context: Any, builder: Any, start: Any, stop: Any) -> Any:
    made = ir.Constant(context.get_value_type(_BOUNDS), ir.Undefined)
    made = builder.insert_value(made, start, 0)
    return builder.insert_value(made, stop, 1)


@RANGES.lower("getiter", _BOUNDS)
def _begun(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Return where the index of the next turn lies, and how many are left."""
    start = builder.extract_value(args[0], 0)
    stop = builder.extract_value(args[0], 1)
    with builder.goto_entry_block():
        index, left = builder.alloca(_NUMBER), builder.alloca(_NUMBER)
    length, none = builder.sub(stop, start), ir.Constant(_NUMBER, 0)
    is_empty = builder.not_(builder.icmp_signed(">", length, none))
    builder.store(start, index)
    with builder.if_else(is_empty) as (empty, other):
        with empty:
            builder.store(none, left)
        with other:
            builder.store(length, left)
    made = ir.Constant(context.get_value_type(_TURNS), ir.Undefined)
    made = builder.insert_value(made, index, 0)
    return builder.insert_value(made, left, 3)


@RANGES.lower("iternext", _TURNS)
def _next(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Return an index, and whether there is one."""
    index = builder.extract_value(args[0], 0)
    left = builder.extract_value(args[0], 3)
    count, one = builder.load(left), ir.Constant(_NUMBER, 1)
    is_one = builder.icmp_signed(">", count, ir.Constant(_NUMBER, 0))
    before = builder.block
    with builder.if_then(is_one):
        here, inside = builder.load(index), builder.block
        builder.store(builder.sub(count, one, flags=("nsw",)), left)
        builder.store(builder.add(here, one), index)
    given = builder.phi(_NUMBER)
    given.add_incoming(ir.Constant(_NUMBER, 0), before)
    given.add_incoming(here, inside)
    made = ir.Constant(context.get_value_type(sig.return_type), ir.Undefined)
    made = builder.insert_value(made, given, 0)
    return builder.insert_value(made, is_one, 1)
