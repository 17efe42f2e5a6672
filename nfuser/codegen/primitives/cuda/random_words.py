# SPDX-License-Identifier: Apache-2.0
"""Random words on a GPU: those of a packet of neighbours at once."""

# numba-cuda and llvmlite ship no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir

from nfuser.codegen.primitives.cuda.define import (
    I32,
    INTEGER,
    Site,
    Value,
    primitive,
    types,
)
from nfuser.codegen.primitives.cuda.memory import is_array
from nfuser.codegen.primitives.cuda.packets import LENGTHS
from nfuser.codegen.primitives.philox import philox_packet

_WORDS = (types.uint16, types.uint32, types.uint64)


def _draw_packet(length: int) -> Any:
    def rule(a: Any, k: Any, place: Any, key: Any, call: Any) -> Any:
        fits = is_array(a) and a.dtype in _WORDS and k in INTEGER
        is_drawn = fits and {place, key, call} == {types.uint64}
        return types.void(a, k, place, key, call) if is_drawn else None

    def emit(site: Site, a: Value, k: Value, *drawn: Value) -> None:
        b = site.builder
        kind = site.argument(0).dtype
        first = site.element(site.data(a, 0), k, 1)
        words = philox_packet(b, kind.bitwidth, *drawn, width=length)
        for n, word in enumerate(words):
            value = b.trunc(word, ir.IntType(kind.bitwidth))
            b.store(value, b.gep(first, [ir.Constant(I32, n)]))

    return primitive(f"draw_packet_{length}", rule, emit, arity=5)


for _length in LENGTHS:
    _draw_packet(_length)
