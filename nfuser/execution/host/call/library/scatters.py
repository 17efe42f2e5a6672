# SPDX-License-Identifier: Apache-2.0
"""Scatters on a CPU: the index is looked at, and then native loops obey it.

Which pieces the loops take follows from sizes and from the index alone: the result has
the same bits for any number of threads, and in each run. They are those of one value
after another, but for sums and products where many values come to each place: such are
of pieces of the values, which are joined in their order.
"""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nfuser.codegen.numba.compiler_lock import imported
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.errors import host_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.execution.device.cpu.kernel import CpuKernel
    from nfuser.execution.host.call.program import (
        CallLibrary,
        Scattered,
        ScatterKernels,
    )

_GRAIN = 64  # elements of rows that a thread takes at once: no line of two threads
_FEW = 1 << 15  # indices that NumPy looks at sooner than a loop of ours is called
_MANY = 1 << 19  # indices that are worth a second thread
_BLOCK = 1 << 15  # indices that are looked at together
_PIECES = 16
_SAMPLE = 1 << 10  # indices of each piece that tell of all of them
_EACH = 16  # values for each place of a piece that are worth an array of its own
_IDENTITIES = {ScatterOp.ADD: -0.0, ScatterOp.MULTIPLY: 1}


def scatter_call(
    stmt: CallLibrary,
    scattered: Scattered,
    reading: Callable[[Sequence[Any]], list[Any]],
) -> Callable[..., None]:
    """Return what scatters into the last array given, whose memory the first may be.

    Nothing is written where the index names a position that is not there.
    """
    imported("nfuser.execution.device.cpu.threads")
    kernels, lead = scattered.kernels(), scattered.lead
    is_part = stmt.result.dtype.is_complex

    def call(*given: Any) -> None:
        *operands, target = given
        read = reading(operands)
        source: Any = read[0]
        out: Any = np.asarray(target)
        if is_part:
            out = out.imag if stmt.offset else out.real
        index = np.ascontiguousarray(read[1]).reshape(-1)
        rows, inner = prod(out.shape[:lead]), prod(out.shape[lead:])
        value, step = _in_row(read[2], out)
        whole = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        wrap = 0 if scattered.complaint else rows
        loops = _Loops(kernels, scattered.op, whole, index, value, rows, step, wrap)
        own = loops.apart() if inner == 1 else None
        looks = Looks()
        if own is None:  # else all places were there
            looks = _look(kernels, index)
            check(looks, out.shape[:lead], scattered.complaint, stmt.note)
        if whole.ctypes.data != source.ctypes.data:
            whole[...] = source
        if own is not None:
            loops.join(own)
        elif index.size and inner == 1:
            loops.elements(looks)
        elif index.size and inner:
            loops.columns(inner)
        if whole is not out:
            out[...] = whole

    return call


class Looks(NamedTuple):
    """What is to be known of an index."""

    low: int = 0
    high: int = -1
    is_sorted: bool = False
    has_runs: bool = False  # neighbours mostly name one position


