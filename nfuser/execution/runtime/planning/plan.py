# SPDX-License-Identifier: Apache-2.0
"""From a concretization and the numbers of one call to facts, and to a ready plan."""

from __future__ import annotations

from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.base.debug import dump, timing
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Part as ArgumentPart
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.schedule.facts.facts import Facts, TensorLayout
from nfuser.errors import ShapeError
from nfuser.execution.device.allocate import ALIGNMENT, output_strides
from nfuser.execution.host.call.evaluate import Evaluator
from nfuser.execution.host.call.program import CallProgram, Slot, SlotPart
from nfuser.execution.host.call.program import text as program_text
from nfuser.execution.runtime.outputs.assigned import lay_out_assigned, owners
from nfuser.execution.runtime.outputs.memory_order import (
    axis_order,
    dense,
    strides_of_all,
)
from nfuser.execution.runtime.planning.build_program import build_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic
    from nfuser.compiler.segment import Segmented
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.runtime.kernel_runtime import FusionKernelRuntime
    from nfuser.execution.runtime.pieces.concretized import Concretization
    from nfuser.execution.runtime.place import Place

NOTHING: Mapping[int, Descriptor] = MappingProxyType({})
_EASY = 1 << 7  # an extent below which 8 axes of 16-byte elements can be addressed


@node
class Plan:
    """Everything decided for calls of one exact form."""

    evaluator: Evaluator
    inputs: Mapping[int, Slot]  # by the argument's slot
    runtime: FusionKernelRuntime
    concretization: Concretization
    program: CallProgram
    place: Place


def symbol_values(
    arrays: Mapping[int, Descriptor], integers: Mapping[int, int]
) -> dict[Scalar, int]:
    """Return the value of every size and integer argument."""
    values: dict[Scalar, int] = {}
    for slot, descriptor in arrays.items():
        for axis, extent in enumerate(descriptor.shape):
            values[scalar_symbols.size(slot, axis)] = extent
    for slot, number in integers.items():
        values[scalar_symbols.scalar_input(slot)] = number
    return values


# -- facts -------------------------------------------------------------------


def facts_of(
    found: Concretization,
    place: Place,
    arrays: Mapping[int, Descriptor],
    values: Mapping[Scalar, int],
    outputs: Mapping[int, Descriptor] = NOTHING,
) -> Facts:
    """Return the sizes and the memory layouts of one call.

    ``outputs`` are those, by number, that the call finds made.
    """
    layouts: dict[TensorView, TensorLayout] = {}
    for fusion in (found.concrete.fusion, found.rewritten.fusion):
        for argument in fusion.arguments:
            if argument.by_value:
                continue
            layout = _layout(arrays[argument.slot])
            if argument.part is not ArgumentPart.WHOLE:
                item = argument.result.dtype.itemsize
                strides = tuple(2 * s for s in layout.strides)
                layout = TensorLayout(strides, min(layout.alignment, item))
            layouts[argument.result] = layout
    given = {t: layout.strides for t, layout in layouts.items()}
    ready = {number: _layout(d) for number, d in outputs.items()}
    _lay_out_outputs(found, place, layouts, given, values, ready)
    segmented = found.segmented
    _lay_out_between(segmented, place, layouts, given, values)
    lay_out_assigned(found.rewritten.fusion, layouts, values)
    _lay_out_bodies(segmented, place, layouts, values)
    return Facts(values, layouts, place.target, _between(found))


def _between(found: Concretization) -> dict[TensorView, TensorView]:
    """Return the real part that each imaginary part lies beside, in and out."""
    fusion = found.rewritten.fusion
    pairs = {imaginary: real for real, imaginary in fusion.complex_arguments}
    rewritten = iter(fusion.outputs)
    for output in found.concrete.fusion.outputs:
        first = next(rewritten)
        if output.dtype.is_complex:
            pairs[next(rewritten)] = first
    return pairs


def _layout(descriptor: Descriptor) -> TensorLayout:
    pointer = descriptor.pointer
    alignment = pointer & -pointer or ALIGNMENT
    return TensorLayout(descriptor.strides, min(alignment, ALIGNMENT))


