# SPDX-License-Identifier: Apache-2.0
"""Tables of few numbers, from which an instruction takes one for each lane."""

# llvmlite carries no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite import ir

from nfuser.codegen.primitives.cpu.features import has
from nfuser.codegen.primitives.cpu.math.value import DOUBLE, FLOAT, I32, I64, Value

if TYPE_CHECKING:
    from nfuser.codegen.primitives.cpu.math.precision import Coefficients


class LaneTable(NamedTuple):
    """Numbers, as many as two vectors of 512 bits have, and the name of all."""

    name: str
    entries: Coefficients


def lookup(table: LaneTable, place: Value) -> Value:
    """Return the entry at ``place``, of whose bits the last count.

    A place of 32 bits asks for a float32, one of 64 for a float64.
    """
    if not place.lanes:
        return _load(table, place)
    if not takes_entries():
        return _load_each(table, place)
    whole = 512 // place.type.width
    parts = [
        _permute(table, _picked(place, range(at, at + whole)))
        for at in range(0, place.lanes, whole)
    ]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [_joined(*pair) for pair in pairs]
    (found,) = parts
    return _picked(found, range(place.lanes)) if found.lanes > place.lanes else found


def takes_entries() -> bool:
    """Whether one instruction takes an entry of a table for each lane."""
    return has("avx512f")


def _kind(place: Value) -> Any:
    return FLOAT if place.type == I32 else DOUBLE


def _load(table: LaneTable, place: Value) -> Value:
    builder: Any = place.builder
    kind = ir.ArrayType(_kind(place), len(table.entries))
    name = f"nfuser.{table.name}"
    known: Any = builder.module.globals.get(name)
    if known is None:
        known = ir.GlobalVariable(builder.module, kind, name)
        known.initializer = ir.Constant(kind, table.entries)
        known.global_constant, known.linkage = True, "internal"
    wanted = place & (len(table.entries) - 1)
    at = wanted.ir if place.type == I64 else builder.zext(wanted.ir, I64)
    address = builder.gep(known, [ir.Constant(I64, 0), at], inbounds=True)
    return place.make(builder.load(address))


def _load_each(table: LaneTable, place: Value) -> Value:
    builder: Any = place.builder
    made: Any = ir.Constant(place.of(_kind(place)), ir.Undefined)
    for lane in range(place.lanes):
        at = ir.Constant(I32, lane)
        one = _load(table, place.make(builder.extract_element(place.ir, at)))
        made = builder.insert_element(made, one.ir, at)
    return place.make(made)


def _permute(table: LaneTable, place: Value) -> Value:
    """Take entries of two vectors by one instruction."""
    kind = place.of(_kind(place))
    first, second = (
        ir.Constant(kind, list(table.entries[at : at + place.lanes]))
        for at in (0, place.lanes)
    )
    suffix = "ps" if place.type == I32 else "pd"
    function: Any = place.builder.module.declare_intrinsic(
        f"llvm.x86.avx512.vpermi2var.{suffix}.512",
        (),
        ir.FunctionType(kind, [kind, place.ir.type, kind]),
    )
    return place.make(place.builder.call(function, [first, place.ir, second]))


def _picked(x: Value, lanes: range) -> Value:
    """Return some lanes; beyond the last the first ones come again."""
    if len(lanes) == x.lanes:
        return x
    chosen = [lane % x.lanes for lane in lanes]
    mask = ir.Constant(ir.VectorType(I32, len(chosen)), chosen)
    undefined = ir.Constant(x.ir.type, ir.Undefined)
    return x.make(x.builder.shuffle_vector(x.ir, undefined, mask))


def _joined(first: Value, second: Value) -> Value:
    lanes = list(range(first.lanes + second.lanes))
    mask = ir.Constant(ir.VectorType(I32, len(lanes)), lanes)
    return first.make(first.builder.shuffle_vector(first.ir, second.ir, mask))
