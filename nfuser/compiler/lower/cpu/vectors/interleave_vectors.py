# SPDX-License-Identifier: Apache-2.0
"""Several vectors side by side, where LLVM would take one after the other.

Each operation of a chain waits for the one before it, and so do those inside of a dear
one: a quotient, a polynomial. While one vector waits another can be worked on, but a
processor does not look that far ahead, and LLVM leaves loops that are not short as they
are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.lower.cpu.vectors.chains import Chains, chains_of
from nfuser.compiler.lower.cpu.vectors.lanes import (
    ANGULAR,
    has_many_functions,
    instructions,
    is_chain,
    is_dear,
    is_narrow_outside,
    is_wide_inside,
)
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import Call, DrawPacket, For
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, Stmt

_ABREAST = ((16, 4), (256, 2))  # vectors, of polynomials of so many instructions
_BLOCKS_ABREAST = 2  # vectors of Philox's blocks, each round of which waits for another
_ABREAST_NARROW = ((16, 4), (512, 2))  # the same where none is of f64
_ABREAST_INSIDE = ((32, 4), (512, 2))  # nor of f32 alone, but of f64 inside
_ABREAST_CHAINED = ((512, 4),)  # the same where each waits for the one before it
_CALLED_ABREAST = 128  # instructions of functions that are called: none holds registers
_SHORT = 16  # operations of which a processor has several turns of a loop in sight
_MOST_WAITING = 8  # vectors of a chain, each of which waits four cycles for the last
_REGISTERS = 8  # of the sixteen at least that there are; others hold numbers
_MOST_OPERATIONS = 1024  # of all vectors, which LLVM compiles in a tenth of a second


def interleave_vectors(kernel: Kernel) -> Kernel:
    """Let loops whose operations wait have several vectors side by side."""
    calls = has_many_functions(kernel.body)

    def widened(loop: For) -> tuple[Stmt, ...] | None:
        return _widened(loop, calls=calls)

    return Additions(kernel).to(each_loop(kernel.body, widened))


def _widened(loop: For, *, calls: bool) -> tuple[Stmt, ...] | None:
    """Return ``loop`` with its vectors abreast; ``calls``: its functions are called.

    Turns of one that a condition ends come one after another.
    """
    if loop.going is not None:
        return None
    count = loop.interleave or _vectors(loop, calls=calls)
    narrow = loop.narrow or (count > 1 and is_narrow_outside(loop))
    if count == loop.interleave and narrow == loop.narrow:
        return None
    return (replace(loop, interleave=count, narrow=narrow),)


def _vectors(loop: For, *, calls: bool) -> int:
    inside = every(loop.body)
    if any(isinstance(x, DrawPacket) for x in loop.body):
        return _BLOCKS_ABREAST
    dear = [x for x in inside if isinstance(x, Call) and is_dear(x.op)]
    if any(isinstance(x, For) for x in inside):
        return 0
    is_short = loop.lane is not None and loop.lane.walk.short
    if not dear:
        found = None if is_short else chains_of(loop.body)
        return 0 if found is None else _beside(found)
    if not all(x.dtype.is_float for x in dear):
        return 0
    if is_short:
        return 1
    work = sum(instructions(x) for x in dear)
    is_long = any(x.op in ANGULAR for x in dear)  # each fills what is in sight
    if calls and work and not is_long and is_chain(loop.body):
        return _CALLED_ABREAST // max(map(instructions, dear))
    found = next((count for most, count in _limits(loop, dear) if work <= most), 0)
    operations = work + sum(isinstance(x, Call) for x in inside)
    while found > 1 and found * operations > _MOST_OPERATIONS:
        found //= 2
    return found


def _limits(loop: For, dear: list[Call]) -> tuple[tuple[int, int], ...]:
    """Return how many vectors there may be side by side, by the work for each."""
    is_narrow = all(x.dtype is DType.F32 for x in dear)
    if is_narrow and any(is_wide_inside(x.op) for x in dear):
        return _ABREAST_INSIDE
    if is_chain(loop.body):
        return _ABREAST_CHAINED
    return _ABREAST_NARROW if is_narrow else _ABREAST


def _beside(chains: Chains) -> int:
    """Return how many vectors fill the time in which cheap operations wait."""
    if chains.operations <= _SHORT:
        return 0
    most = min(
        _MOST_WAITING * chains.longest // chains.operations,
        _REGISTERS // chains.held,
        _MOST_OPERATIONS // chains.operations,
    )
    return next((count for count in (8, 4, 2) if count <= most), 0)