def _lay_out_outputs(
    found: Concretization,
    place: Place,
    layouts: dict[TensorView, TensorLayout],
    given: Mapping[TensorView, tuple[int, ...]],
    values: Mapping[Scalar, int],
    ready: Mapping[int, TensorLayout],
) -> None:
    plain = found.concrete.fusion
    shapes = _shapes(plain, values)
    orders = strides_of_all(plain, shapes, given)
    rewritten = iter(found.rewritten.fusion.outputs)
    for number, output in enumerate(plain.outputs):
        shape = shapes[output]
        own = dense(shape, axis_order(len(shape), [orders[output]]))
        strides = output_strides(place.library, shape, own)
        layout = ready.get(number, TensorLayout(strides, ALIGNMENT))
        layouts[output] = layout
        stored = [next(rewritten)]
        if output.dtype.is_complex:
            stored.append(next(rewritten))
            doubled = tuple(2 * s for s in layout.strides)
            real = min(layout.alignment, output.dtype.real.itemsize)
            layout = TensorLayout(doubled, real)
        # An argument that is returned lies where it did.
        layouts.update((tensor, layout) for tensor in stored if tensor not in given)


def _lay_out_between(
    segmented: Segmented,
    place: Place,
    layouts: dict[TensorView, TensorLayout],
    given: Mapping[TensorView, tuple[int, ...]],
    values: Mapping[Scalar, int],
) -> None:
    """Choose the strides of what one kernel leaves for another."""
    pieces = segmented.segments
    tensors = [t for piece in pieces for t in piece.fusion.outputs if t not in layouts]
    if not tensors:
        return
    fusion = segmented.fusion
    shapes = _shapes(fusion, values)
    orders = strides_of_all(fusion, shapes, given)
    for tensor in tensors:
        shape = shapes[tensor]
        own = dense(shape, axis_order(tensor.ndim, [orders[tensor]]))
        layouts[tensor] = TensorLayout(
            output_strides(place.library, shape, own), ALIGNMENT
        )


def _lay_out_bodies(
    segmented: Segmented,
    place: Place,
    layouts: dict[TensorView, TensorLayout],
    values: Mapping[Scalar, int],
) -> None:
    """Lay out what loops read, leave and have between the kernels of their bodies.

    What is carried lies alike before and after each iteration, so that two buffers
    take turns.
    """
    for piece in segmented.segments:
        if piece.body is None:
            continue
        (loop,) = piece.fusion.loops
        own = piece.body
        for number, first in enumerate(_alike(loop.forwarded)):
            layouts[loop.operands[number]] = layouts[loop.operands[first]]
        for inner, operand in loop.given:
            if operand in layouts:
                layouts[inner] = layouts[operand]
        for before, after, result in loop.pairs:
            layouts[after] = layouts[result] = layouts[before]
        for row, result in loop.added:
            whole = layouts[result]
            step = row.dtype.itemsize * (whole.strides[0] if whole.strides else 0)
            alignment = min(step & -step or ALIGNMENT, whole.alignment)
            layouts[row] = TensorLayout(whole.strides[1:], alignment)
        given = {t: layouts[t].strides for t in own.fusion.inputs if t in layouts}
        _lay_out_between(own, place, layouts, given, values)
        lay_out_assigned(own.fusion, layouts, values)
        _lay_out_bodies(own, place, layouts, values)


def _alike(forwarded: Sequence[int | None]) -> list[int]:
    """Return, for each carried value, the first of those that its memory goes round.

    >>> _alike([1, 2, None, 0, None])
    [0, 0, 0, 0, 4]
    """
    first = list(range(len(forwarded)))
    for _ in first:
        for number, source in enumerate(forwarded):
            if source is not None:
                least = min(first[number], first[source])
                first[number] = first[source] = least
    return first


def _shapes(
    fusion: Fusion, values: Mapping[Scalar, int]
) -> dict[TensorView, tuple[int, ...]]:
    extents = list(dict.fromkeys(x for t in fusion.definition for x in t.shape))
    known = dict(zip(extents, scalar_walk.evaluate_all(extents, values), strict=True))
    shapes = {t: tuple(known[x] for x in t.shape) for t in fusion.definition}
    if max(known.values(), default=0) >= _EASY:
        _require_addressable(shapes)
    return shapes


