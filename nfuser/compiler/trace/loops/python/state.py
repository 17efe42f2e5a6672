# SPDX-License-Identifier: Apache-2.0
"""What a body can change: variables of the function, and arrays that were there."""

# What a traced function holds has no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CellType

    from nfuser.compiler.trace.tracer import Tracer


class _Unbound:
    """What a variable holds before it is bound."""

    def __repr__(self) -> str:
        return "nothing"


UNBOUND = _Unbound()


class Variables:
    """The variables that inner functions share with the function around them."""

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self._cells: dict[str, CellType] = {}
        self._own: dict[str, Any] = {}
        for function in functions:
            names = function.__code__.co_freevars
            self._cells |= zip(names, function.__closure__ or (), strict=True)

    def __contains__(self, name: str) -> bool:
        return name in self._cells or name in self._own

    def add(self, name: str) -> None:
        """Add a variable that only a trace has."""
        self._own[name] = UNBOUND

    def __getitem__(self, name: str) -> Any:
        """Return what a variable holds."""
        return self.all().get(name, UNBOUND)

    def __setitem__(self, name: str, held: Any) -> None:
        """Let a variable hold something."""
        if name in self._own:
            self._own[name] = held
            return
        cell = self._cells[name]
        if held is not UNBOUND:
            cell.cell_contents = held
            return
        try:
            del cell.cell_contents
        except ValueError:
            return

    def all(self) -> dict[str, Any]:
        """Return what all of them hold."""
        found = dict(self._own)
        for name, cell in self._cells.items():
            try:
                found[name] = cell.cell_contents
            except ValueError:
                found[name] = UNBOUND
        return found


class State:
    """All that a body may change, as it was when this was made."""

    def __init__(self, t: Tracer, variables: Variables) -> None:
        self.variables = variables
        self.names = variables.all()
        found: list[Any] = [x for x in (ref() for ref in t.made) if x is not None]
        self._roots = [(x, x._held, x._is_own) for x in found if x._root is None]
        views = (x for x in found if x._root is not None)
        self._views = [(x, x._held, x._seen) for x in views]
        self._ids = {id(x) for x in found}

    def is_own(self, x: Any) -> bool:
        """Tell whether an array was made later, and is no view."""
        return id(x) not in self._ids and getattr(x, "_root", None) is None

    def written(self) -> list[Any]:
        """Return the arrays that were there and have been written since."""
        return [x for x, held, _ in self._roots if x._held is not held]

    def restore(self) -> None:
        """Let all be as it was."""
        for name, held in self.names.items():
            if name != "_nf" and held is not self.variables[name]:
                self.variables[name] = held
        for x, held, is_own in self._roots:
            x._held, x._is_own = held, is_own
        for x, held, seen in self._views:
            x._held, x._seen = held, seen


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are one constant."""
    plain = (bool, int, float, complex, str, type(None))
    is_plain = type(one) in plain and type(one) is type(other)
    return one is other or (is_plain and repr(one) == repr(other))


def is_array(x: Any) -> bool:
    """Tell whether ``x`` stands for an array that may be written, not for a number."""
    return hasattr(type(x), "_remake") and not x._is_number
