# SPDX-License-Identifier: Apache-2.0
"""Why native code does not serve calls of a kind, in words, before any has run."""

# NumPy's scalars have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import nfuser.base.system as system
from nfuser.execution.device.describe.libraries import Library
from nfuser.execution.device.native import layout as at
from nfuser.execution.device.native.shared import is_as_expected
from nfuser.execution.host.call.native.limits import beyond_limits
from nfuser.execution.host.call.native.records import READ
from nfuser.frontend.native.words import NESTS

if TYPE_CHECKING:
    from nfuser.compiler.trace import Trace
    from nfuser.execution.host.call.program import CallProgram
    from nfuser.execution.runtime.place import Place
    from nfuser.frontend.call.inputs.arguments import Arguments, Described

_NESTS = (tuple, list, dict, type(None))
_SCALARS = "?bBhHiIlLqQfd"  # codes of NumPy's types that are read where they lie


def why_no_calls_are() -> str | None:
    """Return why no call of this process is native; None if calls may be."""
    reason = system.missing().get("native_calls")
    if reason is None and not is_as_expected():
        reason = "objects lie in other places in this Python"
    return reason


def why_not_native(
    place: Place, trace: Trace, described: Described, program: CallProgram
) -> str | None:
    """Return why calls like this one go through Python; None if they need not."""
    if place.backend == "interpret":
        return "the interpreter runs their kernels in Python"
    if place.library not in READ:
        return f"arrays of {place.library.value} cannot be read natively"
    if described.lifted:
        return "numbers on the CPU beside CUDA arrays are copied first"
    if trace.writes and place.library is not Library.NUMPY:
        return "Python looks whether the arrays that it assigns to may be written"
    if trace.writes and (trace.captured.arrays or _has_nests(described.arguments)):
        return "Python looks whether others share memory with those that it assigns to"
    if trace.changed:
        return "Python puts items into lists and dicts of its arguments"
    if trace.captured.streams.places and place.device.is_cuda:
        return "Python looks whether a CUDA graph is recorded, which cannot draw"
    if not trace.captured.streams.are_of_nfuser:
        return "Python draws from the generators of NumPy and of torch"
    for captured in trace.captured.arrays:
        steps = captured.origin.steps
        if not all(s.is_attribute and type(s.key) is str for s in steps):
            return f"Python finds {captured.origin.name}; pass it as an argument"
    return (
        _of_arguments(described.arguments, len(trace.captured.arrays))
        or beyond_limits(program)
        or why_no_calls_are()
    )


def _has_nests(arguments: Arguments) -> bool:
    rows = (row for given in arguments.tree.children for row in given.children)
    return any(row.container in NESTS for row in rows)


def _of_arguments(arguments: Arguments, captured: int) -> str | None:
    trees = list(arguments.tree.children)
    rows = captured - 2  # the nests of positional and of named ones are no arguments
    while trees:
        tree = trees.pop()
        rows += 1
        trees += tree.children
        if tree.container is not None and tree.container not in _NESTS:
            name = tree.container.__name__
            return f"{name} is taken apart by Python; pass a tuple, list or dict"
    if rows > at.MOST_ARGUMENTS:
        return f"they have more than {at.MOST_ARGUMENTS} arguments and parts of nests"
    for number in arguments.numbers.values():
        kind: type[object] = type(number)
        if issubclass(kind, np.generic) and np.dtype(kind).char not in _SCALARS:
            return f"Python makes another number of {kind.__name__} first"
    return None
