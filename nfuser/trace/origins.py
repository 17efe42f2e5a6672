# SPDX-License-Identifier: Apache-2.0
"""What a function's names stand for: where each captured value can be read again."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

import builtins
import sys
import sysconfig
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.trace.bytecode as bytecode
import nfuser.trace.clocks as clocks
from nfuser.ir.base import value
from nfuser.trace.bytecode import NamedPath, Step
from nfuser.trace.source_line import is_users

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

# Parts of an array that are arrays themselves, and facts that its elements do not
# change.
_FOLLOWED = {"T", "mT", "real", "imag", "shape", "ndim", "dtype", "size", "itemsize"}
_DEEPEST, _MOST = 4, 2000
PLAIN = (bool, int, float, complex, str, bytes, np.generic, type(None))


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
    steps: tuple[Step, ...] = ()

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the value now."""
        found = self.root.read(args, kwargs)
        for step in self.steps:
            found = step.apply(found)
        return found

    def then(self, step: Step) -> Origin:
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


@dataclass(slots=True)
class Finder:
    """Collects the values that a function, and what it calls, can read.

    ``reads`` counts how often the bytecode names each origin; ``containers`` are those
    whose keys matter.
    """

    reads: dict[Origin, int] = field(default_factory=dict[Origin, int])
    values: dict[Origin, Any] = field(default_factory=dict[Origin, Any])
    containers: dict[Origin, tuple[type, tuple[Any, ...]]] = field(
        default_factory=dict[Origin, "tuple[type, tuple[Any, ...]]"]
    )
    _visited: set[tuple[CodeType, Origin | None]] = field(
        default_factory=set["tuple[CodeType, Origin | None]"]
    )

    def visit(self, function: Any, arguments: Mapping[str, tuple[Origin, Any]]) -> None:
        """Add what ``function`` reads; ``arguments`` are the ones known by origin."""
        function, arguments = _unbound(function, arguments)
        code = getattr(function, "__code__", None)
        if code is None:
            return
        owner = next((origin for origin, _ in arguments.values()), None)
        if (code, owner) in self._visited:
            return
        self._visited.add((code, owner))
        for path in bytecode.paths(code):
            begin = _begin(function, path, arguments)
            if begin is not None:
                self._follow(*begin, path.steps)

    def _follow(self, origin: Origin, found: Any, steps: tuple[Step, ...]) -> None:
        owner: tuple[Origin, Any] | None = None
        for step in steps:
            if isinstance(found, PLAIN) or clocks.is_generator(found):
                break
            if is_array(found) and step.is_attribute and step.key not in _FOLLOWED:
                break
            if isinstance(found, ModuleType) and not _is_users_module(found):
                _check_library(str(origin), found, steps[len(origin.steps) :])
                return
            try:
                part = step.apply(found)
            except Exception:  # noqa: BLE001 (a path that fails here fails for the user)
                return
            owner = (origin, found)
            origin, found = origin.then(step), part
        clocks.refuse(str(origin), found)
        self._add(origin, found, owner)

    def _add(
        self, origin: Origin, found: Any, owner: tuple[Origin, Any] | None
    ) -> None:
        self.reads[origin] = self.reads.get(origin, 0) + 1
        if isinstance(found, (ModuleType, BuiltinFunctionType, np.ufunc)):
            return
        inner = getattr(found, "__nfuser_wrapped__", found)
        if isinstance(inner, (FunctionType, MethodType)):
            self._enter(origin, found, inner, owner)
        elif method := _call_method(found):
            name = next(iter(method.__code__.co_varnames))
            self.containers[origin] = (type(found), ())
            self.visit(method, {name: (origin, found)})
        else:
            self._expand(origin, found, 0)

    def _enter(
        self,
        origin: Origin,
        found: Any,
        function: FunctionType | MethodType,
        owner: tuple[Origin, Any] | None,
    ) -> None:
        plain = function.__func__ if isinstance(function, MethodType) else function
        if not isinstance(found, MethodType):
            self.values[origin] = found
        code = getattr(plain, "__code__", None)
        if code is None or not is_users_file(code.co_filename):
            return
        known: dict[str, tuple[Origin, Any]] = {}
        bound = getattr(function, "__self__", None)
        if owner is not None and bound is owner[1] and code.co_argcount:
            known[code.co_varnames[0]] = owner
        self.visit(plain, known)

    def _expand(self, origin: Origin, found: Any, depth: int) -> None:
        """Add the parts of a container or of an object, to some depth."""
        if origin in self.values or len(self.values) > _MOST:
            return
        parts = [] if isinstance(found, PLAIN) or is_array(found) else _parts(found)
        if not parts or depth >= _DEEPEST:
            self.values[origin] = found
            return
        self.containers[origin] = (type(found), tuple(s.key for s, _ in parts))
        for step, part in parts:
            self._expand(origin.then(step), part, depth + 1)


