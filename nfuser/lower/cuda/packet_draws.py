# SPDX-License-Identifier: Apache-2.0
"""Random words of a GPU's packets, drawn all at once before their loop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.lower.draws import draws_in, has_draws, with_words
from nfuser.lower.kernel.kernel_ir import Element, For, If, Stmt

if TYPE_CHECKING:
    from nfuser.lower.kernel.kernel_ir import Let
    from nfuser.lower.values import Values

_WIDTHS = (2, 4, 8, 16)


def packet_draws(body: tuple[Stmt, ...], values: Values) -> tuple[Stmt, ...]:
    """Return ``body`` with the words of each packet drawn before it."""
    return _rewritten(body, values) if has_draws(values) else body


def _rewritten(body: tuple[Stmt, ...], values: Values) -> tuple[Stmt, ...]:
    made: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For) and _is_packet(stmt):
            made += _drawn(stmt, values)
        elif isinstance(stmt, For | If):
            made.append(replace(stmt, body=_rewritten(stmt.body, values)))
        else:
            made.append(stmt)
    return tuple(made)


def _is_packet(loop: For) -> bool:
    stop = loop.stop
    is_wide = isinstance(stop, sc.Const) and stop.value in _WIDTHS
    return is_wide and bool(draws_in(loop))


def _drawn(loop: For, values: Values) -> tuple[Stmt, ...]:
    assert isinstance(loop.stop, sc.Const)
    width, zero = loop.stop.value, sc.const(0)
    packets: list[Stmt] = []
    words: dict[Let, Element] = {}
    for draw in draws_in(loop):
        array = values.array(draw.dtype, width)
        (first,) = scalar_walk.substitute([draw.index], {loop.index: zero})
        packets.append(draw.packet(array, zero, first, width))
        words[draw.let] = Element(array, loop.index)
    return (*packets, with_words(loop, words))
