# SPDX-License-Identifier: Apache-2.0
"""Functions of floats that stand apart: a kernel with very many of them calls them.

LLVM's time goes with the instructions that it sees, and a sine has a hundred. Each
function is there for one number and for vectors of them, and says so, so that LLVM
calls those in the loops that it vectorizes.
"""

# llvmlite carries no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

from nfuser.codegen.numba.llvm.loop_lanes import wish_of, with_wishes
from nfuser.codegen.numba.llvm.vector_forms import name_forms
from nfuser.codegen.primitives.cpu.features import vector_bits
from nfuser.codegen.primitives.cpu.math.value import DOUBLE, FLOAT, I64, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    Emit = Callable[..., Any]

_MARK = "nfuser.functions_apart"
_PREFIX = "nfuser.apart."
_SHORT = 16  # instructions, or fewer, are no dearer than a call


def set_apart(builder: Any) -> None:
    """Let the kernel that is emitted call functions, where vectors are known."""
    if vector_bits():
        builder.module.add_named_metadata(_MARK)


def stands_apart(builder: Any, arguments: tuple[Any, ...]) -> bool:
    """Tell whether the kernel calls functions of such ``arguments``."""
    return _MARK in builder.module.namedmetadata and all(
        x.type in (FLOAT, DOUBLE) for x in arguments
    )


def call_apart(
    builder: Any, name: str, body: Emit, arguments: tuple[Any, ...]
) -> Any | None:
    """Call the function ``name``, made of ``body`` at first; None if it is short."""
    module, kind = builder.module, arguments[0].type
    stem = f"{_PREFIX}{name}.{kind.intrinsic_name}"
    function = module.globals.get(stem) or _define(module, stem, body, arguments)
    if _is_short(function):
        return None
    return builder.call(function, arguments)


def _define(module: Any, stem: str, body: Emit, arguments: tuple[Any, ...]) -> Any:
    kind, count = arguments[0].type, len(arguments)
    function = _function(module, stem, kind, count)
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(body(*(Value(builder, x) for x in function.args)).ir)
    if _is_short(function):
        return function
    forms: dict[int, Any] = {}
    for lanes in sorted({vector_bits() // 64, vector_bits() // 32}):
        wide = ir.VectorType(kind, lanes)
        forms[lanes] = _function(module, f"{stem}.x{lanes}", wide, count)
        _fill(forms[lanes], body, kind, lanes)
    name_forms(function, forms)
    return function


def _is_short(function: Any) -> bool:
    return sum(len(block.instructions) for block in function.blocks) <= _SHORT


def _function(module: Any, name: str, kind: Any, count: int) -> Any:
    function: Any = ir.Function(module, ir.FunctionType(kind, [kind] * count), name)
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind"):
        function.attributes.add(attribute)
    return function


def _fill(function: Any, body: Emit, kind: Any, lanes: int) -> None:
    """Write a loop over the lanes, which LLVM turns into one vector."""
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    row = ir.ArrayType(kind, lanes)
    slots = [builder.alloca(row) for _ in function.args]
    made = builder.alloca(row)
    wide = ir.PointerType(ir.VectorType(kind, lanes))
    for slot, argument in zip(slots, function.args, strict=True):
        builder.store(argument, builder.bitcast(slot, wide), align=1)
    loop, after = (function.append_basic_block(name) for name in ("loop", "after"))
    before = builder.block
    builder.branch(loop)
    builder.position_at_end(loop)
    zero, one = ir.Constant(I64, 0), ir.Constant(I64, 1)
    index: Any = builder.phi(I64)
    given = [builder.load(builder.gep(s, [zero, index])) for s in slots]
    result = body(*(Value(builder, x) for x in given)).ir
    builder.store(result, builder.gep(made, [zero, index]))
    following = builder.add(index, one)
    index.add_incoming(zero, before)
    index.add_incoming(following, loop)
    more = builder.icmp_unsigned("<", following, ir.Constant(I64, lanes))
    jump = builder.cbranch(more, loop, after)
    module = function.module
    width = wish_of(module, "vectorize.width", lanes)
    whole = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
    jump.set_metadata("llvm.loop", with_wishes(module, [width, whole]))
    builder.position_at_end(after)
    builder.ret(builder.load(builder.bitcast(made, wide), align=1))


def functions_apart(module: Any) -> list[Any]:
    """Return what nothing calls before LLVM vectorizes."""
    if _MARK not in module.namedmetadata:
        return []
    own = (x for x in module.functions if x.name.startswith(_PREFIX))
    return [x for x in own if x.blocks and not _is_short(x)]
