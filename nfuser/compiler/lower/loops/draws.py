# SPDX-License-Identifier: Apache-2.0
"""The random words that the turns of a loop draw one by one, at places side by side.

Philox makes them in blocks, so a loop that draws neighbours need not make each block
again for every word that it takes of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Pointwise
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Call,
    DrawPacket,
    Element,
    For,
    IndexValue,
    Let,
    Number,
    Stmt,
    Value,
    Var,
)
from nfuser.compiler.lower.kernel.parameters import scalars_in
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel

_BITS = {"philox16": 16, "philox32": 32, "philox64": 64}
_WORDS = {16: DType.U16, 32: DType.U32, 64: DType.U64}


@node
class Draw:
    """A statement that takes a word of this many bits; of ``place`` a slot is part."""

    let: Let
    bits: int
    index: Scalar  # of the element
    place: Value  # made of the index
    key: Value
    call: Value

    @property
    def dtype(self) -> DType:
        """The type of the words."""
        return _WORDS[self.bits]

    def packet(self, array: Array, at: Scalar, index: Scalar, width: int) -> DrawPacket:
        """Return what draws the words of ``width`` elements from ``index`` on."""
        place = _moved(self.place, index)
        return DrawPacket(array, at, place, self.key, self.call, width)


def has_draws(kernel: Kernel) -> bool:
    """Tell whether anything of a kernel is drawn."""
    exprs = kernel.scheduled.fusion.exprs
    return any(isinstance(x, Pointwise) and x.op.name in _BITS for x in exprs)


def draws_in(loop: For) -> list[Draw]:
    """Return what the turns of ``loop`` draw at places side by side."""
    places: dict[Var, Value | None] = {}
    found: list[Draw] = []
    for stmt in loop.body:
        if not isinstance(stmt, Let):
            continue
        places[stmt.var] = _place(stmt.value, places)
        match stmt.value:
            case Call(op, (Var() as at, key, call)) if op in _BITS:
                place = places.get(at)
            case _:
                continue
        if place is None or key in places or call in places:
            continue
        index = _index(place)
        if runs_along(index, loop, 1):
            found.append(Draw(stmt, _BITS[op], index, place, key, call))
    return found


def runs_along(index: Scalar, loop: For, step: int) -> bool:
    """Tell whether ``index`` grows by ``step`` in each turn of ``loop``."""
    rest = index - loop.index * step
    return loop.index not in scalar_walk.loops_in(rest)


def with_words(loop: For, words: Mapping[Let, Element]) -> For:
    """Return ``loop`` with these words in place of those that it draws."""
    body: list[Stmt] = []
    for stmt in loop.body:
        word = words.get(stmt) if isinstance(stmt, Let) else None
        if isinstance(stmt, Let) and word is not None:
            is_whole = word.dtype is stmt.var.dtype
            value = word if is_whole else Call("to_u64", (word,), DType.U64)
            body.append(replace(stmt, value=value))
        else:
            body.append(stmt)
    return replace(loop, body=_without_places(body))


def _without_places(body: list[Stmt]) -> tuple[Stmt, ...]:
    """Return ``body`` without the places that nothing is drawn at any more."""
    places: dict[Var, Value | None] = {}
    is_place = dict.fromkeys(body, False)
    for stmt in body:
        if isinstance(stmt, Let):
            place = places[stmt.var] = _place(stmt.value, places)
            is_place[stmt] = place is not None
    used: set[Var] = set()
    kept: list[Stmt] = []
    for stmt in reversed(body):
        parts: tuple[Any, ...] = (stmt,)
        if isinstance(stmt, Let):
            if is_place[stmt] and stmt.var not in used:
                continue
            used.discard(stmt.var)
            parts = (stmt.value,)
        used.update(x for x in every(parts) if isinstance(x, Var))
        kept.append(stmt)
    return tuple(reversed(kept))


def _place(value: Value, known: Mapping[Var, Value | None]) -> Value | None:
    """Return ``value`` in terms of an index, if it is one, maybe with a slot."""
    match value:
        case Var():
            return known.get(value)
        case Call("to_u64", (IndexValue(),)):
            return value
        case Call("bit_or", (inner, Number() as slot) | (Number() as slot, inner)):
            place = _place(inner, known)
            return place and replace(value, operands=(place, slot))
        case _:
            return None


def block_of(draw: DrawPacket) -> Value:
    """Return the number of the block that a CPU draws, with the slot of its place."""
    return _moved(draw.place, _index(draw.place) // draw.width)


def _index(place: Value) -> Scalar:
    (index,) = scalars_in((place,))
    return index


def _moved(place: Value, index: Scalar) -> Value:
    """Return the same place of the element at ``index``."""
    match place:
        case IndexValue():
            return replace(place, scalar=index)
        case Call(operands=operands):
            return replace(place, operands=tuple(_moved(x, index) for x in operands))
        case _:
            return place
