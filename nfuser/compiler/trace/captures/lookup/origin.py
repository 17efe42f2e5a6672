# SPDX-License-Identifier: Apache-2.0
"""Where a captured value is read again: a name and the steps from there."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.trace.captures.lookup.bytecode import PathStep


@value
class Root:
    """Where a path begins: a dict of globals, a cell, or an argument of the call.

    ``place`` holds the dict or the cell; for an argument it is None, and ``key`` is
    its position or its keyword.
    """

    place: Any
    key: Any

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the value now."""
        if self.place is None:
            return args[self.key] if isinstance(self.key, int) else kwargs[self.key]
        if isinstance(self.place, dict):
            return self.place[self.key]
        return self.place.cell_contents

    def __hash__(self) -> int:
        return hash((id(self.place), self.key))

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Root) and self.place is other.place
        return same and self.key == other.key  # pyright: ignore[reportAttributeAccessIssue]


@value
class Origin:
    """A root and the steps from there."""

    root: Root
    name: str
    steps: tuple[PathStep, ...] = ()

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the value now."""
        found = self.root.read(args, kwargs)
        for step in self.steps:
            found = step.apply(found)
        return found

    def way(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return what lies on the way to the value, which is the last, if it is there.

        What is found by the places of arguments alone is none of it.
        """
        found: list[Any] = []
        is_outside = self.root.place is not None
        try:
            item = self.root.read(args, kwargs)
            for step in self.steps:
                if is_outside:
                    found.append(item)
                is_outside |= step.is_attribute
                item = step.apply(item)
        except Exception:  # noqa: BLE001 (a property may raise anything)
            return found
        return [*found, item] if is_outside else found

    def is_absent(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Tell whether there is nothing to read now."""
        try:
            self.read(args, kwargs)
        except Exception:  # noqa: BLE001 (a property may raise anything)
            return True
        return False

    def is_in(self, whole: Origin) -> bool:
        """Tell whether this is ``whole``, or a part of it."""
        steps = self.steps[: len(whole.steps)]
        return self.root == whole.root and steps == whole.steps

    @property
    def is_of_method(self) -> bool:
        """Whether this is what a method is bound to, which Python calls it with."""
        return bool(self.steps) and self.steps[-1].key == "__self__"

    def then(self, step: PathStep) -> Origin:
        """Return the origin of a part."""
        return Origin(self.root, self.name, (*self.steps, step))

    def reader(self) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Any]:
        """Return ``read`` as a function made for this origin: it runs at each call."""
        begin, steps = self.root.read, self.steps
        if not steps:
            return begin
        if all(step.is_attribute for step in steps):
            follow = attrgetter(".".join(step.key for step in steps))
            return lambda args, kwargs: follow(begin(args, kwargs))
        return self.read

    def __str__(self) -> str:
        return self.name + "".join(str(step) for step in self.steps)
