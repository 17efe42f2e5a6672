# SPDX-License-Identifier: Apache-2.0
"""Calls of a host program: linked, kept by their form, and served natively."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

import nfuser.config as config
import nfuser.execution.host.ir.statements as st
from nfuser.base.debug import events
from nfuser.base.locks import cached_property
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import ArgumentError, HostError, NfuserError, host_error
from nfuser.execution.device.describe.descriptor import pointer_reader
from nfuser.execution.device.describe.libraries import Library
from nfuser.execution.host.call.evaluate import Evaluator
from nfuser.execution.host.call.frame import Frame
from nfuser.execution.host.call.stream_order import StreamWaits
from nfuser.execution.host.ir.host_ir import owners
from nfuser.execution.host.ir.memory import updated_inputs
from nfuser.execution.host.ir.rules import RANK
from nfuser.execution.host.run.arrays_of import arrays_of
from nfuser.execution.host.run.bind import BoundInputs, store_outputs
from nfuser.execution.host.run.timeline import StatementNotes
from nfuser.execution.runtime.host.link import TooLongError, link
from nfuser.execution.runtime.host.native_form import (
    MISSED,
    NativeForm,
    form_of,
    native_form,
)
from nfuser.execution.runtime.host.places import Linking
from nfuser.execution.runtime.place import find_place
from nfuser.execution.runtime.tables.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from nfuser.base.debug.timeline import Timeline
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.host.call.program import CallProgram, Slot
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.host.mesh.communicator import Communicator
    from nfuser.execution.host.run.device_arrays import TorchArrays
    from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
    from nfuser.execution.runtime.place import Place
    from nfuser.execution.runtime.planning.plan import Plan

    _RunPiece: TypeAlias = Callable[[CallProgram], None]

_log = logging.getLogger("nfuser")

_LONG = (st.ForLoop, st.Set, st.UnaryOp, st.BinaryOp)
MOST_NATIVE = 8  # forms that native code is asked about one after another


class LinkedCalls:
    """Runs a program; calls may overlap.

    A form is linked and kept when it comes first, and served natively when it comes
    again. Operations of the library have kernels compiled, and integers of the call,
    which may differ each time, are part of its form: so a program that has operations
    or loops is kept a call later, and its first call leaves operations to the library.
    """

    def __init__(
        self,
        program: HostProgram,
        backend: str | None,
        streams: int,
        cache_of: Callable[[Fusion], FusionExecutorCache],
        call: Callable[[object, list[Any]], list[Any]],
        *,
        keeps: bool,
    ) -> None:
        self._program = program
        self._backend = backend
        self._streams = streams
        self._cache_of = cache_of
        self._call = call
        self._keeps = keeps
        owner = owners(program.aliases)
        self._outputs = [owner.get(t, t) for t in program.outputs]
        self._updated = updated_inputs(program)
        stmts = [*st.walk(program.body)]
        self._is_long = any(isinstance(s, _LONG) for s in stmts)
        self._has_streams = any(isinstance(s, st.Order) for s in stmts)
        functions = [s.function for s in stmts if isinstance(s, st.Launch)]
        self._has_functions = not all(isinstance(f, Fusion) for f in functions)
        self._linked: Memo[Hashable, _Linked | None] = Memo()
        self._met: Memo[Hashable, None] = Memo()
        self._plans: Memo[Hashable, tuple[Plan, dict[int, Any]]] = Memo()
        self._native: tuple[NativeForm, ...] = ()

    @cached_property
    def _lines(self) -> Mapping[st.Statement, str]:
        return self._program.lines()

    def natively(self, inputs: Sequence[Any]) -> list[Any] | None:
        """Return the outputs, if native code has the form of the inputs.

        It writes into nothing that is given. So where it fails the program runs again,
        and says which statement does; if none does, native code is at fault.
        """
        if len(inputs) != len(self._program.inputs):
            return None
        for call in self._native:
            try:
                found = call(*inputs)
            except Exception as error:  # noqa: BLE001 (the program meets it again)
                found = self.run(inputs)
                message = "%s failed natively, and not statement by statement"
                _log.error(message, self._program.name, exc_info=error)
            if found is not MISSED:
                return list(found)
        return None

    def run(
        self,
        inputs: Sequence[Any] | Mapping[str, Any],
        outputs: Sequence[Any] = (),
        communicator: Communicator | None = None,
        timeline: Timeline | None = None,
    ) -> list[Any]:
        """Return the outputs, which are those given where some are."""
        listed = self._listed(inputs)
        is_timed = timeline is not None or events.watched()
        form = form_of(listed) if self._keeps else None
        is_plain = not (outputs or is_timed or self._updated) and communicator is None
        if form and is_plain:
            linked = self._linked.peek((form, False, False, None, ()))
            if linked is not None and not linked.ordered:
                return self._again(linked, listed)
        bound = BoundInputs(self._program, listed, self._streams, communicator)
        arrays = arrays_of(bound.library, bound.device)
        meet = bound.meet(self._updated)
        staged = bound.give(self._outputs, outputs)
        frame = Frame({})
        frame.communicator = communicator
        if arrays.device.is_cuda and self._has_streams:
            frame.order = StreamWaits(cast("TorchArrays", arrays))
        if is_timed:
            frame.notes = StatementNotes(timeline, self._lines, arrays)
        try:
            linking = self._linking(bound, frame, meet)
            slots = self._run_bound(bound, frame, linking, form)
            if frame.order is not None:
                frame.order.leave()
            if frame.notes is not None:
                frame.notes.finish()
            results = [frame.result(slot) for slot in slots]
            store_outputs(arrays, results, staged)
            return results
        finally:
            if frame.notes is not None:
                frame.notes.leave()
            frame.clear()

    def _run_bound(
        self,
        bound: BoundInputs,
        frame: Frame,
        linking: Linking,
        form: Hashable | None,
    ) -> tuple[Slot, ...]:
        """Run in ``frame``, as kept or in pieces; return where the outputs are."""
        held = [*bound.arrays.values()]

        def link_all(linking: Linking, run: _RunPiece | None) -> CallProgram:
            arrays = {**bound.inputs, **bound.outputs}
            return link(self._program, linking, arrays, bound.values, run)

        def run(piece: CallProgram) -> None:
            made = _Linked(piece, linking, self._program)
            made.run_in(frame, [] if frame.arrays else held)

        key = form and (
            form,
            linking.timed,
            linking.meet,
            frame.communicator and bound.values[RANK],
            (*((t, form_of([bound.arrays[t]])) for t in bound.outputs),),
        )
        linked = self._kept(key, linking, link_all)
        if linked is not None:
            linked.run_in(frame, held)
            return linked.program.outputs
        last = link_all(replace(linking, compiles=False), run)
        run(last)
        return last.outputs

    def clear(self) -> None:
        """Forget all forms."""
        self._linked.clear()
        self._met.clear()
        self._plans.clear()
        self._native = ()

    def _again(self, linked: _Linked, inputs: Sequence[Any]) -> list[Any]:
        """Run what came before in the same form; native code serves it from now on."""
        if linked.calls == 1 and (made := linked.native(inputs)) is not None:
            self._native = (made, *self._native[: MOST_NATIVE - 1])
        frame = Frame({})
        linked.run_in(frame, [inputs[k] for k in linked.places])
        return [frame.arrays[slot][0] for slot in linked.program.outputs]

    def _kept(
        self,
        key: Hashable | None,
        linking: Linking,
        link_all: Callable[[Linking, None], CallProgram],
    ) -> _Linked | None:
        """Return the program for calls of one form; None if it runs in pieces."""
        if key is None:
            return None
        if self._is_long and self._met.get(key, lambda: None)[1]:
            return None

        def make() -> _Linked | None:
            may_repeat = not (linking.ordered or linking.timed)
            for repeats in (False, True)[: 1 + may_repeat]:
                try:
                    made = link_all(replace(linking, repeats=repeats), None)
                except TooLongError:
                    continue
                return _Linked(made, linking, self._program)
            return None

        return self._linked.get(key, make)[0]

    def _linking(self, bound: BoundInputs, frame: Frame, meets: bool) -> Linking:
        library, device = bound.library, bound.device

        def place() -> Place:
            return find_place(library, device, self._backend, has_arrays=True)

        def plan(
            key: Hashable,
            function: Fusion,
            given: Sequence[Any],
            outs: Mapping[int, Descriptor],
        ) -> tuple[Plan, dict[int, Any]]:
            def make() -> tuple[Plan, dict[int, Any]]:
                return self._cache_of(function).plan_like(place(), given, outs)

            known = config.number(), library, device, key
            return self._plans.get(known, make)[0] if self._keeps else make()

        calls = place, plan, self._call, self._fault
        records = library is Library.TORCH and self._has_functions
        return Linking(
            *(library, device, *calls),
            compiles=not records,
            meet=meets,
            ordered=frame.order is not None,
            timed=frame.notes is not None,
            records=records,
        )

    def _fault(self, stmt: st.Statement, error: Exception) -> HostError:
        text = self._lines[stmt]
        kind = "" if isinstance(error, NfuserError) else f"{type(error).__name__}: "
        name, line = self._program.name, st.line_of(stmt)
        return host_error(f"{name}: `{text}` failed: {kind}{error}{line}", error)

    def _listed(self, inputs: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        names = [x.name for x in self._program.inputs]
        if isinstance(inputs, Mapping):
            if set(inputs) != set(names):
                message = f"expected inputs {names}, found {list(inputs)}"
                raise ArgumentError(message)
            inputs = [inputs[name] for name in names]
        if len(inputs) != len(names):
            message = f"expected {len(names)} inputs {names}, found {len(inputs)}"
            raise ArgumentError(message)
        pairs = zip(self._program.inputs, inputs, strict=True)
        return [_plain(given.value, x) for given, x in pairs]


def _plain(value: TensorView | Scalar, x: Any) -> Any:
    """Return an input; NumPy gives numbers of its own, also for what has no axes."""
    if isinstance(value, TensorView):
        return np.asarray(x) if isinstance(x, np.generic) else x
    return int(x) if isinstance(x, np.integer) else x


class _Linked:
    """A program for arrays of one form, ready to run."""

    def __init__(
        self, program: CallProgram, linking: Linking, source: HostProgram
    ) -> None:
        self.calls = 0
        self.program = program
        self.ordered = linking.ordered
        arrays = [isinstance(x.value, TensorView) for x in source.inputs]
        self.places = [k for k, is_array in enumerate(arrays) if is_array]
        self._place = linking.place
        self._pointer = pointer_reader(linking.library)
        self._evaluator = Evaluator(
            program,
            linking.library,
            linking.device,
            _backend(linking),
            name=source.name,
            fault=linking.fault,
        )

    def run_in(self, frame: Frame, arrays: Sequence[Any]) -> None:
        """Run in ``frame``, which lacks the inputs yet that ``arrays`` are."""
        self.calls += 1
        for slot, array in zip(self.program.inputs, arrays, strict=False):
            frame.arrays[slot] = array, self._pointer(array)
            frame.written.add(slot)
        if frame.notes is not None:
            frame.notes.follow(self.program)
        self._evaluator.run(frame)

    def native(self, inputs: Sequence[Any]) -> NativeForm | None:
        """Return what lets native code serve such calls, if it can."""
        if not self.places or not self.program.outputs:
            return None
        positions = dict(zip(self.program.inputs, self.places, strict=True))
        return native_form(self.program, self._place(), positions, inputs)


def _backend(linking: Linking) -> str:
    """Return where kernels run; where none can, linking has refused them."""
    try:
        return linking.place().backend
    except NfuserError:
        return "cpu"
