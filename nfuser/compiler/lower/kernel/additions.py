# SPDX-License-Identifier: Apache-2.0
"""What passes over kernels are made of: new arrays and loops, and a walk over loops."""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING

from nfuser.compiler.lower.kernel.kernel_ir import Array, For, If, LoopCounter, Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, Stmt


class Additions:
    """What one pass adds to a kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.loops = LoopCounter(kernel.loops)
        self._arrays: list[Array] = []

    def array(self, dtype: DType, size: int) -> Array:
        """Return a new array of a thread."""
        made = Array(dtype, size, Memory.LOCAL)
        self._arrays.append(made)
        return made

    def to(self, body: tuple[Stmt, ...]) -> Kernel:
        """Return the kernel with ``body``: the same one, if that is its own."""
        if body is self.kernel.body:
            return self.kernel
        arrays = (*self.kernel.arrays, *self._arrays)
        return replace(self.kernel, body=body, arrays=arrays, loops=self.loops.first)


def each_loop(
    body: tuple[Stmt, ...], change: Callable[[For], Iterable[Stmt] | None]
) -> tuple[Stmt, ...]:
    """Return ``body`` with what ``change`` makes of its loops, outermost first.

    Where that is None the loop stays, and those inside it are asked for. A body in
    which nothing changes is the same object.
    """
    made: list[Stmt] = []
    for stmt in body:
        new = change(stmt) if isinstance(stmt, For) else None
        if new is not None:
            made += new
        elif isinstance(stmt, For | If):
            inside = each_loop(stmt.body, change)
            made.append(stmt if inside is stmt.body else replace(stmt, body=inside))
        else:
            made.append(stmt)
    same = len(made) == len(body) and all(map(is_, made, body))
    return body if same else tuple(made)
