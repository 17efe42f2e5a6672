# SPDX-License-Identifier: Apache-2.0
"""Run a function over stand-ins and keep what it did as a fusion."""

from __future__ import annotations

import dis
import inspect
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.compiler.ops as ops
import nfuser.compiler.trace.call.tree as tree
import nfuser.compiler.trace.captures.randomness.torch_seeds as seeds
import nfuser.compiler.trace.numpy.names.namespace as namespace
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.base.debug.dump import dump, wants
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.text import text
from nfuser.compiler.ops.python_integers import looked_at
from nfuser.compiler.trace.call.call import (
    ArrayLeaf,
    Leaf,
    Raised,
    ScalarLeaf,
    Trace,
    TracedCall,
)
from nfuser.compiler.trace.call.outputs import Outputs
from nfuser.compiler.trace.call.passed import Passed
from nfuser.compiler.trace.captures.parts import is_array, shows_memory
from nfuser.compiler.trace.captures.randomness.clocks import is_of_numpy
from nfuser.compiler.trace.captures.randomness.stream import Stream
from nfuser.compiler.trace.captures.snapshot import Snapshot
from nfuser.compiler.trace.loops.python.plain import Plain
from nfuser.compiler.trace.numpy.creation.conversions import converting
from nfuser.compiler.trace.numpy.functions import HANDLERS
from nfuser.compiler.trace.source_line import current_line, line_of
from nfuser.compiler.trace.standins.array import TracedArray
from nfuser.compiler.trace.standins.asked import (
    AnewError,
    ask_of_number,
    ask_to_rewrite,
    ask_who_made,
)
from nfuser.compiler.trace.standins.dialect import is_of_torch
from nfuser.compiler.trace.standins.literals import (
    array_of,
    made_while_tracing,
    warn_of_sizes,
)
from nfuser.compiler.trace.standins.open_number import wrap
from nfuser.compiler.trace.standins.symbolic import integer
from nfuser.compiler.trace.torch.tensors import TORCH
from nfuser.compiler.trace.tracer import Tracer
from nfuser.compiler.trace.watch.leaks import warn_of_kept
from nfuser.errors import ArgumentError, MutationError, NfuserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, TracebackType

    from nfuser.compiler.ir.scalars import scalar as sc
    from nfuser.compiler.ir.tensor import TensorView


def trace_function(function: Callable[..., Any], call: TracedCall) -> Trace:
    """Trace ``function`` for arguments like those of ``call``."""
    mode, safe = _Mode(), None
    while True:
        tracer = _tracer(function, call)
        tracer.converts, tracer.makes = mode.converts, mode.makes
        tracer.makes_ranges, tracer.compares = mode.makes_ranges, mode.compares
        tracer.turns.ask = None if mode.rewrites else ask_to_rewrite
        tracer.plain = Plain(tracer) if mode.rewrites else None
        tracer.outside, tracer.opens = mode.outside, mode.opens
        try:
            with converting() if mode.converts else nullcontext():
                trace = _traced(tracer, function, call)
            if trace.raised is None or safe is None:
                break
            mode, safe = safe, None
        except NfuserError as error:
            more = mode.after(error) if isinstance(error, AnewError) else mode
            if more == mode:
                if safe is None:
                    raise
                more, safe = safe, None
            elif safe is None and isinstance(error, AnewError) and error.is_doubt:
                safe = replace(mode, compares=True)
            mode = more
    if trace.raised is not None:
        return trace
    # All that the trace itself held is gone now.
    warn_of_kept(tracer.made, tracer.builder.name, line_of(None, function))
    return trace


