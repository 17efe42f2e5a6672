# SPDX-License-Identifier: Apache-2.0
"""Tables of 32 floats, which lie in two vectors: one instruction looks up 16 of them.

A load for each lane takes longer than a polynomial that does without a table. So a
look-up is a call of a function of one number, which has forms for vectors: LLVM takes
those in loops that it vectorizes, and what they do is said afterwards and stands in
the loop. Where the processor has no such instruction, each number is loaded.
"""

# llvmlite carries no types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

import nfuser.codegen.primitives.cpu.features as features
from nfuser.codegen.numba.llvm.vector_forms import name_forms
from nfuser.codegen.primitives.cpu.math.value import FLOAT, I32, I64, Value

ENTRIES = 32
HALF = 16
"""Entries in each of the two vectors, and lanes of one instruction."""

_PREFIX = "nfuser.table."
_LANES = (4, 8, 16)
_PERMUTE = "llvm.x86.avx512.vpermi2var.ps.512"
_ATTRIBUTES = ("nounwind", "readnone", "willreturn")


class LookupTable(NamedTuple):
    """Thirty-two numbers of float32."""

    name: str
    numbers: tuple[float, ...]


def look_up(table: LookupTable, index: Value) -> Value:
    """Return the number that the lowest five bits of ``index`` name."""
    module = index.builder.module
    function = module.globals.get(_PREFIX + table.name)
    if function is None:
        function = _of_one(module, table)
        function.linkage = "internal"
    return index.make(index.builder.call(function, [index.ir]))


def leave_open(module: Any) -> tuple[list[Any], str]:
    """Take from look-ups what they do, so that LLVM widens their calls.

    Return the functions to keep meanwhile, and the module that says what they do.
    """
    if not features.keeps_its_clock():
        return [], ""
    said: Any = ir.Module()
    kept: list[Any] = []
    for function in [x for x in module.functions if x.name.startswith(_PREFIX)]:
        name = function.name.removeprefix(_PREFIX)
        numbers = module.globals[f"{function.name}.numbers"].initializer.constant
        table = LookupTable(name, tuple(x.constant for x in numbers))
        forms = {lanes: _of_many(said, table, lanes) for lanes in _LANES}
        for x in (_of_one(said, table), *forms.values()):
            x.linkage = "available_externally"
        function.blocks.clear()
        function.linkage = ""
        function.attributes.discard("alwaysinline")
        name_forms(function, forms)
        kept += [ir.Function(module, x.function_type, x.name) for x in forms.values()]
    return kept, str(said) if kept else ""


def _of_one(module: Any, table: LookupTable) -> Any:
    """Define the look-up of one number, which is loaded."""
    function, builder = _begun(module, _PREFIX + table.name, I32, FLOAT)
    numbers = _constant(table.numbers)
    kept: Any = ir.GlobalVariable(module, numbers.type, f"{function.name}.numbers")
    kept.linkage, kept.initializer, kept.global_constant = "internal", numbers, True
    place = builder.zext(builder.and_(function.args[0], I32(ENTRIES - 1)), I64)
    builder.ret(builder.load(builder.gep(kept, [I64(0), place])))
    return function


def _of_many(module: Any, table: LookupTable, lanes: int) -> Any:
    """Define the look-up of a vector, by an instruction that reads five bits."""
    name = f"{_PREFIX}{table.name}.x{lanes}"
    indices, floats = ir.VectorType(I32, HALF), ir.VectorType(FLOAT, HALF)
    few = ir.VectorType(I32, lanes), ir.VectorType(FLOAT, lanes)
    function, builder = _begun(module, name, *few)
    low = _constant(table.numbers[:HALF], floats)
    high = _constant(table.numbers[HALF:], floats)
    permute = module.globals.get(_PERMUTE) or ir.Function(
        module, ir.FunctionType(floats, [floats, indices, floats]), _PERMUTE
    )
    (index,) = function.args
    index = _of_lanes(builder, index, HALF)
    found = builder.call(permute, [low, index, high])
    builder.ret(_of_lanes(builder, found, lanes))
    return function


def _of_lanes(builder: Any, vector: Any, lanes: int) -> Any:
    """Cut a vector, or fill it with what it has."""
    places = [I32(x % vector.type.count) for x in range(lanes)]
    mask = ir.Constant(ir.VectorType(I32, lanes), places)
    nothing = ir.Constant(vector.type, ir.Undefined)
    return builder.shuffle_vector(vector, nothing, mask)


def _begun(module: Any, name: str, index: Any, result: Any) -> tuple[Any, Any]:
    function: Any = ir.Function(module, ir.FunctionType(result, [index]), name)
    for attribute in (*_ATTRIBUTES, "alwaysinline"):
        # llvmlite does not know all of them, but prints what it holds.
        set.add(function.attributes, attribute)
    return function, ir.IRBuilder(function.append_basic_block())


def _constant(numbers: tuple[float, ...], kind: Any = None) -> Any:
    kind = kind or ir.ArrayType(FLOAT, len(numbers))
    return ir.Constant(kind, [ir.Constant(FLOAT, x) for x in numbers])
