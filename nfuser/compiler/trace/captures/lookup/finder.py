# SPDX-License-Identifier: Apache-2.0
"""What a function's names stand for: where each captured value can be read again."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

import nfuser.compiler.trace.captures.lookup.bytecode as bytecode
import nfuser.compiler.trace.captures.randomness.clocks as clocks
from nfuser.compiler.trace.captures.lookup.bound_names import AbsentError, begin
from nfuser.compiler.trace.captures.lookup.bytecode import NamedPath, PathStep
from nfuser.compiler.trace.captures.lookup.origin import Origin, Root
from nfuser.compiler.trace.captures.parts import (
    PLAIN,
    has_names,
    is_array,
    is_closed,
    is_spent_by_reading,
    is_users_array,
    is_users_class,
    is_users_file,
    is_users_module,
    parts_of,
    same_names,
)
from nfuser.compiler.trace.captures.randomness.stream import Stream
from nfuser.compiler.trace.captures.windows import bytes_of
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nfuser.compiler.trace.captures.randomness.draws import Draws

# Parts of an array that are arrays themselves, and facts that its elements do not
# change.
_FOLLOWED = {"T", "mT", "real", "imag", "shape", "ndim", "dtype", "size", "itemsize"}
# Methods that tell nothing of what they change.
_WRITES = {"add", "append", "appendleft", "clear", "discard", "extend", "insert"}
_DEEPEST, _MOST = 16, 2000


@dataclass(slots=True)
class Finder:
    """Collects the values that a function, and what it calls, can read.

    ``draws`` hears of generators. ``reads`` counts how often the bytecode names each
    origin; ``containers`` are those whose keys matter; ``absences`` are what is named
    and cannot be read.
    """

    draws: Draws
    reads: dict[Origin, int] = field(default_factory=dict[Origin, int])
    values: dict[Origin, Any] = field(default_factory=dict[Origin, Any])
    containers: dict[Origin, Callable[[], Callable[[Any], bool]]] = field(
        default_factory=dict[Origin, "Callable[[], Callable[[Any], bool]]"]
    )
    absences: set[Origin] = field(default_factory=set[Origin])
    _visited: set[tuple[Any, ...]] = field(default_factory=set["tuple[Any, ...]"])
    _known: dict[int, tuple[Origin, Any]] = field(
        default_factory=dict[int, "tuple[Origin, Any]"]
    )
    _objects: dict[int, Any] = field(default_factory=dict[int, Any])
    _whole: set[Origin] = field(default_factory=set[Origin])
    closed: list[Any] = field(default_factory=list[Any])  # writes into them are unseen
    _inner: set[CodeType] = field(default_factory=set[CodeType])
    _functions: dict[CodeType, list[Any]] = field(
        default_factory=dict[CodeType, "list[Any]"]
    )

    @property
    def codes(self) -> Iterable[CodeType]:
        """The code of the functions that were visited."""
        return self._functions

    def is_inside(self, code: CodeType) -> bool:
        """Tell whether a function that was visited defines ``code``."""
        return code in self._inner

    def visited(
        self, code: CodeType, names: Mapping[str, Any], cells: Mapping[str, Any]
    ) -> list[Any]:
        """Return the functions of this code, globals and closure that were visited."""
        return [
            function
            for function in self._functions.get(code, ())
            if function.__globals__ is names and _holds(function, cells)
        ]

    def known(self, items: Mapping[str, Any]) -> dict[str, tuple[Origin, Any]]:
        """Return the objects among ``items`` that are known, but not as a whole."""
        pairs = {name: self._known.get(id(item)) for name, item in items.items()}
        return {
            name: pair
            for name, pair in pairs.items()
            if pair is not None and pair[0] not in self._whole
        }

    def visit(self, function: Any, arguments: Mapping[str, tuple[Origin, Any]]) -> None:
        """Add what ``function`` reads; ``arguments`` are the ones known by origin."""
        if isinstance(function, partial) or _call_method(function) is not None:
            root = Root({"function": function}, "function")
            self.add(Origin(root, "function"), function)
            return
        function, arguments = _unbound(function, arguments)
        code = getattr(function, "__code__", None)
        if code is None:
            return
        owners = tuple(origin for origin, _ in arguments.values())
        pairs = zip(code.co_freevars, function.__closure__ or (), strict=True)
        cells = tuple(id(cell) for name, cell in pairs if name != "__class__")
        if (code, owners, cells) in self._visited:
            return
        self._visited.add((code, owners, cells))
        for origin, item in arguments.values():
            if not isinstance(item, PLAIN):
                self._known.setdefault(id(item), (origin, item))
        self._functions.setdefault(code, []).append(function)
        self._inner.update(_codes_inside(code))
        is_by_name = bytecode.reads_by_name(code)
        for path in bytecode.paths(code):
            try:
                begun = begin(function, path, arguments)
            except AbsentError as absent:
                self.absences.add(absent.origin)
                continue
            if begun is None:
                continue
            if not path.steps and _has_open_names(begun[1]):
                self._known.setdefault(id(begun[1]), begun)
                if is_by_name:
                    self._add_names(*begun)
            self._follow(*begun, path)

    def _add_names(self, origin: Origin, found: ModuleType | FunctionType) -> None:
        """Add what a module or a function holds: it may be read by any name."""
        names = origin.then(PathStep("__dict__", True))
        if names not in self.containers:
            self.containers[names] = same_names(vars(found))
            for name, item in vars(found).items():
                if not name.startswith("__"):
                    self._add_named(origin.then(PathStep(name, True)), item)

    def _add_named(self, origin: Origin, item: Any) -> None:
        """Add what may be read; what cannot be followed may never be read, either."""
        try:
            self._expand(origin, item, ())
        except TraceError:
            self.values[origin] = item

    def _follow(self, origin: Origin, found: Any, path: NamedPath) -> None:
        steps = path.steps
        owner: tuple[Origin, Any] | None = None
        for step in steps:
            if isinstance(found, PLAIN) or _is_drawn_from(found):
                break
            if is_array(found) and step.is_attribute and step.key not in _FOLLOWED:
                self._use_array(origin, found, step)
                break
            if isinstance(found, ModuleType):
                self.values[origin] = found  # its name may come to mean another one
            is_library = isinstance(found, ModuleType) and not is_users_module(found)
            self._name_object(origin, found)
            try:
                part = step.apply(found)
            except Exception:  # noqa: BLE001 (the user may catch whatever it raises)
                if not is_library:
                    self.absences.add(origin.then(step))
                return
            if is_library:
                if not isinstance(part, ModuleType):
                    clocks.refuse(f"{found.__name__}{step}", part)
                # A library stays as it is, but for lists and tables that it shows.
                if not isinstance(part, (ModuleType, dict, list)):
                    return
            owner = (origin, found)
            origin, found = origin.then(step), part
            if path.asker == "hasattr" and step is steps[-1]:
                self.containers.setdefault(origin, _is_there)
                return
        clocks.refuse(str(origin), found)
        self.add(origin, found, owner)

    def _use_array(self, origin: Origin, found: Any, step: PathStep) -> None:
        """Add what an array of a user's class holds beside elements, of which it asks.

        What is none of these parts may read the elements.
        """
        if is_users_array(found):
            self._add_parts(origin, found, ())
            if all(part != step for part, _ in parts_of(found) or ()):
                self.values[origin] = found

    def _name_object(self, origin: Origin, found: Any) -> None:
        """Let an object be known whose properties, or items, may read what it holds."""
        if is_users_class(type(found)):
            self._known.setdefault(id(found), (origin, found))

    def add(
        self, origin: Origin, found: Any, owner: tuple[Origin, Any] | None = None
    ) -> None:
        """Add a value that the function names, and what is read when it is called."""
        self.reads[origin] = self.reads.get(origin, 0) + 1
        if isinstance(found, (ModuleType, np.ufunc)) or _is_unbound(found):
            self.values[origin] = found
            return
        if isinstance(found, (BuiltinFunctionType, MethodWrapperType)):
            self._add_bound(origin, found, owner)
            return
        if is_spent_by_reading(found):
            message = (
                f"{origin} is an iterator: a fused function is traced once, so every "
                "call would see the same items; take them outside and pass them as "
                "arguments"
            )
            raise TraceError(message)
        if not self._called(origin, found, owner):
            self._expand(origin, found, ())

    def _called(
        self, origin: Origin, found: Any, owner: tuple[Origin, Any] | None
    ) -> bool:
        """Add what a call of ``found`` reads; tell whether a user's function runs."""
        inner = getattr(found, "__nfuser_wrapped__", found)
        if isinstance(inner, (FunctionType, MethodType)):
            self._enter(origin, found, inner, owner)
        elif method := _call_method(found):
            name = next(iter(method.__code__.co_varnames))
            self.containers[origin] = same_names(found)
            self.visit(method, {name: (origin, found)})
            self._add_defaults(origin.then(PathStep(method.__name__, True)), method)
        else:
            return False
        return True

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
        is_fused = function is not found  # and may hold a user's, as grad(f) does
        if code is None or not (is_fused or is_users_file(code.co_filename)):
            if isinstance(found, MethodType):
                self._add_bound(origin, found, owner)
            return
        if is_fused:
            origin = origin.then(PathStep("__nfuser_wrapped__", True))
        known: dict[str, tuple[Origin, Any]] = {}
        its_function = origin
        if isinstance(function, MethodType):
            # A method is made anew at each read, and so may its function be.
            its_function = origin.then(PathStep("__func__", True))
        if isinstance(found, MethodType) and code.co_argcount:
            bound = _bound_to(origin, found, owner)
            known[code.co_varnames[0]] = (bound, found.__self__)
        # Whoever loads a module anew may keep its functions, and change these.
        self.values[its_function.then(PathStep("__code__", True))] = code
        self.visit(plain, known)
        self._add_defaults(origin, plain)

    def _is_shared(self, found: Any) -> bool:
        """Tell whether an object is watched in another place, so that its name is left.

        Lists and the like are watched in each place: to know one is to keep it alive.
        """
        if not hasattr(type(found), "__weakref__"):
            return False
        is_shared = id(found) in self._objects
        self._objects[id(found)] = found
        return is_shared

    def _add_bound(
        self, origin: Origin, method: Any, owner: tuple[Origin, Any] | None
    ) -> None:
        """Add the object whose ``method`` of a library the function names."""
        bound = method.__self__
        if isinstance(bound, type) or method.__name__ in _WRITES:
            return
        if owner is None or bound is not owner[1]:
            owner = origin.then(PathStep("__self__", True)), bound
        self._expand(*owner, ())

    def _add_defaults(self, origin: Origin, function: Any) -> None:
        for name in ("__defaults__", "__kwdefaults__"):
            if values := getattr(function, name, None):
                self._expand(origin.then(PathStep(name, True)), values, ())

    def _expand(self, origin: Origin, found: Any, above: tuple[Any, ...]) -> None:
        """Add the parts of a container or of an object; ``above`` are what holds it."""
        if origin in self.values or origin in self._whole:
            return
        if is_closed(found):
            self.closed.append(found)
        # What holds itself is followed where it was met first.
        is_leaf = isinstance(found, (*PLAIN, Stream)) or is_array(found)
        if clocks.is_generator(found):
            self.draws.add(found)
            is_leaf = True
        is_leaf = is_leaf or any(found is whole for whole in above)
        if isinstance(found, (BuiltinFunctionType, MethodWrapperType)):
            self.values[origin] = found
            self._add_bound(origin, found, None)
            return
        if above and not is_leaf:
            self._called(origin, found, None)
        is_leaf = is_leaf or self._is_shared(found)
        if is_leaf or not self._add_parts(origin, found, above):
            self.values[origin] = found

    def _add_parts(self, origin: Origin, found: Any, above: tuple[Any, ...]) -> bool:
        """Add what ``found`` is made of; tell whether that is all there is to it."""
        parts = parts_of(found)
        if parts is None:
            if has_names(found):
                self.containers[origin] = same_names(found)
            return False
        if len(above) >= _DEEPEST or len(self.values) + len(parts) > _MOST:
            raise _too_large(origin)
        self.containers[origin] = same_names(found)
        self._whole.add(origin)
        for step, part in parts:
            self._expand(origin.then(step), part, (*above, found))
        return bytes_of(found) is None


