# SPDX-License-Identifier: Apache-2.0
"""Calls with fixed forms of arguments: what ``f.bind`` returns."""

# Arguments have no static type. What torch.compile follows calls what is fused.
# pyright: reportUnknownArgumentType=false, reportImportCycles=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import nfuser.config as config
from nfuser.compiler.trace.call import tree as trees
from nfuser.errors import ArgumentError, DTypeError, MutationError, ShapeError
from nfuser.execution.device.apart import check_apart
from nfuser.execution.device.describe.descriptor import describe, library_of
from nfuser.execution.device.native.layout import MOST_ARGUMENTS
from nfuser.execution.host.call.native.calls import NativeCall
from nfuser.frontend.call.inputs.arguments import Arguments
from nfuser.frontend.call.recording import any_asks
from nfuser.frontend.call.shape import by_position
from nfuser.frontend.fuse.dynamo import graph_break
from nfuser.frontend.native.calls import make_record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.frontend.call.ready import Ready

R = TypeVar("R")


class Bound(NativeCall[R]):
    """A call whose arguments have fixed forms.

    Without arguments it runs with those that were bound: what their elements are is
    read anew, and where they lie. With others it runs if they have the same forms.
    """

    __slots__ = ("_arguments", "_fused", "_key", "_named", "_outputs")

    def __init__(
        self,
        fused: Callable[..., R],
        ready: Ready,
        args: tuple[Any, ...],
        named: Mapping[str, Any],
        outputs: tuple[Any, ...] | None,
        *,
        native: bool,
    ) -> None:
        super().__init__()
        self._fused = fused
        self._arguments = args
        self._named = dict(named)
        self._key = _form(fused, args, named)
        self._outputs = outputs
        if outputs is not None:
            _check_outputs(ready, outputs)
        given = outputs or ()
        is_small = len(args) + len(given) <= MOST_ARGUMENTS
        is_flat = not any(isinstance(a, (tuple, list, dict)) for a in args)
        if (
            native
            and not named
            and is_small
            and is_flat
            and _may_write(ready, args, given)
        ):
            self._bind(ready, args, given)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be copied or written: it holds on to where arrays lie."""
        del protocol
        message = (
            "pickle or copy the fused function and its arguments, and bind them again "
            "there: a bound call holds addresses in the memory of this process"
        )
        raise ArgumentError(message)

    def __copy__(self) -> Bound[R]:
        return self

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What was bound, by position."""
        return self._arguments

    @graph_break
    def _otherwise(self, *args: Any) -> R:
        """Run with the arguments that were bound, or with others of the same forms."""
        named = {} if args else self._named
        given = args or self.arguments
        if args and _form(self._fused, args, {}) != self._key:
            message = (
                f"a call bound to {_names(self.arguments)} was given {_names(args)}; "
                "call the fused function itself, or bind it again"
            )
            raise ArgumentError(message)
        if self._outputs is None:
            return self._fused(*given, **named)
        if (written := self._written(given, named)) is not None:
            return written
        found = self._fused(*given, **named)
        flat, shape = trees.flatten(found)
        for target, source in zip(self._outputs, flat, strict=True):
            target[...] = source
        return trees.unflatten(shape, self._outputs)

    def _written(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Let kernels write into the outputs; None where they may not."""
        outputs: Any = self._outputs
        fused: Any = self._fused
        if config.current().disable_all or named:
            return None
        arguments = Arguments(args, named, fused._function)
        if any_asks(arguments.arrays.values()):
            return None
        ready, captured = fused._prepare(arguments, args, named, runs=True)
        if not _may_write(ready, args, outputs):
            return None
        ready.run(arguments, captured, outputs)
        return trees.unflatten(ready.variant.trace.output_tree, outputs)

    def _bind(
        self, ready: Ready, args: tuple[Any, ...], given: tuple[Any, ...]
    ) -> None:
        """Let native code serve the call, if it can."""
        record = make_record(ready, by_position(len(args)), args, given)
        if record is None:
            return
        # What was found apart has to stay where it is.
        self._serve(record, len(args), (*args, *given), fixed=bool(given))


def _form(
    function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Return the key of a call without the configuration."""
    return Arguments(args, named, function).key[1:]


def _names(args: Sequence[Any]) -> str:
    return ", ".join(
        f"{x.dtype}{list(x.shape)}" if hasattr(x, "shape") else repr(x) for x in args
    )


# -- outputs that are given --------------------------------------------------


def _check_outputs(ready: Ready, given: Sequence[Any]) -> None:
    """Refuse arrays that the results do not fit into."""
    if ready.variant.trace.changed:
        message = (
            "leave out= out, and copy what the call returns: it puts items into lists "
            "and dicts of its arguments"
        )
        raise MutationError(message)
    if any(leaf.view is not None for leaf in ready.variant.trace.output_leaves):
        message = (
            "leave out= out, and copy what the call returns: it is a view of an "
            "argument that the call assigns to"
        )
        raise MutationError(message)
    slots = ready.leaf_slots
    if len(given) != len(slots):
        message = f"out: expected {len(slots)} arrays, found {len(given)}"
        raise ArgumentError(message)
    found: list[tuple[str, Descriptor]] = []
    for number, (array, slot) in enumerate(zip(given, slots, strict=True)):
        what = f"out[{number}]" if len(given) > 1 else "out"
        d = describe(array, what)
        if not d.writable:
            message = f"{what}: expected an array that can be written"
            raise ArgumentError(message)
        if (d.library, d.device) != (ready.place.library, ready.place.device):
            message = (
                f"{what}: expected an array of {ready.place.library.value} on "
                f"{ready.place.device}, found one of {d.library.value} on {d.device}"
            )
            raise ArgumentError(message)
        if d.shape != slot.shape:
            message = f"{what}: expected shape {slot.shape}, found {d.shape}"
            raise ShapeError(message)
        if d.dtype is not slot.dtype:
            message = f"{what}: expected {slot.dtype}, found {d.dtype}"
            raise DTypeError(message)
        found.append((what, d))
    check_apart(found)


def _may_write(ready: Ready, args: Sequence[Any], given: Sequence[Any]) -> bool:
    """Tell whether kernels may write into ``given``.

    They lie as the results would, and share no memory with what is read or with one
    another; otherwise the results are made first and then copied, as NumPy does it.
    """
    if not given:
        return True
    trace = ready.variant.trace
    if trace.captured.arrays or trace.writes or trace.changed:
        return False
    if len({leaf.position for leaf in trace.output_leaves}) < len(given):
        return False
    outputs = [describe(array, "out") for array in given]
    for d, slot in zip(outputs, ready.leaf_slots, strict=True):
        if d.strides != slot.strides or d.pointer % 16:
            return False
    flat, _ = trees.flatten(tuple(args))
    inputs = [describe(a, "an argument") for a in flat if library_of(type(a))]
    return not any(
        one.meets(other)
        for k, one in enumerate(outputs)
        for other in (*outputs[k + 1 :], *inputs)
    )
