# SPDX-License-Identifier: Apache-2.0
"""Scatters on a CPU: the index is looked at, and then native loops obey it.

The result has the same bits for any number of threads, and in each run. They are those
of one value after another, but for sums and products where many values come to each
place: such are of pieces of the values, which are joined in their order; which pieces
follows from sizes and from the index alone. Where few come to each, threads share an
index in order by its cuts, and else each looks for what goes to places of its own.
"""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nfuser.codegen.numba.compiler_lock import imported
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.errors import host_error
from nfuser.execution.device.cpu.affinity import share_of_threads

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
_SAMPLE = 1 << 7  # indices of each piece that tell of all of them
_EACH = 16  # values for each place of a piece that are worth an array of its own
_LEAST = 1 << 10  # places for each thread that looks for its own
_GAP = (1 << 8) - 1  # the widest between neighbours of an index that is told in a byte
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
        sample = _sample(index)
        loops = _Loops(kernels, scattered.op, whole, index, value, rows, step, sample)
        own = loops.apart() if inner == 1 else None
        looks = Looks()
        if own is None:  # else all places were there
            looks = loops.look()
            check(looks, out.shape[:lead], scattered.complaint, stmt.note)
            if looks.low < 0 and inner == 1:
                loops = loops._replace(index=np.where(index < 0, index + rows, index))
                own = loops.apart()
                looks = Looks()
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
    """What is to be known of an index; ``gaps`` between neighbours if all are small."""

    low: int = 0
    high: int = -1
    is_sorted: bool = False
    gaps: Any = None


class _Loops(NamedTuple):
    """The loops of one scatter, with what they are given."""

    kernels: ScatterKernels
    op: ScatterOp
    out: Any
    index: Any
    value: Any
    rows: int
    step: int
    sample: Any

    def columns(self, inner: int) -> None:
        """Take one row after another; threads share the elements of all of them."""
        given = [x.ctypes.data for x in (self.out, self.index, self.value)]
        numbers = [self.index.size, self.rows, inner, self.step]
        cost = self.index.size * inner
        _run(self.kernels.columns(), [*given, *numbers], inner, cost, _GRAIN)

    def look(self) -> Looks:
        """Return what the index is, with as few looks at it as that takes."""
        index, count = self.index, self.index.size
        if not count:
            return Looks()
        if count < _FEW:
            return _by_numpy(index)
        blocks = -(-count // _BLOCK)
        if count >= _MANY and self._mostly(np.greater_equal):
            gaps = np.empty(count, np.uint8)
            gaps[0] = 0
            every = np.empty(blocks, np.int64)
            self._look(self.kernels.gaps(), gaps, every)
            widest = int(np.bitwise_or.reduce(every))
            if 0 <= widest < 2 * self.rows:  # no difference went beyond 64 bits
                found = gaps if widest <= _GAP else None
                return Looks(int(index[0]), int(index[-1]), True, found)
        found = np.empty(blocks, np.uint64)
        self._look(self.kernels.look(), found)
        most = int(found.max())
        return Looks(0, most) if most < self.rows else _by_numpy(index)

    def _look(self, kernel: CpuKernel, *written: Any) -> None:
        given = [x.ctypes.data for x in (self.index, *written)]
        count = self.index.size
        _run(kernel, [*given, count, _BLOCK], -(-count // _BLOCK), count)

    def elements(self, looks: Looks) -> None:
        """Take one element after another, or those of places that lie apart."""
        count = self.index.size
        threads = share_of_threads()
        is_cut = looks.is_sorted and threads > 1
        bounds = self._cuts() if is_cut else np.array([0, count])
        if self._mostly(np.equal):
            greatest = np.empty(bounds.size - 1, np.uint64)
            numbers = [self.rows, 0]
            self._pieces(self.kernels.runs(), self.out, bounds, greatest, numbers)
        elif looks.gaps is not None:
            self._pieces(self.kernels.by_gaps(), self.out, bounds, looks.gaps)
        elif (
            threads > 1
            and count >= _MANY
            and self.op in _IDENTITIES
            and self.rows >= _LEAST * threads
            and not looks.is_sorted
        ):
            self._owners(min(threads, _PIECES))
        else:
            self._pieces(self.kernels.each(), self.out, bounds)

    def _cuts(self) -> Any:
        """Return where pieces of an index in order may begin and end."""
        count = self.index.size
        firsts = self.index[_even(count, _PIECES)[1:-1]]
        return np.array([0, *np.searchsorted(self.index, firsts).tolist(), count])

    def _owners(self, pieces: int) -> None:
        """Let each thread look for what goes to the places that are its own."""
        bounds = _even(self.rows, pieces)
        nothing = self._identity()
        given = (self.out, self.index, self.value, bounds, nothing)
        arguments = [*(x.ctypes.data for x in given), self.index.size, self.step]
        _run(self.kernels.own(), arguments, pieces, self.index.size)

    def _identity(self) -> Any:
        return np.array(_IDENTITIES[self.op]).astype(self.out.dtype)

    def apart(self) -> Any:
        """Return arrays of their own for pieces of the index, to be joined in order.

        None if there are too few values, or if one goes to a place that is not there.
        """
        count = self.index.size
        pieces = min(count // (_EACH * self.rows), _PIECES) if self.rows else 0
        if count < _MANY or pieces <= 1 or self.op not in _IDENTITIES:
            return None
        own = np.full((pieces, self.rows), self._identity(), self.out.dtype)
        bounds, greatest = _even(count, pieces), np.empty(pieces, np.uint64)
        if self._mostly(np.equal):
            kernel, numbers = self.kernels.runs(), [self.rows, self.rows]
        else:
            kernel, numbers = self.kernels.apart(), [self.rows]
        self._pieces(kernel, own, bounds, greatest, numbers)
        return own if int(greatest.max()) < self.rows else None

    def join(self, own: Any) -> None:
        """Let the array have what pieces have, one after another."""
        join = np.add if self.op is ScatterOp.ADD else np.multiply
        flat = self.out.reshape(-1)
        with np.errstate(all="ignore"):
            for part in own:
                join(flat, part, out=flat)

    def _mostly(self, relation: Callable[[Any, Any], Any]) -> bool:
        """Tell whether so stand neighbours of the sample, but for one in eight."""
        part = self.sample
        count = np.count_nonzero(relation(part[:, 1:], part[:, :-1]))
        return int(count) > part.size * 7 // 8

    def _pieces(
        self,
        kernel: CpuKernel,
        out: Any,
        bounds: Any,
        other: Any = None,
        numbers: Sequence[int] = (),
    ) -> None:
        """Take what lies between ``bounds``, which no two threads write the same of."""
        given = [out, self.index, self.value, bounds]
        given += [] if other is None else [other]
        arguments = [*(x.ctypes.data for x in given), *numbers, self.step]
        _run(kernel, arguments, bounds.size - 1, self.index.size)


def _by_numpy(index: Any) -> Looks:
    """Return what NumPy finds, which is slow where an index is long."""
    return Looks(int(index.min()), int(index.max()))


def _sample(index: Any) -> Any:
    """Return parts of an index that tell of all of it."""
    if index.size < _FEW:
        return index[:0].reshape(1, 0)
    parts = index[: index.size // _PIECES * _PIECES].reshape(_PIECES, -1)
    return parts[:, :_SAMPLE].copy()


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
        return np.array(first, order="C"), int(not is_one)
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