@value
class _Mode:
    """What a trace takes beside operations, once one before it met that.

    It is NumPy's conversions, all its functions that make arrays, and loops and
    branches of Python's; ``outside`` are the identities of arrays that are assigned to
    and are no arguments.
    """

    converts: bool = False
    makes: bool = False
    makes_ranges: bool = False  # and what lists integers, which others may be sizes of
    rewrites: bool = False
    opens: bool = False  # numbers of Python's that calls compute
    outside: frozenset[int] = frozenset()
    compares: bool = False  # arrays from outside, which may have gone into others

    def after(self, asked: AnewError) -> _Mode:
        """Return how to trace anew."""
        if asked.is_of_number:
            return replace(self, rewrites=True, opens=True)
        if asked.is_doubt:
            return replace(self, converts=True, makes=True, makes_ranges=self.makes)
        is_made = asked.is_assigned and self.makes and asked.outside is None
        if is_made and self.rewrites and not asked.is_of_loop:
            return replace(self, makes_ranges=True)
        if asked.is_of_loop or is_made:
            # Of what np.ndarray makes, for one, only the call itself tells.
            return replace(self, rewrites=True)
        outside = {id(asked.outside)} if asked.outside is not None else set[int]()
        return replace(
            self,
            converts=True,
            makes=self.makes or asked.is_assigned,
            outside=self.outside | outside,
        )


def _tracer(function: Callable[..., Any], call: TracedCall) -> Tracer:
    tracer = Tracer(_builder(function, call), _values(call), HANDLERS, wrap)
    tracer.namespace = namespace
    _speak_like(tracer, [leaf for leaf in call.leaves if isinstance(leaf, ArrayLeaf)])
    return tracer


def _speak_like(tracer: Tracer, arrays: list[ArrayLeaf]) -> None:
    """Let stand-ins speak as ``arrays`` do: beside a tensor all of them speak torch."""
    are_tensors = [leaf for leaf in arrays if is_of_torch(leaf.kind)]
    tracer.builder.orders_complex = not are_tensors
    if not arrays:
        return
    first = (are_tensors or arrays)[0]
    tracer.array_class, tracer.device = first.kind, first.device
    if are_tensors:
        tracer.dialect = tracer.home = TORCH
        tracer.builder.rounds_integers = False
        tracer.builder.narrow = None  # torch wraps them


def _traced(tracer: Tracer, function: Callable[..., Any], call: TracedCall) -> Trace:
    standins = [_standin(tracer, leaf) for leaf in call.leaves]
    args, kwargs = tree.unflatten(call.tree, standins)
    passed = Passed(args, kwargs)
    try:
        snapshot = Snapshot(function, args, kwargs, call.input_count)
        tracer.capture = lambda item: _capture(tracer, snapshot, item)
        tracer.draw = lambda stream: _draw(tracer, snapshot, stream)
        tracer.list_items = lambda items: array_of(tracer, items)
        tracer.meet_number = snapshot.elements.meet
        tracer.note = snapshot.note
        tracer.owner, tracer.may_write = snapshot.owner, snapshot.may_write
        tracer.holds = snapshot.holds
        tracer.stand_for = lambda item: _outside(tracer, snapshot, item)
        if tracer.plain is None and (snapshot.may_write() or snapshot.may_draw()):
            ask_to_rewrite()
        for item in snapshot.with_identity(tracer.outside):
            tracer.stand_for(item)
        with tracer.running():
            plain = tracer.plain
            called = function if plain is None else plain.call(function)
            returned, raised = snapshot.observe(
                lambda: _ended(called, args, kwargs),
                lambda: tracer.is_looping,
                lambda code: _enter(tracer, snapshot, code),
            )
            if tracer.may_open:
                ask_of_number("x.item()")
            outputs = Outputs(tracer, returned, passed)
        captured = snapshot.freeze(args, kwargs)
    except NfuserError as error:
        _name_line(error, function)
        raise
    fusion = tracer.builder.fusion(outputs.tensors)
    if wants("fusion"):
        dump("fusion", text(fusion), fusion.name)
    return Trace(
        fusion,
        outputs.shape,
        outputs.leaves,
        guards=tracer.guards(),
        value_guards=tuple(tracer.value_guards.values()),
        outcome_guards=tuple(tracer.outcome_guards.values()),
        checks=tuple(tracer.builder.questions.checks),
        captured=captured,
        writes=outputs.writes,
        changed=outputs.changed,
        raised=raised,
    )


def _enter(tracer: Tracer, snapshot: Snapshot, code: CodeType) -> None:
    """Begin anew before a function runs that may write into an array from outside.

    So does one that may draw from a generator of NumPy's. Of functions that are written
    anew, those that run as they were are called by Python itself, or by a library.
    """
    if tracer.plain is not None:
        snapshot.watch(code)
    elif snapshot.may_write(code) or snapshot.may_draw():
        ask_to_rewrite()


