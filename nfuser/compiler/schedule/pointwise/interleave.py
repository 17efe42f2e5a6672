# SPDX-License-Identifier: Apache-2.0
"""How many places of memory a CPU thread walks through at once.

A processor fetches ahead of a loop, but not beyond the page that the loop is in: each
new page begins with a wait. A loop that goes along several pages side by side has the
others to go on with. What takes longer to compute than to read gains nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import Pointwise
from nfuser.compiler.schedule.facts.memory import elements, memory_tensors
from nfuser.compiler.schedule.facts.weight import weight

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.facts.facts import Facts

READING, WRITING = 4, 2  # places; more gain little, or lose where there are stores too
MOST_PLACES = 16  # that a processor keeps track of, all tensors together
PIECE = 512  # elements, at least: shorter ones end before anything is fetched ahead
LINE = 128  # elements that are stored at once past the cache: whole lines of it
LIGHT = 16  # operations for each tensor in memory, dear ones counted four times
BYPASS_BYTES = 1 << 24
"""Bytes from which on outputs are stored past the cache, which would not keep them.

A plain store reads a line of memory before it changes it."""


def streams(fusion: Fusion) -> int:
    """Return how many pieces of a row, or rows of a column, run side by side."""
    tensors = memory_tensors(fusion)
    if not tensors or not _is_light(fusion):
        return 1
    reduced = {r.result for r in fusion.reductions}
    count = READING if reduced.issuperset(fusion.outputs) else WRITING
    while count > 1 and count * len(tensors) > MOST_PLACES:
        count //= 2
    return count


def bypasses(fusion: Fusion, length: int, facts: Facts) -> bool:
    """Tell whether outputs, rows of ``length``, are stored past the cache."""
    if not _is_light(fusion) or (length % LINE and length < 4 * LINE):
        return False
    sizes = (elements(t, facts) * t.dtype.itemsize for t in fusion.outputs)
    return max(sizes, default=0) >= BYPASS_BYTES


def _is_light(fusion: Fusion) -> bool:
    """Tell whether memory takes longer than what is computed."""
    work = sum(isinstance(expr, Pointwise) for expr in fusion.exprs)
    return work + 3 * weight(fusion) <= LIGHT * len(memory_tensors(fusion))
