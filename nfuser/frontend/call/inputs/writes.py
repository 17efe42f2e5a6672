# SPDX-License-Identifier: Apache-2.0
"""Arguments that a fused function assigns to: what must hold of them, and after."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nfuser.errors import ArgumentError, MutationError
from nfuser.execution.device.apart import share_elements
from nfuser.execution.device.describe.descriptor import describe
from nfuser.execution.device.describe.libraries import Library

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.trace import Trace
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.frontend.call.inputs.arguments import Arguments


def check_writes(
    written: Sequence[int],
    arguments: Arguments,
    captured: Mapping[int, Any],
    name: str,
) -> None:
    """Refuse arrays that cannot be assigned to, before anything is.

    ``captured`` are those from outside, by slot, which may be assigned to as well.
    """
    arrays = {**arguments.arrays, **captured}
    given = {slot: describe(a, "an argument") for slot, a in arrays.items()}
    for slot in written:
        if slot not in given:
            message = (
                f"{name}: pass an array on the device: it is assigned to, and a number "
                "on the CPU beside CUDA arrays is passed by its value"
            )
            raise ArgumentError(message)
        if slot in captured and arguments.copies > len(arguments.copied):
            message = f"{name}: an array from outside that it assigns to is not aligned"
            raise ArgumentError(message)
        _check_writable(arguments.copied.get(slot, arrays[slot]), given[slot])
    for slot in written:
        for k, other in given.items():
            if k != slot and share_elements(given[slot], other):
                message = (
                    f"{name}: pass a copy of one of them: two of its arrays share "
                    "memory, and it assigns to one; what the other one would then hold "
                    "is not known while tracing"
                )
                raise ArgumentError(message)


def check_unread(
    written: Sequence[int],
    arguments: Arguments,
    captured: Mapping[int, Any],
    trace: Trace,
) -> None:
    """Refuse to assign to memory in which Python has read while tracing."""
    arrays = {**arguments.arrays, **captured, **arguments.copied}
    given = [arrays[slot] for slot in written]
    name = trace.captured.seen_within(given, *arguments.nest)
    if name is not None:
        message = (
            f"{trace.fusion.name}: read and assign to parts of the array itself, or "
            f"assign to a copy: another name from outside, {name}, shares memory with "
            "what it assigns to, and what Python reads there, while tracing, is what "
            "it held before all assignments"
        )
        raise MutationError(message)


def _check_writable(array: Any, d: Descriptor) -> None:
    if d.library is Library.JAX:
        message = "return the new array: arrays of JAX are immutable"
        raise MutationError(message)
    writable = d.writable
    if d.library is Library.NUMPY:
        writable = array.flags.writeable  # of what was passed, and not of its copy
    if not writable:
        message = "assignment destination is read-only"
        raise MutationError(message)
    pairs = zip(d.shape, d.strides, strict=True)
    if any(n > 1 and step == 0 for n, step in pairs):
        message = (
            "assign to an array whose elements have a place each: of this one several "
            "share theirs"
        )
        raise MutationError(message)
    if d.library is Library.TORCH and _is_watched(array):
        message = (
            "a leaf Variable that requires grad is being used in an in-place "
            "operation; assign under torch.no_grad()"
        )
        raise MutationError(message)


def _is_watched(tensor: Any) -> bool:
    """Tell whether autograd wants a tensor to stay as it is."""
    torch = sys.modules["torch"]
    if tensor.is_inference() and not torch.is_inference_mode_enabled():
        message = "Inplace update to inference tensor outside InferenceMode"
        raise MutationError(message)
    is_leaf = tensor.requires_grad and tensor.is_leaf
    return is_leaf and torch.is_grad_enabled()


def told_of_writes(
    written: Sequence[int], arguments: Arguments, captured: Mapping[int, Any]
) -> Mapping[int, Any]:
    """Return the arrays that were passed, by slot, with what was assigned to them."""
    found: dict[int, Any] = {}
    for slot in written:
        array = captured[slot] if slot in captured else arguments.arrays[slot]
        original = arguments.copied.get(slot)
        if original is not None:
            original[...] = array
            array = original
        elif type(array).__module__.startswith("torch"):
            sys.modules["torch"].autograd.graph.increment_version(array)
        found[slot] = array
    return found