def _require_addressable(shapes: Mapping[TensorView, tuple[int, ...]]) -> None:
    """Refuse arrays of more bytes than a signed address counts, as NumPy does."""
    for tensor, shape in shapes.items():
        size = prod(n for n in shape if n) * tensor.dtype.itemsize
        if size >= 1 << 63:
            message = (
                f"make it smaller: an array of shape {shape} and dtype {tensor.dtype} "
                f"has {size} bytes; expected fewer than 2**63"
            )
            raise ShapeError(message)


# -- plans -------------------------------------------------------------------


def build_plan(
    found: Concretization,
    runtime: FusionKernelRuntime,
    facts: Facts,
    place: Place,
    arrays: Mapping[int, Descriptor],
    heuristics: tuple[Heuristic, ...],
    decided: AbstractSet[Scalar] = frozenset(),
    ready: AbstractSet[int] = frozenset(),
) -> Plan:
    """Return the plan of calls with exactly these shapes, strides and alignment.

    Outputs whose numbers are in ``ready`` are given to each run of its program.
    ``decided`` are the integers of the call that such calls have in common, too.
    """
    given = runtime, facts, arrays, heuristics, decided, ready
    program, inputs = program_of(found, *given)
    if dump.wants("host"):
        dump.dump("host", program_text(program))
    name = found.concrete.fusion.name
    return ready_plan(found, runtime, place, tuple(inputs), program, name)


def program_of(
    found: Concretization,
    runtime: FusionKernelRuntime,
    facts: Facts,
    arrays: Mapping[int, Descriptor],
    heuristics: tuple[Heuristic, ...],
    decided: AbstractSet[Scalar] = frozenset(),
    ready: AbstractSet[int] = frozenset(),
    *,
    reuses: bool = True,
) -> tuple[CallProgram, Mapping[int, Slot]]:
    """Return the program of such a call, and its inputs by slot.

    Its sizes may be open, unless it ``reuses`` memory.
    """
    inputs, outputs, places = _laid_out(found, facts, arrays)
    with timing.timed("host", found.concrete.fusion.name):
        program = build_program(
            runtime,
            facts,
            places,
            tuple(inputs.values()),
            outputs,
            heuristics,
            decided,
            ready,
            reuses=reuses,
        )
    return program, inputs


def ready_plan(
    found: Concretization,
    runtime: FusionKernelRuntime,
    place: Place,
    slots: tuple[int, ...],
    program: CallProgram,
    name: str,
) -> Plan:
    """Return the plan of a program, whose inputs are the arrays of these ``slots``."""
    inputs = dict(zip(slots, program.inputs, strict=True))
    where = place.library, place.device, place.backend
    evaluator = Evaluator(program, *where, name=name)
    return Plan(evaluator, inputs, runtime, found, program, place)


def _laid_out(
    found: Concretization, facts: Facts, arrays: Mapping[int, Descriptor]
) -> tuple[dict[int, Slot], tuple[Slot, ...], dict[TensorView, SlotPart]]:
    """Return the slots of inputs and outputs, and where the tensors of both lie."""
    inputs = {
        slot: Slot(f"in{slot}", d.shape, d.strides, d.dtype)
        for slot, d in arrays.items()
    }
    places: dict[TensorView, SlotPart] = {}
    for argument in found.rewritten.fusion.arguments:
        if not argument.by_value:
            is_imaginary = argument.part is ArgumentPart.IMAG
            offset = argument.result.dtype.itemsize if is_imaginary else 0
            places[argument.result] = SlotPart(inputs[argument.slot], offset)
    outputs: list[Slot] = []
    rewritten = iter(found.rewritten.fusion.outputs)
    owner = owners(found.rewritten.fusion)
    for number, tensor in enumerate(found.concrete.fusion.outputs):
        first = next(rewritten)
        parts = [first, next(rewritten)] if tensor.dtype.is_complex else [first]
        written = places.get(owner.get(first, first))
        if written is not None:  # what was passed is what comes back
            outputs.append(written.slot)
            places |= {t: places[owner.get(t, t)] for t in parts}
            continue
        shape = tuple(facts.size(x) for x in tensor.shape)
        strides = tuple(k // len(parts) for k in facts.layouts[first].strides)
        slot = Slot(f"out{number}", shape, strides, tensor.dtype)
        outputs.append(slot)
        for k, part in enumerate(parts):
            made = SlotPart(slot, k * part.dtype.itemsize)
            places[part] = places[owner.get(part, part)] = made
    return inputs, tuple(outputs), places
