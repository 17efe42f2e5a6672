# SPDX-License-Identifier: Apache-2.0
"""Random words of a GPU's packets, drawn all at once before their loop.

A packet that memory is moved in begins at a multiple of what it moves at once. If the
packet that is drawn begins there, too, its words are whole blocks, and none is drawn
under a condition.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.lower.draws import draws_in, has_draws, with_words
from nfuser.lower.kernel.kernel_ir import (
    Element,
    For,
    If,
    LoadPacket,
    Stmt,
    StorePacket,
)
from nfuser.lower.kernel.walk import every

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.ir.scalar import Scalar
    from nfuser.lower.kernel.kernel_ir import Let
    from nfuser.lower.values import Values

_WIDTHS = (2, 4, 8, 16)
_MOVED_BYTES = 16
_BLOCK_BITS = 128


def packet_draws(body: tuple[Stmt, ...], values: Values) -> tuple[Stmt, ...]:
    """Return ``body`` with the words of each packet drawn before it."""
    if not has_draws(values):
        return body
    moved = (x for x in every(body) if isinstance(x, LoadPacket | StorePacket))
    return _rewritten(body, values, {x.index: _multiple(x) for x in moved})


def _multiple(packet: LoadPacket | StorePacket) -> int:
    """Return what the index of a packet is a multiple of: 16 bytes at most."""
    return min(packet.width, _MOVED_BYTES // packet.buffer.dtype.itemsize)


def _rewritten(
    body: tuple[Stmt, ...], values: Values, multiples: Mapping[Scalar, int]
) -> tuple[Stmt, ...]:
    made: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For) and _is_packet(stmt):
            made += _drawn(stmt, values, multiples)
        elif isinstance(stmt, For | If):
            inner = _rewritten(stmt.body, values, multiples)
            made.append(replace(stmt, body=inner))
        else:
            made.append(stmt)
    return tuple(made)


def _is_packet(loop: For) -> bool:
    stop = loop.stop
    is_wide = isinstance(stop, sc.Const) and stop.value in _WIDTHS
    return is_wide and bool(draws_in(loop))


def _drawn(
    loop: For, values: Values, multiples: Mapping[Scalar, int]
) -> tuple[Stmt, ...]:
    assert isinstance(loop.stop, sc.Const)
    width, zero = loop.stop.value, sc.const(0)
    packets: list[Stmt] = []
    words: dict[Let, Element] = {}
    for draw in draws_in(loop):
        array = values.array(draw.dtype, width)
        (first,) = scalar_walk.substitute([draw.index], {loop.index: zero})
        block = _BLOCK_BITS // draw.bits
        if multiples.get(first, 1) % block == 0:
            first = first // block * block  # itself, as a compiler sees it, too
        packets.append(draw.packet(array, zero, first, width))
        words[draw.let] = Element(array, loop.index)
    return (*packets, with_words(loop, words))