def _look(kernels: ScatterKernels, index: Any) -> Looks:
    if not index.size:
        return Looks()
    if index.size < _FEW:
        return Looks(int(index.min()), int(index.max()))
    blocks = -(-index.size // _BLOCK)
    found = np.empty((blocks, 4), np.int64)
    arguments = [index.ctypes.data, found.ctypes.data, index.size, _BLOCK]
    _run(kernels.look(), arguments, blocks, index.size)
    falls, stays = (int(n) for n in found[:, 2:].sum(0))
    low, high = int(found[:, 0].min()), int(found[:, 1].max())
    return Looks(low, high, not falls, stays > index.size * 7 // 8)


class _Loops(NamedTuple):
    """The loops of one scatter, with what they are given."""

    kernels: ScatterKernels
    op: ScatterOp
    out: Any
    index: Any
    value: Any
    rows: int
    step: int
    wrap: int

    def columns(self, inner: int) -> None:
        """Take one row after another; threads share the elements of all of them."""
        given = [x.ctypes.data for x in (self.out, self.index, self.value)]
        numbers = [self.index.size, self.rows, inner, self.step]
        cost = self.index.size * inner
        _run(self.kernels.columns(), [*given, *numbers], inner, cost, _GRAIN)

    def elements(self, looks: Looks) -> None:
        """Take one element after another, or those of places that lie apart."""
        count = self.index.size
        cuts: list[int] = []
        if count >= _MANY and looks.is_sorted and looks.low >= 0:
            firsts = self.index[_even(count, _PIECES)[1:-1]]
            cuts = np.searchsorted(self.index, firsts).tolist()
        bounds = np.array([0, *cuts, count])
        self._pieces(self.kernels.pieces(), self.out, bounds, looks.has_runs)

    def apart(self) -> Any:
        """Return arrays of their own for pieces of the index, to be joined in order.

        None if there are too few values, or if one goes to a place that is not there.
        """
        count = self.index.size
        pieces = min(count // (_EACH * self.rows), _PIECES) if self.rows else 0
        if count < _MANY or pieces <= 1 or self.op not in _IDENTITIES:
            return None
        identity = np.array(_IDENTITIES[self.op]).astype(self.out.dtype)
        own = np.full((pieces, self.rows), identity, self.out.dtype)
        bounds = _even(count, pieces)
        runs = _has_runs(self.index)
        is_right = self._pieces(self.kernels.checked(), own, bounds, runs, self.rows)
        return own if is_right else None

    def join(self, own: Any) -> None:
        """Let the array have what pieces have, one after another."""
        join = np.add if self.op is ScatterOp.ADD else np.multiply
        flat = self.out.reshape(-1)
        with np.errstate(all="ignore"):
            for part in own:
                join(flat, part, out=flat)

    def _pieces(
        self, kernel: CpuKernel, out: Any, bounds: Any, has_runs: bool, apart: int = 0
    ) -> bool:
        """Take what lies between ``bounds``, which no two threads write the same of.

        Return whether all places were there, as far as the kernel checks them.
        """
        wrong = np.empty(bounds.size - 1, np.int64)
        given = (out, self.index, self.value, bounds, wrong)
        numbers = [self.rows, apart, self.step, self.wrap, int(has_runs)]
        arguments = [*(x.ctypes.data for x in given), *numbers]
        _run(kernel, arguments, wrong.size, self.index.size)
        return not wrong.any()


def _has_runs(index: Any) -> bool:
    """Tell of a part of a long index whether neighbours mostly name one position."""
    part = index[: index.size // _PIECES * _PIECES].reshape(_PIECES, -1)[:, :_SAMPLE]
    stays = np.count_nonzero(part[:, 1:] == part[:, :-1])
    return int(stays) > part.size * 7 // 8


def _run(
    kernel: Any, arguments: Sequence[Any], total: int, cost: int, grain: int = 1
) -> None:
    from nfuser.execution.device.cpu.threads import run_range  # noqa: PLC0415 (its own pool)

    run_range(kernel, arguments, total, grain, cost)


def _even(count: int, pieces: int) -> Any:
    """Return where pieces of one size, but for the last, begin and end."""
    return np.arange(pieces + 1, dtype=np.int64) * count // pieces


def _in_row(value: Any, out: Any) -> tuple[Any, int]:
    """Return values one after another, apart from ``out``, and the step to the next.

    One value for all places is not repeated.
    """
    is_one = value.size and not any(value.strides)
    first = value[(0,) * value.ndim] if is_one else value
    if is_one or np.may_share_memory(value, out):
        return np.array(first), int(not is_one)
    return np.ascontiguousarray(value), 1


def check(looks: Looks, shape: tuple[int, ...], complaint: str, note: str) -> None:
    """Refuse an index that names a position which is not there."""
    rows = prod(shape)
    if looks.low >= (0 if complaint else -rows) and looks.high < rows:
        return
    if complaint:
        told = complaint.format(low=looks.low, high=looks.high)
        raise host_error(f"{told}{note}", ValueError())
    wrong = looks.high if looks.high >= rows else looks.low
    if len(shape) == 1:
        place = f"index {wrong} is out of bounds for axis 0 with size {rows}"
    else:
        place = f"an index is out of bounds for axes of the sizes {shape}"
    message = f"{place}; nothing was written by this assignment{note}"
    raise host_error(message, IndexError())
