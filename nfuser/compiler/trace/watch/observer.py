# SPDX-License-Identifier: Apache-2.0
"""Sees what runs while a function is traced, and adds what reading it alone missed.

Which names a function reads is known from its code; which functions run, not always: a
method called in a loop, an operator of a class, what a library calls back. A function
of the user's that runs unannounced is read then; a look into the environment is noted.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from pathlib import Path
from threading import local
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.captures.randomness.clocks as clocks
import nfuser.compiler.trace.watch.interruptions as interruptions
import nfuser.compiler.trace.watch.standstill as standstill
from nfuser.compiler.trace.captures.lookup.bound_names import imported
from nfuser.compiler.trace.captures.lookup.bytecode import PathStep
from nfuser.compiler.trace.captures.lookup.origin import Origin, Root
from nfuser.compiler.trace.captures.parts import (
    is_users_class,
    is_users_file,
    is_users_name,
)
from nfuser.compiler.trace.captures.sources import UnwatchedSources
from nfuser.compiler.trace.loops.rewriting.originals import originals
from nfuser.compiler.trace.standins.asked import AnewError
from nfuser.compiler.trace.standins.standin import Standin, inside_torch, shown_class
from nfuser.errors import NfuserError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from nfuser.compiler.trace.captures.elements import Elements
    from nfuser.compiler.trace.captures.lookup.finder import Finder
    from nfuser.compiler.trace.captures.randomness.draws import Draws

_LOOK_UP = type(os.environ).__getitem__.__code__
_LISTINGS = {getattr(type(os.environ), n).__code__ for n in ("__iter__", "__len__")}
# Functions that say what lies on disk, and the modules that they are called by.
_ASKING = (
    *("stat", "lstat", "access", "getcwd", "getcwdb"),
    *("listdir", "scandir", "readlink", "statvfs"),
)
_OF_FILES = {id(f): f for f in (getattr(os, n, None) for n in _ASKING) if f is not None}
_PATHS = frozenset(
    {
        *("os", "posixpath", "ntpath", "genericpath", "glob"),
        *("pathlib", "pathlib._local", "pathlib._abc", "pathlib._os"),
    }
)
_NUMPY = np.__path__[0]
_OURS = str(Path(__file__).parents[3])
_IMPORT = importlib.import_module.__code__
_SHOWN = shown_class.__code__
# What may begin to watch in place of a trace, which then leaves that alone.
_OTHERS = ("setprofile", "enable")


class _Watching(local):
    """What watches the thread that asks; to read it is no call that Python reports."""

    see: Callable[[FrameType, str, Any], None] | None = None


WATCHING = _Watching()


class ReadableVariables(dict[Any, Any]):
    """The environment as a place to read from: a missing name is None."""

    def __getitem__(self, name: str) -> str | None:
        """Return the value now."""
        return os.environ.get(name)


class Listing(dict[Any, Any]):
    """The whole environment as a place to read from."""

    def __getitem__(self, name: str) -> str:
        """Return all names and values now."""
        return repr(sorted(os.environ.items()))


_VARIABLES, _LISTING = ReadableVariables(), Listing()


class Observer:
    """Watches one trace."""

    def __init__(self, finder: Finder, elements: Elements, draws: Draws) -> None:
        self._finder = finder
        self._elements = elements
        self.sources = UnwatchedSources()
        self._draws = draws
        # Code in which there is nothing to see, by identity: to hash code takes longer.
        self._settled: dict[int, CodeType] = {id(_SHOWN): _SHOWN}
        self._watched: set[tuple[type, CodeType]] = set()
        self._is_once: Callable[[], bool] = lambda: False
        self._told: Callable[[CodeType], None] = lambda _: None
        self._error: NfuserError | None = None
        self._aside: FrameType | None = None  # an interruption, until it ends
        self._in_torch: set[FrameType] = set()

    def run(
        self,
        step: Callable[[], Any],
        is_once: Callable[[], bool],
        enter: Callable[[CodeType], None],
    ) -> Any:
        """Return what ``step`` returns; refuse what it did that cannot be watched.

        ``is_once`` tells whether what runs stands for any number of runs; ``enter`` is
        told of functions of the user's that run as they are, and may end the trace.
        """
        self._is_once, self._told = is_once, enter
        before, outer = sys.getprofile(), WATCHING.see
        interruptions.watch()
        token = standstill.watched()
        WATCHING.see = self.see
        try:
            sys.setprofile(self.see)
            found = step()
        finally:
            sys.setprofile(None)
            WATCHING.see = outer
            inside_torch.difference_update(self._in_torch)
            _resume(before)
            del token
        if self._error is not None:
            raise self._error
        return found

    def see(self, frame: FrameType, event: str, item: Any) -> None:
        """Note an event that Python reports to profilers."""
        is_settled = id(frame.f_code) in self._settled
        if "torch" in sys.modules and event.startswith("c_"):
            self._see_torch(frame, event, item)
        if is_settled or event == "c_return":
            return
        if self._aside is not None:
            if event == "return" and frame is self._aside:
                self._aside = None
            return
        try:
            if event == "call":
                self._enter(frame, frame.f_code)
            elif event == "c_call":
                self._enter_builtin(frame, item)
            elif event == "return" and _is_users(frame):
                names = frame.f_locals  # each time it is asked for, it is made
                self._elements.look(frame, names)
                self._draws.leave(names)
        except AnewError as error:
            self._error = self._error or error
            raise
        except NfuserError as error:
            self._error = self._error or error
        except RecursionError:
            return  # the user's function meets it, too, and is told where

    def _see_torch(self, frame: FrameType, event: str, function: Any) -> None:
        """Note that a frame enters C code of torch, or comes back from there."""
        if event == "c_call" and _is_torchs(function):
            self._in_torch.add(frame)
            inside_torch.add(frame)
        elif event != "c_call" and frame in self._in_torch:
            self._in_torch.discard(frame)
            inside_torch.discard(frame)

    def _enter_builtin(self, frame: FrameType, function: Any) -> None:
        self._draws.hold(function)
        if id(function) in _OF_FILES and _looks_for_user(frame):
            message = (
                f"os.{function.__name__}() looks at files or folders once, while "
                "tracing, and a later change would go unseen; do it outside the fused "
                "function, and pass what it says as an argument"
            )
            raise TraceError(message)
        if _is_users(frame):
            if getattr(function, "__name__", "") in _OTHERS:
                WATCHING.see = None
            if function is open:
                message = (
                    "open() reads or writes a file once, while tracing, and a later "
                    "change would go unseen; do it outside the fused function"
                )
                raise TraceError(message)
            self._elements.use(getattr(function, "__self__", None))
            self.sources.call(function)
            clocks.refuse(getattr(function, "__name__", ""), function)

    def _enter(self, frame: FrameType, code: CodeType) -> None:
        original = originals.get(code, code)
        if original is None:  # a part of a function
            return
        code = original
        is_users = _is_users(frame)
        if not is_users and code.co_filename.startswith(_OURS):
            self._settled[id(code)] = code
        elif interruptions.is_one(frame):
            self._aside = frame
        elif is_users:
            self._draws.enter(frame)
            self._elements.begin(frame, code)
            self._enter_users(frame, code)
        elif code is _LOOK_UP or code in _LISTINGS or code is _IMPORT:
            if _is_asked_by_user(frame):
                self._enter_library(frame, code)
        elif code.co_filename.startswith(_NUMPY):
            if frame.f_back is not None and _is_users(frame.f_back):
                self._enter_numpy(list(frame.f_locals.values()))
                self.sources.enter(frame)
        else:
            self.sources.enter(frame)
            is_led = self._draws.enter(frame)
            if not is_led and frame.f_globals.get("__name__") not in _PATHS:
                self._settled[id(code)] = code

    def _enter_numpy(self, arguments: list[Any]) -> None:
        if not any(isinstance(item, Standin) for item in arguments):
            for item in arguments:
                self._elements.use(item)

    def _enter_library(self, frame: FrameType, code: CodeType) -> None:
        if code is _IMPORT:
            name = frame.f_locals["name"]
            if imported(frame.f_locals.get("package") or "", name) is not None:
                message = (
                    f"import_module({name!r}) cannot be followed, so a later change "
                    "would go unseen; import the module outside the fused function"
                )
                raise TraceError(message)
            return
        name, place = "os.environ", _LISTING
        if code is _LOOK_UP:
            name, place = os.fsdecode(frame.f_locals["key"]), _VARIABLES
        self._finder.values.setdefault(Origin(Root(place, name), name), place[name])

    def _enter_users(self, frame: FrameType, code: CodeType) -> None:
        if self._is_once():
            _refuse_unread(frame)
        self._watch_class(frame, code)
        if code.co_name == "<module>" or self._finder.is_inside(code):
            return
        names = [name for name in code.co_freevars if name != "__class__"]
        cells = {name: frame.f_locals.get(name) for name in names}
        taken = code.co_varnames[: code.co_argcount]
        known = self._finder.known({name: frame.f_locals.get(name) for name in taken})
        visited = self._finder.visited(code, frame.f_globals, cells)
        if known or not visited:
            # To look for others is to look through all objects of the process.
            for function in visited or _functions_of(frame, code, bool(names)):
                self._finder.visit(function, known)
        if frame.f_code not in originals:
            self._told(code)

    def _watch_class(self, frame: FrameType, code: CodeType) -> None:
        """Watch that the class of ``self`` keeps the method that runs."""
        kind = _class_of(frame, code)
        if kind is None or (kind, code) in self._watched:
            return
        self._watched.add((kind, code))
        if not is_users_class(kind):
            return
        root = Root({kind.__name__: kind}, kind.__name__)
        for name in _names_of(kind, code):
            found, steps = getattr(kind, name), (PathStep(name, True),)
            if isinstance(found, MethodType):
                found, steps = found.__func__, (*steps, PathStep("__func__", True))
            origin = Origin(root, root.key, steps)
            self._finder.values.setdefault(origin, found)
            if isinstance(found, FunctionType):
                # Whoever loads a module anew may keep its functions, and change these.
                origin = origin.then(PathStep("__code__", True))
                self._finder.values.setdefault(origin, found.__code__)


def _refuse_unread(frame: FrameType) -> None:
    """Refuse a function that Python calls by itself in a body that runs once for all.

    A property, or an operator of a class: what it does has not been looked at.
    """
    if frame.f_code in originals or frame.f_code.co_name == "<module>":
        return
    if frame.f_back is None or not _is_users(frame.f_back):
        return
    message = (
        f"call {frame.f_code.co_qualname} before the loop: Python calls it by itself, "
        "in a loop or a branch that is traced once, and it may do what must not happen "
        "once for all"
    )
    raise TraceError(message)


def _names_of(kind: type, code: CodeType) -> list[str]:
    """Return the attributes of ``kind`` that run ``code``."""
    return [
        name
        for base in kind.__mro__
        if is_users_class(base)
        for name, held in vars(base).items()
        if any(
            getattr(getattr(held, part, held), "__code__", None) is code
            for part in ("__code__", "__func__", "fget", "func", "__wrapped__")
        )
    ]


def _is_torchs(function: Any) -> bool:
    """Tell whether a builtin function, or the object of a builtin method, is torch's.

    >>> _is_torchs(len), _is_torchs([].append)
    (False, False)
    """
    module = getattr(function, "__module__", None)
    if module is None:
        module = type(getattr(function, "__self__", None)).__module__
    return isinstance(module, str) and module.partition(".")[0] == "torch"


def _is_asked_by_user(frame: FrameType) -> bool:
    """Tell whether the user's code made a library look into the environment."""
    caller = frame.f_back
    while caller and caller.f_code.co_filename in _BETWEEN:
        caller = caller.f_back
    return caller is not None and _is_users(caller)


