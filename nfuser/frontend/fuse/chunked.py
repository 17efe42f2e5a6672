# SPDX-License-Identifier: Apache-2.0
"""Calls on Dask arrays: traced once for the whole arrays, run chunk by chunk."""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import (
    Argument,
    Constant,
    Expand,
    ExpandDims,
    FromScalar,
    Permute,
    Pointwise,
)
from nfuser.compiler.rewrite.types.compute_types import widen_halves
from nfuser.compiler.trace.call import tree as trees
from nfuser.compiler.trace.captures.randomness.stream import Stream
from nfuser.errors import ArgumentError, MutationError, UnsupportedError
from nfuser.execution.chunks.dask.graph import da
from nfuser.execution.chunks.dask.unknown import Unknown
from nfuser.execution.chunks.program import Program
from nfuser.execution.device.describe.descriptor import Library, library_of
from nfuser.execution.runtime.call import symbols_of
from nfuser.frontend.call.inputs.arguments import Arguments, is_chunked
from nfuser.frontend.explain.in_chunks import ChunkedExplanation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.trace import Trace
    from nfuser.execution.chunks import Rechunk


_NUMPYS = (
    "pass a generator of nfuser.random: each chunk draws the numbers of its own "
    "elements, and those of NumPy and torch draw on one device"
)


def call_chunked(
    function: Callable[..., Any],
    traced: Callable[..., tuple[Trace, tuple[Any, ...]]],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    rechunk: Rechunk | None,
    *,
    explains: bool = False,
) -> Any:
    """Return what the function gives for arrays in chunks: lazy arrays.

    If it only ``explains``, return the steps to them instead; no generator moves on.
    """
    planned = _planned(function, traced, args, kwargs, rechunk, draws=not explains)
    outputs, trace = planned.outputs, planned.trace
    if explains:
        chunks = tuple(array.chunks for array in outputs)
        return ChunkedExplanation(planned.name, tuple(planned.program.steps), chunks)
    results = [outputs[leaf.position] for leaf in trace.output_leaves]
    return trees.unflatten(trace.output_tree, results)


@node
class _Planned:
    """A call that is laid out: its arrays are lazy, and nothing of it has run."""

    name: str
    trace: Trace
    program: Program
    outputs: list[Any]


def _planned(
    function: Callable[..., Any],
    traced: Callable[..., tuple[Trace, tuple[Any, ...]]],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    rechunk: Rechunk | None,
    *,
    draws: bool,
) -> _Planned:
    name: str = getattr(function, "__name__", "function")
    leaves, tree = trees.flatten((args, dict(kwargs)))
    behind: dict[int, Any] = {}
    unknown = Unknown(name)
    for place, leaf in enumerate(leaves):
        if is_chunked(type(leaf)):
            array = unknown.sized(_native(leaf, name))
            standin = np.broadcast_to(np.zeros((), array.dtype), array.shape)
            leaves[place] = standin
            behind[id(standin)] = array
        elif library_of(type(leaf)) not in (None, Library.NUMPY):
            message = (
                f"{name}: pass NumPy arrays beside Dask arrays, x.numpy(force=True) "
                f"for a tensor: found {type(leaf).__module__}.{type(leaf).__qualname__}"
            )
            raise ArgumentError(message)
    given, named = trees.unflatten(tree, leaves)
    arguments = Arguments(given, named, function, (leaves, tree))
    with unknown.told():
        trace, captured = traced(arguments, given, named)
    _refuse(trace, name)
    arrays: dict[int, Any] = {
        slot: behind[id(array)] if id(array) in behind else _in_one(array)
        for slot, array in arguments.arrays.items()
    }
    for what, array in zip(trace.captured.arrays, captured, strict=True):
        arrays[what.slot] = _in_one(array)
    unknown.check(trace.fusion, arrays)
    numbers = dict(arguments.numbers)
    streams = arguments.streams
    for what, stream in zip(trace.captured.streams.drawn, streams, strict=True):
        if not isinstance(stream, Stream):
            raise UnsupportedError(_NUMPYS)
        drawn = stream.take(what.draws if draws else 0)
        numbers[what.slot], numbers[what.slot + 1] = drawn
    shapes = {slot: array.shape for slot, array in arrays.items()}
    values = symbols_of(shapes, {s: n for s, n in numbers.items() if _is_integer(n)})
    # What lies between stages is no more rounded than what lies between operations.
    program = Program(widen_halves(trace.fusion), values, numbers, rechunk or "refuse")
    outputs = program.run(_without_empty(trace, arrays))
    return _Planned(name, trace, program, [unknown.unsized(array) for array in outputs])


def _native(array: Any, name: str) -> Any:
    """Return an array of NumPy's chunks, of elements in this machine's order."""
    if type(array._meta) is not np.ndarray:
        kind = type(array._meta)
        message = (
            f"{name}: pass x.map_blocks(numpy.asarray), or call the function inside "
            "dask.array.map_blocks: expected chunks that are NumPy arrays, found "
            f"{kind.__module__}.{kind.__qualname__}"
        )
        raise UnsupportedError(message)
    native = array.dtype.newbyteorder("=")
    return array if native == array.dtype else array.astype(native)


def _in_one(array: Any) -> Any:
    """Return an array as one of Dask's, in one chunk, named by its elements."""
    return da.from_array(np.asarray(array), chunks=-1)


def _is_integer(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def _refuse(trace: Trace, name: str) -> None:
    """Refuse what would change arguments: tasks may run twice."""
    if trace.writes:
        message = (
            f"{name}: write y = x.copy() first and assign to that, or return the new "
            "values: chunks of Dask arrays are never written"
        )
        raise MutationError(message)
    if trace.changed:
        message = (
            f"{name}: return what it puts into lists and dicts of its arguments, and "
            "put it there after the call: results of Dask arrays are computed later"
        )
        raise MutationError(message)


_IN_PLACE = (Argument, Constant, FromScalar, Pointwise, Expand, ExpandDims, Permute)


def _without_empty(trace: Trace, arrays: dict[int, Any]) -> dict[int, Any]:
    """Leave out chunks without elements where more is done than chunk by chunk."""
    if all(isinstance(expr, _IN_PLACE) for expr in trace.fusion.exprs):
        return arrays
    return {slot: _dense(array) for slot, array in arrays.items()}


def _dense(array: Any) -> Any:
    chunks = tuple(tuple(n for n in c if n) or (sum(c),) for c in array.chunks)
    return array if chunks == array.chunks else array.rechunk(chunks)
