# SPDX-License-Identifier: Apache-2.0
"""Which packets a thread takes so that it reads what they share only once."""

from __future__ import annotations

import math
from math import prod
from typing import TYPE_CHECKING

from nfuser.compiler.schedule.facts.weight import weight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.facts.facts import Access, Facts
    from nfuser.compiler.schedule.facts.layout import Groups

OWN_CACHE = 1 << 16  # bytes that stay in a multiprocessor's cache while others pass
# Packets of a thread that share operands. NVVM writes a loop over two of them out, and
# both are loaded before the first is computed; over four of some functions it does not.
FEW = 2
# Weight by byte from which a kernel waits for its instructions, not for memory. On an
# H200 gelu(x + b) by a sigmoid takes 70.4 µs alone, 68.4 with two rows a thread and 73
# with four in bf16 (0.5); by tanh 70.5, 73.7 and 77.5 (0.25).
BUSY = 0.4


def sharing(
    fusion: Fusion,
    groups: Groups,
    found: Sequence[Access],
    facts: Facts,
    several: int = 0,
) -> tuple[int, int]:
    """Return how many packets of a thread share operands, and along which group.

    Along it, what most bytes are read of stays the same; (1, -1) where nothing does.
    What is read again comes out of a cache: that costs little where it is the
    multiprocessor's own, unless instructions are what the kernel waits for. The
    innermost of several groups is the one whose steps lie closest together. Single
    elements come by ``several``: they share what their indices take to compute, too.
    """
    loops = {loop.number: loop for a in found for loop in a.loops}
    elements = prod(facts.size(loop.extent) for loop in loops.values())
    moved = sum(facts.bytes_of(a) for a in found)
    is_busy = weight(fusion) * elements > BUSY * moved
    least = 0 if is_busy or several else OWN_CACHE
    most = several or FEW
    many = [a for a in found if facts.bytes_of(a) > least]
    chosen, best = (1, -1), 0.0
    for place, group in enumerate(groups[:-1]):
        own = {loops[k] for k in group if k in loops}
        same = sum(a.tensor.dtype.itemsize for a in many if own.isdisjoint(a.loops))
        extent = prod(facts.size(loop.extent) for loop in own)
        items = math.gcd(extent, most)  # a power of two
        saved = same * (1 - 1 / items)
        if saved and saved >= best:
            chosen, best = (items, place), saved
    return chosen