def _check_library(name: str, module: ModuleType, steps: tuple[Step, ...]) -> None:
    """Refuse what a library names that differs from call to call."""
    found: Any = module
    name = module.__name__
    for step in steps:
        found = getattr(found, str(step.key), None)
        name += str(step)
        if not isinstance(found, ModuleType):
            clocks.refuse(name, found)


def _unbound(
    function: Any, arguments: Mapping[str, tuple[Origin, Any]]
) -> tuple[Any, Mapping[str, tuple[Origin, Any]]]:
    function = getattr(function, "__nfuser_wrapped__", function)
    if not isinstance(function, MethodType):
        return function, arguments
    code = function.__func__.__code__
    origin = Origin(Root({"self": function.__self__}, "self"), code.co_varnames[0])
    held = {code.co_varnames[0]: (origin, function.__self__)}
    return function.__func__, {**held, **arguments}


def _begin(
    function: Any, path: NamedPath, arguments: Mapping[str, tuple[Origin, Any]]
) -> tuple[Origin, Any] | None:
    """Return where the name of ``path`` is read, and its value."""
    if path.name in arguments and path.kind in ("local", "cell"):
        return arguments[path.name]
    if path.kind == "global":
        names = function.__globals__
        if path.name not in names:
            found = getattr(builtins, path.name, None)
            if found is not None:
                clocks.refuse(path.name, found)
            return None
        return Origin(Root(names, path.name), path.name), names[path.name]
    free = function.__code__.co_freevars
    if path.kind == "cell" and path.name in free:
        cell = function.__closure__[free.index(path.name)]
        try:
            return Origin(Root(cell, path.name), path.name), cell.cell_contents
        except ValueError:
            return None
    return None


def _parts(found: Any) -> list[tuple[Step, Any]]:
    if isinstance(found, dict):
        return [(Step(k, False), v) for k, v in found.items()]
    if isinstance(found, (list, tuple)):
        return [(Step(k, False), v) for k, v in enumerate(found)]
    if isinstance(found, (type, FunctionType, MethodType, ModuleType)):
        return []
    module = sys.modules.get(type(found).__module__)
    if module is None or not _is_users_module(module):
        return []
    names = dict(getattr(found, "__dict__", {}))
    for base in type(found).__mro__:
        for slot in _slots(base):
            if hasattr(found, slot):
                names[slot] = getattr(found, slot)
    return [(Step(k, True), v) for k, v in names.items()]


def _slots(base: type) -> Iterator[str]:
    slots = base.__dict__.get("__slots__", ())
    for slot in (slots,) if isinstance(slots, str) else slots:
        if not slot.startswith("__"):
            yield slot


def _call_method(found: Any) -> Any:
    """Return the user's function that runs when the object is called, if any."""
    if isinstance(found, type) or is_array(found):
        return None
    for name in ("forward", "__call__"):
        method = getattr(type(found), name, None)
        if isinstance(method, FunctionType) and is_users_file(
            method.__code__.co_filename
        ):
            return method
    return None


def is_array(item: Any) -> bool:
    """Tell whether ``item`` is an array of some library, not a NumPy scalar."""
    if isinstance(item, (np.generic, type)):
        return False
    names = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")
    return isinstance(item, np.ndarray) or any(hasattr(item, n) for n in names)


@lru_cache(1)
def _library_folders() -> tuple[str, ...]:
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_paths()[kind] for kind in kinds}
    return tuple(f"{folder}/" for folder in sorted(folders))


@lru_cache(4096)
def is_users_file(file: str) -> bool:
    """Tell whether ``file`` is neither of the standard library nor installed."""
    return is_users(file) and not file.startswith((*_library_folders(), "<frozen"))


def _is_users_module(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ == "__main__"
    return is_users_file(file)
