# SPDX-License-Identifier: Apache-2.0
"""Random words of a GPU's packets, drawn all at once before their loop.

A packet that memory is moved in begins at a multiple of what it moves at once. If the
packet that is drawn begins there, too, its words are whole blocks, and none is drawn
under a condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import (
    Element,
    For,
    LoadPacket,
    Stmt,
    StorePacket,
)
from nfuser.compiler.lower.kernel.walk import every
from nfuser.compiler.lower.loops.draws import draws_in, has_draws, with_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, Let

_WIDTHS = (2, 4, 8, 16)
_MOVED_BYTES = 16


def draw_packets(kernel: Kernel) -> Kernel:
    """Draw the words of each packet before it."""
    if not has_draws(kernel):
        return kernel
    made = Additions(kernel)
    multiples = {x.index: _multiple(x) for x in every(kernel.body) if _is_whole(x)}

    def change(loop: For) -> tuple[Stmt, ...] | None:
        return _drawn(loop, made, multiples) if _is_packet(loop) else None

    return made.to(each_loop(kernel.body, change))


def _is_whole(x: Stmt) -> TypeGuard[LoadPacket | StorePacket]:
    return isinstance(x, StorePacket) or (isinstance(x, LoadPacket) and not x.across)


def _multiple(packet: LoadPacket | StorePacket) -> int:
    """Return what the index of a packet is a multiple of: 16 bytes at most."""
    return min(packet.width, _MOVED_BYTES // packet.buffer.dtype.itemsize)


def _is_packet(loop: For) -> bool:
    stop = loop.stop
    is_wide = isinstance(stop, sc.Const) and stop.value in _WIDTHS
    return is_wide and bool(draws_in(loop))


def _drawn(
    loop: For, made: Additions, multiples: Mapping[Scalar, int]
) -> tuple[Stmt, ...]:
    assert isinstance(loop.stop, sc.Const)
    width, zero = loop.stop.value, sc.const(0)
    packets: list[Stmt] = []
    words: dict[Let, Element] = {}
    for draw in draws_in(loop):
        array = made.array(draw.dtype, width)
        (first,) = scalar_walk.substitute([draw.index], {loop.index: zero})
        multiple = multiples.get(first, 1)
        if multiple > 1:
            first = first // multiple * multiple  # itself, as a compiler sees it, too
        packets.append(draw.packet(array, zero, first, width))
        words[draw.let] = Element(array, loop.index)
    return (*packets, with_words(loop, words))
