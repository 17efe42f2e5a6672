# SPDX-License-Identifier: Apache-2.0
"""Calls of a host program whose form was seen before: linked, and served natively."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import NfuserError
from nfuser.execution.device.describe.descriptor import describe, pointer_reader
from nfuser.execution.host.call.evaluate import Evaluator
from nfuser.execution.host.run.arrays_of import arrays_of
from nfuser.execution.host.run.bind import bind_inputs, common_home
from nfuser.execution.host.run.frame import RunFrame
from nfuser.execution.runtime.host.link import NotLinkedError, link
from nfuser.execution.runtime.host.native_form import (
    MISSED,
    NativeForm,
    form_of,
    native_form,
)
from nfuser.execution.runtime.place import find_place
from nfuser.execution.runtime.tables.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.execution.host.call.program import CallProgram
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
    from nfuser.execution.runtime.place import Place

_LONG = (st.ForLoop, st.Set, st.UnaryOp, st.BinaryOp)
MOST_NATIVE = 8  # forms that native code is asked about one after another


class LinkedCalls:
    """Runs a program for inputs of known forms; others are the evaluator's.

    A form is linked when it comes first, and served natively when it comes again. Loops
    make linking long, and operations of the library have kernels compiled, so a program
    that has some is linked a call later: integers of the call, which may differ each
    time, are part of its form.
    """

    def __init__(
        self,
        program: HostProgram,
        backend: str | None,
        cache_of: Callable[[Fusion], FusionExecutorCache],
        streams: int,
    ) -> None:
        self._program = program
        self._backend = backend
        self._streams = streams
        self._cache_of = cache_of
        self._linked: Memo[Hashable, _Linked | None] = Memo()
        self._met: Memo[Hashable, None] = Memo()
        self._is_long = any(isinstance(s, _LONG) for s in st.walk(program.body))
        self._native: tuple[NativeForm, ...] = ()
        self._may_link = bool(program.outputs) and any(
            isinstance(x.value, TensorView) for x in program.inputs
        )

    def run(self, inputs: Sequence[Any]) -> list[Any] | None:
        """Return the outputs, or None where the evaluator has to run the program."""
        if not self._may_link or len(inputs) != len(self._program.inputs):
            return None
        for call in self._native:
            found = call(*inputs)
            if found is not MISSED:
                return list(found)
        if (key := form_of(inputs)) is None:
            return None
        if self._is_long and self._met.get(key, lambda: None)[1]:
            return None
        linked, _ = self._linked.get(key, lambda: self._link(inputs))
        if linked is None:
            return None
        if linked.calls == 1 and (made := linked.native(inputs)) is not None:
            self._native = (made, *self._native[: MOST_NATIVE - 1])
        return linked.run(inputs)

    def clear(self) -> None:
        """Forget all forms."""
        self._linked.clear()
        self._met.clear()
        self._native = ()

    def _link(self, inputs: Sequence[Any]) -> _Linked | None:
        """Link the program; None where it cannot be, or where the inputs do not fit.

        The evaluator says what is wrong with them.
        """
        program = self._program
        try:
            library, device = common_home(program, inputs)
            frame = RunFrame(arrays_of(library, device), None)
            bind_inputs(frame, program, inputs, self._streams)
            place = find_place(library, device, self._backend, has_arrays=True)
            described = {t: describe(a, "an input") for t, a in frame.arrays.items()}
            made = link(program, place, described, frame.values, self._cache_of)
            arrays = [isinstance(x.value, TensorView) for x in program.inputs]
            places = [k for k, is_array in enumerate(arrays) if is_array]
            return _Linked(made, place, program.name, places)
        except (NfuserError, NotLinkedError):
            return None


class _Linked:
    """A program for inputs of one form; those at ``places`` are arrays."""

    def __init__(
        self, program: CallProgram, place: Place, name: str, places: list[int]
    ) -> None:
        self.calls = 0
        self._program = program
        self._place = place
        self._places = places
        self._pointer = pointer_reader(place.library)
        where = place.library, place.device, place.backend
        self._evaluator = Evaluator(program, *where, name=name)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs, by way of Python."""
        self.calls += 1
        arrays = (inputs[k] for k in self._places)
        pairs = zip(self._program.inputs, arrays, strict=True)
        given = {slot: (array, self._pointer(array)) for slot, array in pairs}
        return self._evaluator(given, {}, {})[0]

    def native(self, inputs: Sequence[Any]) -> NativeForm | None:
        """Return what lets native code serve such calls, if it can."""
        positions = dict(zip(self._program.inputs, self._places, strict=True))
        return native_form(self._program, self._place, positions, inputs)
