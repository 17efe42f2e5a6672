# SPDX-License-Identifier: Apache-2.0
"""Outputs that are written into inputs, after everything was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.errors import ArgumentError, MutationError, ShapeError, UnsupportedError
from nfuser.execution.device.cuda.streams import guard
from nfuser.execution.device.describe.descriptor import Library
from nfuser.frontend.definition.inputs import TensorInput
from nfuser.frontend.definition.types import Tensor, data_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.runtime.planning.plan import Plan
    from nfuser.frontend.definition.draft import Draft


def _into_torch(array: Any, made: Any) -> None:
    array.copy_(made)


def _into_cupy(array: Any, made: Any) -> None:
    array[...] = made


# All copy on the stream on which the kernels were launched.
_WRITERS: dict[Library, Callable[[Any, Any], None]] = {
    Library.NUMPY: np.copyto,
    Library.TORCH: _into_torch,
    Library.CUPY: _into_cupy,
}


def aliased_slot(d: Draft, output: TensorView, item: Any) -> int:
    """Return the slot of the input that takes ``output`` in the end."""
    slots = {x.name: k for k, x in enumerate(d.inputs) if isinstance(x, TensorInput)}
    slot = slots.get(item.name) if isinstance(item, Tensor) else None
    if slot is None:
        message = f"alias_input is a tensor among the inputs, found {item!r}"
        raise ArgumentError(message)
    view = d.tensor(item)
    if slot in d.aliases.values():
        message = f"{item.name} takes another output already"
        raise ArgumentError(message)
    if output.dtype is not view.dtype:
        message = (
            f"{item.name} is {data_type(view.dtype)} and the output "
            f"{data_type(output.dtype)}; cast it first"
        )
        raise ArgumentError(message)
    pairs = zip(output.shape, view.shape, strict=False)
    known = [(a, b) for a, b in pairs if isinstance(a, Const) and isinstance(b, Const)]
    if output.ndim != view.ndim or any(a is not b for a, b in known):
        message = (
            f"an output of shape {d.shape_text(output)} does not go into "
            f"{item.name}, of shape {d.shape_text(view)}"
        )
        raise ShapeError(message)
    return slot


def check_aliases(
    aliases: Mapping[int, int],
    plan: Plan,
    described: Mapping[int, Descriptor],
    name: Callable[[int], str],
) -> None:
    """Refuse arrays that cannot take what the calls of ``plan`` give."""
    for number, slot in aliases.items():
        d, what = described[slot], f"{name(slot)}, which takes output {number}"
        shape = plan.program.outputs[number].shape
        if d.library not in _WRITERS:
            message = f"{what}: arrays of {d.library.value} are not written in place"
            raise UnsupportedError(message)
        if d.shape != shape:
            message = f"{what}: expected an array of shape {shape}, found {d.shape}"
            raise ShapeError(message)
        pairs = zip(d.shape, d.strides, strict=True)
        if not d.writable or any(n > 1 and stride == 0 for n, stride in pairs):
            message = (
                f"{what}: the array is read-only, or its elements share memory; pass "
                "a copy"
            )
            raise MutationError(message)


def write_aliases(
    aliases: Mapping[int, int],
    plan: Plan,
    outputs: Sequence[Any],
    arrays: Mapping[int, Any],
) -> list[Any]:
    """Copy outputs into their inputs; return those that have none."""
    write = _WRITERS[plan.place.library]
    with guard(plan.place.device):
        for number, slot in aliases.items():
            write(arrays[slot], outputs[number])
    return [x for number, x in enumerate(outputs) if number not in aliases]
