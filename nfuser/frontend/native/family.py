# SPDX-License-Identifier: Apache-2.0
"""Records of calls of many sizes: a plan is made once, of sizes that stay open.

What the plan asked of them, and what the trace did, native code asks of each call; the
rest of a plan is arithmetic, which it does as well.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.open_integer import Asked
from nfuser.execution.device.describe.descriptor import Library, describe
from nfuser.execution.device.native.shared import shared
from nfuser.execution.host.call.native.number_steps import GREATEST, NotNativeError
from nfuser.execution.runtime.call import is_integer, symbols_of
from nfuser.execution.runtime.tables.counters import Counters
from nfuser.frontend.native.calls import RecordMaker, can_be_native, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.device.native.state import Record
    from nfuser.execution.host.call.native.number_steps import NumberWriter
    from nfuser.execution.host.call.native.program_words import NativeProgram
    from nfuser.execution.host.call.program import CallProgram, Slot
    from nfuser.frontend.call.inputs.arguments import Arguments
    from nfuser.frontend.call.ready import Ready
    from nfuser.frontend.call.shape import CallShape


def record_family(
    function: Callable[..., Any],
    ready: Ready,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    arguments: Arguments,
) -> Record | None:
    """Return a record of calls like one that ``ready`` serves, of many sizes.

    None where each size needs a plan. ``arguments`` are ``args`` taken apart.
    """
    found, place = shared(), ready.place
    is_here = place.library is Library.NUMPY and not place.device.is_cuda
    if found is None or not is_here or not can_be_native(place):
        return None
    given = (*args, *kwargs.values())
    try:
        shape = shape_of(function, args, kwargs)
        return _FamilyMaker(found, ready, shape, given, arguments).made()
    except NotNativeError:
        return None


class _FamilyMaker(RecordMaker):
    is_open = True

    def __init__(
        self,
        shared: Any,
        ready: Ready,
        shape: CallShape,
        args: Sequence[Any],
        arguments: Arguments,
    ) -> None:
        self._asked = Asked()
        self._given = arguments
        self._strides: dict[Scalar, tuple[int, int, int]] = {}
        self._fixed: list[tuple[int, int, int]] = []
        super().__init__(shared, ready, shape, args, ())

    def _laid_out(self) -> tuple[CallProgram, Mapping[int, Slot]]:
        ready, opened = self._ready, self._asked.open
        if ready.lifted:
            raise NotNativeError
        variant = ready.variant
        arrays: dict[int, Descriptor] = {}
        for captured, array in self._captured:
            arrays[captured.slot] = describe(array, "a captured array")
        for slot, array in self._given.arrays.items():
            arrays[slot] = self._opened(slot, describe(array, "an argument"))
        integers = {
            slot: opened(scalar_symbols.scalar_input(slot), int(n))
            for slot, n in self._given.numbers.items()
            if is_integer(n)
        }
        return variant.cache.open_program(
            ready.place, arrays, integers, Counters(), variant.trace.fusion
        )

    def _opened(self, slot: int, d: Descriptor) -> Descriptor:
        """Return what an array is, its sizes and strides open."""
        sizes = [
            self._asked.open(scalar_symbols.size(slot, k), n)
            for k, n in enumerate(d.shape)
        ]
        strides: list[int] = []
        for axis, step in enumerate(d.strides):
            symbol = scalar_symbols.knob(f"stride {slot} {axis}")
            if step > 0:
                self._strides[symbol] = slot, axis, d.dtype.itemsize
                strides.append(self._asked.open(symbol, step))
            else:  # symbols stand for positive ones
                self._fixed.append((slot, axis, step * d.dtype.itemsize))
                strides.append(step)
        return replace(d, shape=tuple(sizes), strides=tuple(strides))

    def _fixed_sizes(self) -> dict[Scalar, int]:
        shapes = {c.slot: tuple(array.shape) for c, array in self._captured}
        return symbols_of(shapes, {})

    def _reads(self) -> dict[Scalar, Callable[[NumberWriter], int]]:
        places = {slot: position for position, slot in self._slots.items()}
        found: dict[Scalar, Callable[[NumberWriter], int]] = {}
        for symbol in self._asked.today:
            if isinstance(symbol, sc.Size):
                read = partial(_size, places[symbol.slot], symbol.axis)
                found[symbol] = read
        for symbol, (slot, axis, itemsize) in self._strides.items():
            found[symbol] = partial(_stride, places[slot], axis, itemsize)
        return found

    def _native(self) -> NativeProgram:
        super()._native()  # this asks, too; and what was asked comes first
        return super()._native()

    def _answers(self) -> dict[Scalar, int]:
        trace = self._ready.variant.trace
        return {g.condition: g.answer for g in trace.guards} | self._asked.answers

    def _require_answers(self, steps: NumberWriter) -> None:
        places = {slot: position for position, slot in self._slots.items()}
        for slot, axis, apart in self._fixed:
            steps.require(steps.bytes_apart(places[slot], axis), apart, apart)
        for symbol in self._strides:
            steps.require(steps.scalar(symbol), 1, GREATEST)
        super()._require_answers(steps)


def _size(position: int, axis: int, steps: NumberWriter) -> int:
    return steps.size(position, axis)


def _stride(position: int, axis: int, itemsize: int, steps: NumberWriter) -> int:
    return steps.stride(position, axis, itemsize)
