# SPDX-License-Identifier: Apache-2.0
"""Scatters on a device: values in the order of their places, folded two and two.

Values of one place lie side by side once they are sorted by it, and those of each place
keep their order. After step ``k`` each value holds the fold of the last ``2**k`` of its
place, so the last one of a place ends with all of them. Every place is then written as
often as it was named, with the same number: the bits are the same in each run.
"""

from __future__ import annotations

import operator
from math import prod
from typing import TYPE_CHECKING, Any

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.execution.device.describe.libraries import Library
from nfuser.execution.host.call.library.scatters import Looks, check

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.execution.host.call.program import CallLibrary, Scattered
    from nfuser.execution.host.run.arrays import Arrays

# PyTorch adds and multiplies none of these; the bits are those of signed numbers.
_SIGNED = {DType.U16: "int16", DType.U32: "int32", DType.U64: "int64"}
_COMPARING = (ScatterOp.MAX, ScatterOp.MIN)


def lacks_scatter(library: Library, op: ScatterOp, dtype: DType) -> tuple[str, str]:
    """Return why ``library`` has no such scatter and what to write, or two ''."""
    if library is Library.TORCH and op in _COMPARING and dtype in _SIGNED:
        reason = f"torch compares no numbers of {dtype} on CUDA"
        return reason, "x.astype(np.int64) has the same order below 2**63"
    return "", ""


def sorted_scatter(
    stmt: CallLibrary,
    scattered: Scattered,
    arrays: Arrays,
    reading: Callable[[Sequence[Any]], list[Any]],
) -> Callable[..., None]:
    """Return what scatters into the last array given, whose memory the first may be.

    The index is looked at before anything is written, for which the host waits.
    """
    lead, is_part = scattered.lead, stmt.result.dtype.is_complex

    def call(*given: Any) -> None:
        *operands, target = given
        source, index, value = reading(operands)
        out = arrays.own(target)
        if is_part:
            out = out.imag if stmt.offset else out.real
        rows, inner = prod(out.shape[:lead]), prod(out.shape[lead:])
        index = arrays.reshape(index, (-1,))
        sorting = _Sorting(arrays, index, rows) if prod(index.shape) else None
        looks = Looks() if sorting is None else sorting.looks
        check(looks, tuple(out.shape[:lead]), scattered.complaint, stmt.note)
        if sorting is None or not inner:
            arrays.copy(source, out)
            return
        new = arrays.reshape(value, (prod(index.shape), inner))
        whole = out if arrays.is_dense(out) else arrays.copy(source, None)
        if whole is out and not arrays.is_same(source, out):
            arrays.copy(source, out)
        held = arrays.reshape(whole, (rows, inner))
        sorting.scatter(scattered.op, held, new)
        if whole is not out:
            arrays.copy(arrays.reshape(held, tuple(out.shape)), out)

    return call


class _Sorting:
    """An index in order; ``longest`` is how often the most frequent place is named."""

    def __init__(self, arrays: Arrays, index: Any, rows: int) -> None:
        xp = self.xp = arrays.module
        self.arrays = arrays
        places = xp.where(index < 0, index + rows, index)
        self.order = xp.empty_like(places)
        arrays.argsort(places, 0, True, self.order)
        self.places = places[self.order]
        first = xp.searchsorted(self.places, self.places, side="left")
        self.last = xp.searchsorted(self.places, self.places, side="right") - 1
        found = xp.stack([index.min(), index.max(), (self.last - first).max()])
        low, high, longest = found.tolist()
        self.looks = Looks(low, high)
        self.longest = longest + 1

    def scatter(self, op: ScatterOp, held: Any, new: Any) -> None:
        """Do what ``op`` says to the rows of ``held``, with each row of ``new``."""
        held, new = self._signed(held), self._signed(new)
        if op is ScatterOp.SET:
            held[self.places] = new[self.order[self.last]]
            return
        join = self._joins(op)
        folded = self._folded(join, new[self.order])[self.last]
        held[self.places] = join(held[self.places], folded)

    def _folded(self, join: Callable[[Any, Any], Any], values: Any) -> Any:
        xp, step = self.xp, 1
        while step < self.longest:
            is_same = (self.places[step:] == self.places[:-step])[:, None]
            later = values[step:]
            joined = xp.where(is_same, join(values[:-step], later), later)
            values = xp.concatenate([values[:step], joined])
            step *= 2
        return values

    def _joins(self, op: ScatterOp) -> Callable[[Any, Any], Any]:
        match op:
            case ScatterOp.ADD:
                return operator.add
            case ScatterOp.MULTIPLY:
                return operator.mul
            case _:
                return self.xp.maximum if op is ScatterOp.MAX else self.xp.minimum

    def _signed(self, x: Any) -> Any:
        if self.arrays.library is not Library.TORCH:
            return x
        kinds = {getattr(self.xp, k.numpy.name): name for k, name in _SIGNED.items()}
        return x.view(getattr(self.xp, kinds[x.dtype])) if x.dtype in kinds else x
