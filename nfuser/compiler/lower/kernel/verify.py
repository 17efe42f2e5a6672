# SPDX-License-Identifier: Apache-2.0
"""Check the invariants of a kernel: everything is defined where it is used."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import LoopIndex
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Barrier,
    Buffer,
    Call,
    DrawPacket,
    Element,
    FindFirst,
    FindLine,
    For,
    If,
    Kernel,
    Let,
    Load,
    Memory,
    Receive,
    SetElement,
    Shuffle,
    Stmt,
    TakeTicket,
    Value,
    Var,
)
from nfuser.compiler.lower.kernel.parameters import scalars_in
from nfuser.compiler.lower.kernel.text import text
from nfuser.errors import VerifyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_DEFINING = (Let, TakeTicket, FindLine, FindFirst)


def verify_kernel(kernel: Kernel) -> None:
    """Raise VerifyError, with the kernel's text, unless ``kernel`` is in order."""
    _Verifier(kernel).run()


class _Verifier:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.known: set[Var | Array | Buffer | LoopIndex] = {
            *kernel.buffers,
            *kernel.arrays,
            *kernel.values,
            *(var for var, _ in kernel.integers),
            *(index for index, _ in kernel.bound),
        }
        self.is_alone = not kernel.scheduled.target.has_blocks

    def run(self) -> None:
        for array in self.kernel.arrays:
            is_shared = array.memory is not Memory.LOCAL
            message = "shared memory without blocks"
            self._require(not (self.is_alone and is_shared), message)
        self._block(self.kernel.body)

    def _require(self, holds: bool, problem: str) -> None:
        if not holds:
            message = f"kernel {self.kernel.name}: {problem}\n{text(self.kernel)}"
            raise VerifyError(message)

    def _block(self, body: tuple[Stmt, ...]) -> None:
        """Check statements in order; what a loop or branch defines ends with it."""
        outer = set(self.known)
        for stmt in body:
            self._statement(stmt)
        self.known = outer

    def _statement(self, stmt: Stmt) -> None:
        if isinstance(stmt, For):
            self._scalars((stmt.stop,))
            self._use((stmt.going,))
            self._require(stmt.index not in self.known, "a loop inside itself")
            self.known.add(stmt.index)
            self._block(stmt.body)
            self.known.discard(stmt.index)
            return
        if isinstance(stmt, If):
            self._use((stmt.condition,))
            self._block(stmt.body)
            return
        self._require(
            not (self.is_alone and isinstance(stmt, Barrier)),
            "a barrier without blocks",
        )
        defined = stmt.var if isinstance(stmt, _DEFINING) else None
        used = (getattr(stmt, field.name) for field in fields(stmt))
        self._use(tuple(x for x in used if x is not defined))
        if isinstance(stmt, SetElement):
            same = stmt.value.dtype is stmt.array.dtype
            self._require(same, "an element of another dtype than its array")
        if self.is_alone and isinstance(stmt, DrawPacket):
            self._require(_is_block(stmt), "a packet of words that is no block")
        if defined is not None:
            self.known.add(defined)

    def _use(self, items: tuple[object, ...]) -> None:
        self._names(items)
        self._scalars(items)

    def _names(self, items: Iterable[object]) -> None:
        for item in items:
            is_name = isinstance(item, (Var, Array, Buffer))
            if is_name and item not in self.known:  # to say which takes long
                self._require(False, f"{item!r} is used before it is set")
            self._names(_parts(item))

    def _scalars(self, items: tuple[object, ...]) -> None:
        for scalar in scalars_in(items):
            for x in scalar_walk.varying(scalar):
                if isinstance(x, LoopIndex):
                    self._require(x in self.known, f"loop {x.number} is not open")
                else:
                    self._require(x.tensor in self.known, "an index before it is set")


def _is_block(draw: DrawPacket) -> bool:
    """Tell whether what a CPU draws are the words of one block."""
    begin, *_ = scalars_in([draw.place])
    begins = sc.modulo(begin, draw.width) is sc.const(0)
    return begins and draw.width * draw.array.dtype.bits == 128


def _parts(item: object) -> Iterator[Value | Array | Buffer]:
    match item:
        case Call(_, operands):
            yield from operands
        case Element(array):
            yield array
        case Load(buffer) | Receive(buffer):
            yield buffer
        case Shuffle(value):
            yield value
        case _:
            pass
