# SPDX-License-Identifier: Apache-2.0
"""What a name stands for that code reads, and where it is bound."""

from __future__ import annotations

import builtins
import sys
from importlib import import_module
from importlib.util import find_spec, resolve_name
from typing import TYPE_CHECKING, Any

import nfuser.compiler.trace.captures.randomness.clocks as clocks
from nfuser.compiler.trace.captures.lookup.origin import Origin, Root
from nfuser.compiler.trace.captures.parts import is_users_file
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.trace.captures.lookup.bytecode import NamedPath


_UNFOLLOWED = {"globals", "eval", "exec", "input", "__import__"}


class AbsentError(Exception):
    """A name that stands for nothing yet."""

    def __init__(self, origin: Origin) -> None:
        super().__init__(str(origin))
        self.origin = origin


def begin(
    function: Any, path: NamedPath, arguments: Mapping[str, tuple[Origin, Any]]
) -> tuple[Origin, Any] | None:
    """Return where the name of ``path`` is read, and its value."""
    if path.kind == "import":
        return imported(function.__globals__.get("__package__") or "", path.name)
    if path.name in arguments and path.kind in ("local", "cell"):
        return arguments[path.name]
    if path.kind == "global":
        names = function.__globals__
        if path.name not in names:
            if path.name in _UNFOLLOWED:
                message = (
                    f"{path.name}() reads names that cannot be followed, so a later "
                    "change would go unseen; name the variable itself"
                )
                raise TraceError(message)
            if not hasattr(builtins, path.name):
                raise AbsentError(Origin(Root(names, path.name), path.name))
            clocks.refuse(path.name, getattr(builtins, path.name))
            return None
        return Origin(Root(names, path.name), path.name), names[path.name]
    free = function.__code__.co_freevars
    if path.kind == "cell" and path.name in free:
        cell = function.__closure__[free.index(path.name)]
        origin = Origin(Root(cell, path.name), path.name)
        try:
            return origin, cell.cell_contents
        except ValueError as error:
            raise AbsentError(origin) from error
    return None


def imported(package: str, name: str) -> tuple[Origin, Any] | None:
    """Return the user's module that is imported by ``name`` in ``package``."""
    try:
        name = resolve_name(name, package)
        if name not in sys.modules:
            # A library stays as it is, and may take seconds to import.
            spec = find_spec(name.partition(".")[0])
            if spec is None or not is_users_file(spec.origin or ""):
                return None
            import_module(name)
    except ImportError:
        return None
    return Origin(Root(sys.modules, name), name), sys.modules[name]