def _ended(
    function: Callable[..., Any], args: Any, kwargs: Any
) -> tuple[Any, Raised | None]:
    """Return what ``function`` returns, or what it raises as plain Python would."""
    try:
        return _call(function, args, kwargs), None
    except NfuserError:
        raise
    except Exception as error:  # noqa: BLE001 (whoever runs the trace raises it)
        return None, Raised(error)


def _call(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call ``function``; an exception has no name here, whose frames hold this one."""
    name = getattr(function, "__name__", "function")
    try:
        return function(*args, **kwargs)
    except ValueError as error:
        # NumPy's word for any error of the item that it was to put into an array.
        if isinstance(error.__cause__, NfuserError):
            raise error.__cause__.with_traceback(error.__traceback__) from None
        raise
    except RecursionError as error:
        # The innermost frames lie in nfuser as likely as in the user's function.
        cut = _to_last_call(error.__traceback__)
        try:
            raise refusals.endless(name).with_traceback(cut) from None
        finally:
            del cut
    except TypeError as error:
        if str(error).startswith("Iterator operand"):
            refused = refusals.function
            raise refused("nditer").with_traceback(error.__traceback__) from None
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        # No frame of the function's own: the arguments do not fit its parameters.
        try:
            message = f"{error}; expected {name}{inspect.signature(function)}"
        except ValueError:
            raise error from None
        line = current_line()
        raise ArgumentError(message + (line.note if line else "")) from None


def _to_last_call(trace: TracebackType | None) -> TracebackType | None:
    """Cut off the first call that had not begun to run, and what watched it begin.

    Its line would be that of its ``def``. Others of its function have begun; none of
    Cython's functions ever seems to.
    """
    begun: set[CodeType] = set()
    starts: dict[CodeType, int] = {}
    last, found = None, trace
    while found is not None:
        code = found.tb_frame.f_code
        if code not in starts:
            starts[code] = _resume(code)
        if found.tb_lasti > starts[code]:
            begun.add(code)
        elif last is not None and code in begun:
            last.tb_next = None
            break
        last, found = found, found.tb_next
    return trace


def _resume(code: CodeType) -> int:
    """Return where a function stands that has been called and not begun."""
    offsets = (i.offset for i in dis.get_instructions(code) if i.opname == "RESUME")
    return next(offsets, -1)


def _builder(function: Callable[..., Any], call: TracedCall) -> ops.Builder:
    today: dict[sc.Scalar, int] = {}
    for leaf in call.leaves:
        if isinstance(leaf, ArrayLeaf):
            for k, extent in enumerate(leaf.shape):
                today[scalar_symbols.size(leaf.slot, k)] = extent
        elif isinstance(leaf, ScalarLeaf) and _is_integer(leaf.kind):
            today[scalar_symbols.scalar_input(leaf.slot)] = int(leaf.value)
    b = ops.Builder(today, getattr(function, "__name__", "fusion").strip("<>"))
    b.narrow = looked_at
    return b


def _is_integer(kind: type[int] | type[float] | DType) -> bool:
    return kind.is_integer if isinstance(kind, DType) else kind is int


def _values(call: TracedCall) -> dict[int, Any]:
    return {
        leaf.slot: leaf.value for leaf in call.leaves if isinstance(leaf, ScalarLeaf)
    }


def _standin(tracer: Tracer, leaf: Leaf) -> Any:
    b = tracer.builder
    match leaf:
        case ArrayLeaf(slot, dtype, shape, array_class):
            held = b.argument(slot, len(shape), dtype)
            root = TracedArray(tracer, held, slot=slot, kind=array_class)
            tracer.roots.append((root, held))
            return root
        case ScalarLeaf(slot, kind):
            if kind is int:
                return integer(tracer, scalar_symbols.scalar_input(slot))
            dtype = kind if isinstance(kind, DType) else DType.F64
            held = b.argument(slot, 0, dtype, by_value=True)
            if kind is float:
                b.weak[held] = float
            elif isinstance(kind, DType) and tracer.dialect is TORCH:
                b.weak[held] = type(kind.numpy.type(0).item())  # as torch takes it
            own = kind.numpy.type if isinstance(kind, DType) else kind
            return TracedArray(tracer, held, kind=own)
        case _:
            return leaf.value


def _capture(tracer: Tracer, snapshot: Snapshot, item: Any) -> TensorView | None:
    """Return the input that a foreign array becomes."""
    if not is_array(item):
        if not shows_memory(item):
            return None
        message = (
            f"expected an array of a library, found {type(item).__qualname__}, which "
            "has no dtype and no shape; make one of it with np.asarray(x) outside the "
            "fused function"
        )
        raise ArgumentError(message)
    found = snapshot.meet(item)
    is_table = found is None
    if found is None:
        made = made_while_tracing(tracer, item)
        if made is not None:
            _see_who_made(tracer, snapshot, is_range=made.dtype.is_integer)
            return made
        found = snapshot.keep(item)
    if root := tracer.assigned.get(found.slot):
        return root._operand()
    if tracer.outside and id(snapshot.owner(item)) in tracer.outside:
        raise MutationError(refusals.PART_OUTSIDE)
    if found.slot not in tracer.captured:
        for k, extent in enumerate(item.shape):
            tracer.today[scalar_symbols.size(found.slot, k)] = int(extent)
        if (whole := found.whole) is not None:
            what = f"a part that plain NumPy takes of {whole}"
            warn_of_sizes(tracer, item.shape, what, f"parts of asarray({whole})")
        held = tracer.builder.argument(found.slot, found.ndim, found.dtype)
        tracer.captured[found.slot] = tracer.vary(item, held)
        if is_table:
            tracer.tables.add(held)
    return tracer.captured[found.slot]


def _see_who_made(tracer: Tracer, snapshot: Snapshot, *, is_range: bool) -> None:
    """Let the trace depend on what such an array may have been computed of."""
    if not snapshot.holds_arrays():
        return
    sees_makers = tracer.makes_ranges if is_range else tracer.makes
    if not (tracer.compares or sees_makers):
        ask_who_made()
    snapshot.compare_all()


def _outside(tracer: Tracer, snapshot: Snapshot, item: Any) -> Any:
    """Return what stands for an array from outside that is assigned to."""
    whole = snapshot.owner(item)
    if id(whole) not in tracer.outside:
        return item
    found = snapshot.assign(item)
    if found is None or found.whole is not None:
        raise MutationError(refusals.PART_OUTSIDE)
    if found.slot not in tracer.assigned:
        for k, extent in enumerate(item.shape):
            tracer.today[scalar_symbols.size(found.slot, k)] = int(extent)
        held = tracer.builder.argument(found.slot, found.ndim, found.dtype)
        tracer.captured[found.slot] = held
        root = TracedArray(tracer, held, slot=found.slot, kind=found.library)
        tracer.assigned[found.slot] = root
        tracer.roots.append((root, held))
    return tracer.assigned[found.slot]


def _draw(tracer: Tracer, snapshot: Snapshot, stream: Any) -> Any:
    """Return the key and the number of the next draw call, as verbs take them.

    Of a generator of NumPy's it is the slot that it is passed in.
    """
    if is_of_numpy(stream):
        return snapshot.draw(stream)[0]
    if isinstance(stream, Stream) and stream.is_made_in(tracer):
        key, call = stream.take(1)
        return np.uint64(key), np.uint64(call)
    on_device = seeds.is_on_gpu(stream, tracer.device)
    slot, before = snapshot.draw(stream, on_device=on_device)
    b = tracer.builder
    if on_device and slot not in tracer.captured:
        tracer.captured[slot] = b.cast(b.argument(slot, 0, DType.I64), DType.U64)
    for one in (slot, slot + 1):
        if one not in tracer.captured:
            tracer.captured[one] = b.argument(one, 0, DType.U64, by_value=True)
    key, first = tracer.captured[slot], tracer.captured[slot + 1]
    call = ops.add(b, first, np.uint64(before)) if before else first
    return key, call


def _name_line(error: NfuserError, function: Any) -> None:
    """Put the user's line into the message; that of the function, if there is none."""
    line = line_of(error.__traceback__, function)
    if line is None or not error.args or "\n  at " in str(error.args[0]):
        return
    error.args = (f"{error.args[0]}{line.note}", *error.args[1:])