def _is_drawn_from(found: Any) -> bool:
    return isinstance(found, Stream) or clocks.is_generator(found)


def _is_there() -> Callable[[Any], bool]:
    """Return the test of what was found: that there is something."""
    return lambda _: True


def _has_open_names(found: Any) -> TypeGuard[ModuleType | FunctionType]:
    """Tell whether ``found`` is the user's, and is watched only as what it is."""
    if isinstance(found, ModuleType):
        return is_users_module(found)
    is_function = isinstance(found, FunctionType)
    return is_function and is_users_file(found.__code__.co_filename)


def _is_unbound(found: Any) -> bool:
    """Tell whether ``found`` is a function of a library, which holds no values."""
    if not isinstance(found, BuiltinFunctionType):
        return False
    return found.__self__ is None or isinstance(found.__self__, ModuleType)


def _bound_to(
    origin: Origin, method: MethodType, owner: tuple[Origin, Any] | None
) -> Origin:
    """Return where the object of ``method`` is read; ``owner`` had the method."""
    if owner is not None and method.__self__ is owner[1]:
        return owner[0]
    if owner is not None and method.__self__ is type(owner[1]):
        return owner[0].then(PathStep("__class__", True))
    return origin.then(PathStep("__self__", True))


def _holds(function: Any, cells: Mapping[str, Any]) -> bool:
    """Tell whether the closure of ``function`` holds the very values in ``cells``."""
    names = function.__code__.co_freevars
    pairs = zip(names, function.__closure__ or (), strict=True)
    try:
        return all(c.cell_contents is cells[n] for n, c in pairs if n in cells)
    except ValueError:
        return False


@lru_cache(1024)
def _codes_inside(code: CodeType) -> frozenset[CodeType]:
    inner = bytecode.inner_codes(code)
    return frozenset(inner).union(*(_codes_inside(c) for c in inner))


def _too_large(origin: Origin) -> TraceError:
    message = (
        f"{origin.name} holds more values than can be watched for changes (at most "
        f"{_MOST}, {_DEEPEST} levels deep); pass what is needed as arguments, numbers "
        "as one array"
    )
    return TraceError(message)


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