def _is_users(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    if not is_users_file(file):
        return False
    # Generated code has no file: it is its module's, if its namespace has a name.
    name = frame.f_globals.get("__name__")
    return not file.startswith("<") or name is None or is_users_name(name)


def _looks_for_user(frame: FrameType) -> bool:
    """Tell whether the user's code asks, by itself or by way of paths."""
    caller: FrameType | None = frame
    while caller is not None and caller.f_globals.get("__name__") in _PATHS:
        caller = caller.f_back
    return caller is not None and _is_users(caller)


def _class_of(frame: FrameType, code: CodeType) -> type | None:
    """Return the class that the first argument is, or is an instance of."""
    if not code.co_argcount:
        return None
    found = frame.f_locals.get(code.co_varnames[0])
    return found if isinstance(found, type) else type(found)


def _functions_of(
    frame: FrameType, code: CodeType, has_closure: bool
) -> list[FunctionType]:
    """Return the functions with this code, that which runs among them."""
    if not has_closure:
        closure = tuple(CellType() for _ in code.co_freevars)
        return [FunctionType(code, frame.f_globals, closure=closure)]
    kind = _class_of(frame, code)
    method = getattr(kind, code.co_name, None)
    if isinstance(method, FunctionType) and method.__code__ is code:
        return [method]
    return [f for f in gc.get_referrers(code) if isinstance(f, FunctionType)]


_BETWEEN = {_LOOK_UP.co_filename, "<frozen os>", "<frozen _collections_abc>"}


def _resume(profile: Any) -> None:
    """Let a profiler that was at work go on."""
    if callable(profile):
        sys.setprofile(profile)
    elif hasattr(profile, "enable"):
        profile.enable()
