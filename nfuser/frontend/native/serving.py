# SPDX-License-Identifier: Apache-2.0
"""Which calls of one function native code serves."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nfuser.codegen.numba.compiler_lock import imported
from nfuser.execution.device.native import COMPILED
from nfuser.frontend.native.families import Families

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from nfuser.execution.device.native.state import NativeState
    from nfuser.frontend.call.inputs.arguments import Arguments
    from nfuser.frontend.call.plan_table import Entry
    from nfuser.frontend.call.ready import Ready


class Serving:
    """The records of one function; who changes them holds the owner's lock."""

    __slots__ = ("_compiled", "_families", "_function", "state")

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._families = Families()
        self.state: NativeState | None = None  # one for good: calls count in it
        self._compiled: tuple[int, tuple[str, ...]] = (0, ())  # by which call, and what

    @property
    def owned(self) -> object:
        """Where native code looks: what the state owns."""
        return None if self.state is None else self.state.owned

    @property
    def calls(self) -> int:
        """The number of calls that native code served."""
        return 0 if self.state is None else self.state.calls

    @contextmanager
    def noting(self, calls: Callable[[], int]) -> Generator[None]:
        """Note what is compiled inside, and the call, by number, that asked for it."""
        before = len(COMPILED)
        try:
            yield
        finally:
            if len(COMPILED) > before:
                self._compiled = calls(), tuple(COMPILED[before:])

    def compiled_by(self, call: int) -> str:
        """Say what this call compiled for all functions; "" if it compiled nothing."""
        last, names = self._compiled
        if not names or last != call:
            return ""
        listed = " and ".join(names)
        return f"the last call compiled what serves all functions: {listed}"

    def record(
        self,
        entry: Entry,
        ready: Ready,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Let native code serve calls like this one, if it can."""
        # Not before a call repeats: the first one of a process is to be quick.
        imported("nfuser.frontend.native.calls")
        from nfuser.frontend.call.plan_table import MOST_RECORDS  # noqa: PLC0415
        from nfuser.frontend.native.calls import record_call  # noqa: PLC0415

        made = record_call(self._function, ready, args, kwargs)
        if made is not None:
            entry.records.append(made)
            self._made_state().add(made)
        entry.may_record = made is not None and len(entry.records) < MOST_RECORDS

    def wants(self, ready: Ready) -> bool:
        """Count a plan; tell whether calls of other sizes are to be served as well."""
        return self._families.wants(ready.variant)

    def widen(
        self,
        arguments: Arguments,
        ready: Ready,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Let native code serve calls of other sizes."""
        from nfuser.frontend.native.family import record_family  # noqa: PLC0415

        made = record_family(self._function, ready, args, kwargs, arguments)
        dropped = self._families.add(ready.variant, made)
        if made is not None:
            state = self._made_state()
            state.add(made)
            for record in dropped:
                state.discard(record)

    def discard(self, entries: Iterable[Entry]) -> None:
        """Forget what serves the calls of plans that are gone."""
        if self.state is not None:
            for entry in entries:
                for record in entry.records:
                    self.state.discard(record)

    def clear(self) -> None:
        """Forget all records."""
        self._families.clear()
        if self.state is not None:
            self.state.clear()

    def _made_state(self) -> NativeState:
        from nfuser.execution.device.native.state import NativeState  # noqa: PLC0415

        if self.state is None:
            self.state = NativeState()
        return self.state
