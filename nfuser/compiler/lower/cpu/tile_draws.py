# SPDX-License-Identifier: Apache-2.0
"""Random words of a CPU's loops, made a tile at a time.

A vector makes as many blocks of Philox as it has lanes, and stores their words in
their order to a tile on the stack, which the first cache holds. The loop that draws
then reads them as it reads an array: one block for four words, where each turn would
make its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.functions import minimum
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import Array, Element, For, Stmt
from nfuser.compiler.lower.kernel.loop_edits import changed
from nfuser.compiler.lower.kernel.walk import every
from nfuser.compiler.lower.loops.draws import (
    Draw,
    draws_in,
    has_draws,
    runs_along,
    with_words,
)

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, Let, LoopCounter

_TILE_BYTES = 1 << 14  # of all tiles of a loop: half of a small first cache
_MOST, _LEAST = 1024, 128  # elements of a tile
_GRAIN = 16  # blocks, so that a vector loop leaves none
_BLOCK_BITS = 128


@node
class _Nest:
    """A loop, maybe of loops, whose turns draw neighbours one after the other."""

    loop: For
    unit: int  # elements that a turn of the loop takes
    draws: tuple[tuple[For, Draw], ...]  # each with the loop that draws it


def tile_draws(kernel: Kernel) -> Kernel:
    """Make the words that loops draw a tile at a time."""
    if not has_draws(kernel):
        return kernel
    loops = (x for x in every(kernel.body) if isinstance(x, For))
    widths = [_word_bytes(nest) for loop in loops if (nest := _nest(loop))]
    if not widths:
        return kernel
    made = Additions(kernel)
    tiles = _Tiles(made, max(widths))

    def change(loop: For) -> tuple[Stmt, ...] | None:
        nest = _nest(loop)
        return nest and _tiled(nest, tiles)

    return made.to(each_loop(kernel.body, change))


def _word_bytes(nest: _Nest) -> int:
    return sum(draw.dtype.itemsize for _, draw in nest.draws)


class _Tiles:
    """The tiles of a kernel: each of its loops begins with the same ones."""

    def __init__(self, added: Additions, word_bytes: int) -> None:
        self.added = added
        most = _TILE_BYTES // word_bytes // _LEAST * _LEAST
        self.size = max(_LEAST, min(_MOST, most))
        self.made: dict[DType, list[Array]] = {}

    def tile(self, dtype: DType, number: int) -> Array:
        """Return the tile of this number for words of ``dtype``."""
        made = self.made.setdefault(dtype, [])
        while len(made) <= number:
            room = self.size + (_GRAIN + 1) * _BLOCK_BITS // dtype.bits
            made.append(self.added.array(dtype, room))
        return made[number]


def _nest(loop: For) -> _Nest | None:
    """Return ``loop`` as a nest, if what is drawn in each turn follows the last's."""
    inner = [s for s in loop.body if isinstance(s, For)]
    if not inner:
        draws = tuple((loop, draw) for draw in draws_in(loop))
        return _Nest(loop, 1, draws) if draws else None
    draws = tuple((each, draw) for each in inner for draw in draws_in(each))
    units = {each.stop for each, _ in draws}
    if len(units) != 1:
        return None
    (unit,) = units
    if not isinstance(unit, sc.Const) or unit.value >= 2 * _LEAST:
        return None
    follows = all(runs_along(draw.index, loop, unit.value) for _, draw in draws)
    return _Nest(loop, unit.value, draws) if follows else None


def _tiled(nest: _Nest, tiles: _Tiles) -> tuple[Stmt, ...]:
    """Return the loop over tiles: what fills them, and what ``nest`` makes of each."""
    loop, unit, loops = nest.loop, nest.unit, tiles.added.loops
    most = max(1, tiles.size // unit)
    is_one = sc.lies_below(loop.stop, sc.const(most + 1))
    tile = loops.make((loop.stop + (most - 1)) // most)
    start: Scalar = sc.const(0) if is_one else tile * most
    turns = loop.stop if is_one else minimum(most, loop.stop - start)
    turn = loops.make(turns)
    made: list[Stmt] = []
    words: dict[Let, Element] = {}
    numbers = dict.fromkeys(DType, 0)
    for each, draw in nest.draws:
        array = tiles.tile(draw.dtype, numbers[draw.dtype])
        numbers[draw.dtype] += 1
        at: dict[Scalar, Scalar] = {loop.index: start}
        if each is not loop:
            at[each.index] = sc.const(0)
        (first,) = scalar_walk.substitute([draw.index], at)
        filled, left = _fill(draw, array, first, turns * unit, loops)
        made.append(filled)
        within = turn if each is loop else turn * unit + each.index
        words[draw.let] = Element(array, left + within)
    body = changed(_drawn(loop, words).body, {loop.index: start + turn})
    made.append(replace(loop, index=turn, stop=turns, body=body))
    return tuple(made) if is_one else (For(tile, tile.extent, tuple(made)),)


def _fill(
    draw: Draw, array: Array, first: Scalar, count: Scalar, loops: LoopCounter
) -> tuple[For, Scalar]:
    """Return what draws ``count`` words from ``first`` on, and where that one lies."""
    width = _BLOCK_BITS // draw.bits
    left = first % width
    grains = (left + count + (_GRAIN * width - 1)) // (_GRAIN * width)
    block = loops.make(grains * _GRAIN)
    begin = first // width * width + block * width
    packet = draw.packet(array, block * width, begin, width)
    return For(block, block.extent, (packet,)), left


def _drawn(loop: For, words: dict[Let, Element]) -> For:
    body = (_drawn(s, words) if isinstance(s, For) else s for s in loop.body)
    return with_words(replace(loop, body=tuple(body)), words)
