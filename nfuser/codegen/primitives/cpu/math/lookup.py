# SPDX-License-Identifier: Apache-2.0
"""Tables of 32 floats, which lie in vectors that instructions look numbers up in.

A load for each lane takes longer than a polynomial that does without a table. So a
look-up is a call of a function of one number, which has forms for vectors: LLVM takes
those in loops that it vectorizes, and what they do is said afterwards and stands in
the loop: one instruction of AVX-512 for 16 numbers, or four of AVX2 for 8, one for each
vector of the table, of which the other bits of the index choose. Where the processor
has neither, each number is loaded.
"""

# llvmlite carries no types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite import ir

import nfuser.codegen.primitives.cpu.features as features
from nfuser.codegen.numba.llvm.vector_forms import name_forms
from nfuser.codegen.primitives.cpu.math.value import FLOAT, I32, I64, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

ENTRIES = 32

_PREFIX = "nfuser.table."
_LANES = (4, 8, 16)
_OF_TWO = "llvm.x86.avx512.vpermi2var.ps.512"
_OF_ONE = "llvm.x86.avx2.permps"
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
    if not features.has("avx2"):
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
    """Define the look-up of a vector, by instructions that look into registers."""
    name = f"{_PREFIX}{table.name}.x{lanes}"
    few = ir.VectorType(I32, lanes), ir.VectorType(FLOAT, lanes)
    function, builder = _begun(module, name, *few)
    look = _in_two_vectors if features.keeps_its_clock() else _in_four_vectors
    builder.ret(look(builder, table, *function.args))
    return function


def _in_two_vectors(builder: Any, table: LookupTable, index: Any) -> Any:
    """Look up numbers by an instruction that reads five bits of each index."""
    half = ENTRIES // 2
    low, high = _vectors(table, half)
    given = [low.type, _indices(half), low.type]
    permute = _intrinsic(builder.module, _OF_TWO, given)
    found = builder.call(permute, [low, _of_lanes(builder, index, half), high])
    return _of_lanes(builder, found, index.type.count)


def _in_four_vectors(builder: Any, table: LookupTable, index: Any) -> Any:
    """Look up numbers by instructions that read three bits, and choose by two more."""
    part, count = ENTRIES // 4, index.type.count
    if count > part:
        halves = [_of_lanes(builder, index, part, k) for k in range(0, count, part)]
        found = [_in_four_vectors(builder, table, x) for x in halves]
        return builder.shuffle_vector(*found, _places(range(count)))
    index = _of_lanes(builder, index, part)
    vectors = _vectors(table, part)
    permute = _intrinsic(builder.module, _OF_ONE, [vectors[0].type, index.type])
    found = [builder.call(permute, [x, index]) for x in vectors]
    for bit in (3, 4):
        # In front, where the instruction that chooses looks at it.
        first = builder.shl(index, _all(index.type, 31 - bit))
        is_set = builder.icmp_signed("<", first, _all(index.type, 0))
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [builder.select(is_set, high, low) for low, high in pairs]
    return _of_lanes(builder, found[0], count)


def _vectors(table: LookupTable, length: int) -> list[Any]:
    """Cut a table into vectors."""
    starts = range(0, ENTRIES, length)
    kind = ir.VectorType(FLOAT, length)
    return [_constant(table.numbers[k : k + length], kind) for k in starts]


def _intrinsic(module: Any, name: str, given: list[Any]) -> Any:
    kind = ir.FunctionType(given[0], given)
    return module.globals.get(name) or ir.Function(module, kind, name)


def _indices(lanes: int) -> Any:
    return ir.VectorType(I32, lanes)


def _all(kind: Any, number: int) -> Any:
    return ir.Constant(kind, [I32(number)] * kind.count)


def _of_lanes(builder: Any, vector: Any, lanes: int, start: int = 0) -> Any:
    """Cut a vector, or fill it with what it has."""
    places = [k % vector.type.count for k in range(start, start + lanes)]
    return builder.shuffle_vector(vector, vector, _places(places))


def _places(numbers: Sequence[int]) -> Any:
    return ir.Constant(_indices(len(numbers)), [I32(k) for k in numbers])


def _begun(module: Any, name: str, index: Any, result: Any) -> tuple[Any, Any]:
    function: Any = ir.Function(module, ir.FunctionType(result, [index]), name)
    for attribute in (*_ATTRIBUTES, "alwaysinline"):
        # llvmlite does not know all of them, but prints what it holds.
        set.add(function.attributes, attribute)
    return function, ir.IRBuilder(function.append_basic_block())


def _constant(numbers: tuple[float, ...], kind: Any = None) -> Any:
    kind = kind or ir.ArrayType(FLOAT, len(numbers))
    return ir.Constant(kind, [ir.Constant(FLOAT, x) for x in numbers])
