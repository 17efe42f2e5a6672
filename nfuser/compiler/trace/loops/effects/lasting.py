# SPDX-License-Identifier: Apache-2.0
"""What lasts: effects, and writes into arrays, told before they happen."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.captures.parts import is_silent
from nfuser.compiler.trace.loops.python.tables import Joining, Table
from nfuser.compiler.trace.loops.record import without_draws
from nfuser.compiler.trace.source_line import current_line
from nfuser.compiler.trace.standins.asked import ask_to_assign_outside, to_be_assigned
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import LastingEffectError, MutationError

if TYPE_CHECKING:
    from collections.abc import Generator

    from nfuser.compiler.trace.tracer import Tracer


class Lasting:
    """What statements and calls say to a trace before they do something that lasts."""

    def __init__(self, tracer: Tracer) -> None:
        self._t = tracer
        self._depth = 0  # of bodies and branches that run in place of others
        self._refused: LastingEffectError | None = None

    def effect(self, text: str) -> None:
        """Refuse a statement with a lasting effect where it must have none."""
        if self._depth:
            raise self._lasting(f"it does `{text}`")

    def indexed(self, x: Any) -> Any:
        """Return what is read at a key; a table of NumPy's may be at traced places."""
        if x is np.r_ or x is np.c_:
            return Joining(self._t, x)
        return Table(self._t, x) if type(x) is np.ndarray else x

    def held(self, x: Any) -> Any:
        """Return what stands for an array from outside, if it is assigned to."""
        return self._t.stand_for(x) if self._t.outside and is_silent(x) else x

    def written(self, x: Any) -> Any:
        """Return what is assigned to a part of."""
        if isinstance(x, Standin):
            return x
        if self._t.holds(x):
            raise _set_once(x)
        if is_silent(x):
            owner = self._t.owner(x)
            if owner is not None and id(owner) not in self._t.outside:
                ask_to_assign_outside(owner)
            if owner is not None:
                return self._t.stand_for(x)
        if not self._depth:
            return x
        if is_silent(x) and not self._t.makes_ranges:
            raise to_be_assigned()
        raise self._lasting(f"it writes into a {type(x).__name__}")

    def inplace(self, x: Any) -> None:
        """Look at what ``x op= y`` is done to."""
        kinds = (np.ndarray, list, set, dict, bytearray)
        if is_silent(x) or isinstance(x, kinds) or self._t.holds(x):
            self.written(x)

    def updated(self, x: Any, text: str) -> Any:
        """Return what ``x op= y`` is done to, if ``x`` is a name from outside."""
        if is_silent(x):
            return self.written(x)
        self.effect(text)
        return x

    def binds(self, before: Any, after: Any) -> bool:
        """Tell whether an update bound a name from outside to another value."""
        is_array = any(root is after for root in self._t.assigned.values())
        return not (is_array and is_silent(before))

    @property
    def is_once(self) -> bool:
        """Whether what runs now runs once in place of any number of times."""
        return self._depth > 0

    def _lasting(self, what: str) -> LastingEffectError:
        line = current_line()
        self._refused = LastingEffectError(
            "take it out of the loop, or write nfuser.unroll(range(n)) for a short "
            "one: what runs in a loop or in a branch that is traced once may compute, "
            f"and assign to arrays; found that {what}{line.note if line else ''}"
        )
        return self._refused

    @contextmanager
    def perhaps(self) -> Generator[None]:
        """Let what runs meanwhile have no lasting effect, and be what may not run."""
        with self.once(), self._t.builder.perhaps():
            yield

    @contextmanager
    def once(self) -> Generator[None]:
        """Let what runs meanwhile have no lasting effect."""
        self._depth += 1
        self._refused = None
        try:
            with without_draws(self._t):
                yield
            if self._refused is not None:  # the user's function caught it
                raise self._refused
        finally:
            self._depth -= 1
            self._refused = None  # its frames hold what the function held


def _set_once(x: Any) -> MutationError:
    line = current_line()
    kind = f"{type(x).__module__.partition('.')[0]} {type(x).__name__}"
    return MutationError(
        "return what is to be set, and set it after the call, or assign to an array of "
        "NumPy's: a fused function runs once while it is traced, and what it sets then "
        f"is not set in later calls; found that it sets items of a {kind} from outside"
        f"{line.note if line else ''}"
    )
