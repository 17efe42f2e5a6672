# SPDX-License-Identifier: Apache-2.0
"""What a captured value is made of, as far as a later change can be seen."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import builtins
import io
import os
import re
import sys
import sysconfig
import weakref
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, MappingView, Sequence
from contextvars import ContextVar
from enum import Enum
from functools import lru_cache, partial
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.captures.lookup.bytecode import REFERENT, PathStep
from nfuser.compiler.trace.source_line import is_users
from nfuser.compiler.trace.standins.standin import Standin, is_ndarray

if TYPE_CHECKING:
    from collections.abc import Callable

_IMMUTABLE = frozenset({"jax", "jaxlib"})
PLAIN = (bool, int, float, complex, str, bytes, np.generic, type(None))
# What is known by identity or compared whole. The environment is watched as it is read.
_WHOLE = (
    *(*PLAIN, range, slice, bytearray, array, memoryview, Standin, type(os.environ)),
    *(FunctionType, MethodType, ModuleType, Enum),
)
_INERT = frozenset(
    {
        *("concurrent", "importlib", "inspect", "io", "logging", "multiprocessing"),
        *("nfuser", "numba", "pathlib", "threading", "typing", "typing_extensions"),
    }
)
"""Libraries whose objects hold no values, or hold much of a process."""


def parts_of(found: Any) -> list[tuple[PathStep, Any]] | None:
    """Return the parts of ``found``; None when it is taken as a whole.

    Anything with items has them as parts, whatever its class: views and wrappers too.
    """
    if isinstance(found, _WHOLE):
        return None
    items = _items(found)
    names = _attributes(found, items is not None)
    if items is None and not names and not _may_gain_names(found):
        return None
    return [*(items or ()), *((PathStep(k, True), v) for k, v in names.items())]


def _items(found: Any) -> list[tuple[PathStep, Any]] | None:
    if isinstance(found, Mapping):
        # A thread may add to it meanwhile.
        return [(PathStep(k, False), v) for k, v in list(found.items())]
    if isinstance(found, (Sequence, deque)):
        return [(PathStep(k, False), v) for k, v in enumerate(found)]
    if isinstance(found, partial):
        names = ("func", "args", "keywords")
        return [(PathStep(k, True), getattr(found, k)) for k in names]
    if isinstance(found, MappingView):
        mapping = getattr(found, "mapping", None)
        return None if mapping is None else [(PathStep("mapping", True), mapping)]
    if isinstance(found, (weakref.ref, ContextVar)):
        step = PathStep(REFERENT, False)
        return [(step, step.apply(found))]
    return None


def _attributes(found: Any, has_items: bool) -> dict[str, Any]:
    """Return the attributes of an object, and of the user's classes behind it."""
    if isinstance(found, type):
        return _class_data(type(found)) | _class_data(found)
    if type(found).__module__.partition(".")[0] in _INERT:
        return {}
    names = {} if has_items else _class_data(type(found))
    names |= {k: v for k, v in _own(found).items() if not k.startswith("__")}
    return names | _slot_values(found)


def _may_gain_names(found: Any) -> bool:
    is_object = not isinstance(found, type) and hasattr(found, "__dict__")
    return is_object and is_users_class(type(found))


def has_names(found: Any) -> bool:
    """Tell whether ``found`` may be given attributes, or its class may."""
    if isinstance(found, _WHOLE):
        return False
    kind = found if isinstance(found, type) else type(found)
    if is_users_class(kind) or isinstance(found, type):
        return is_users_class(kind)
    is_inert = type(found).__module__.partition(".")[0] in _INERT
    return not is_inert and isinstance(getattr(found, "__dict__", None), dict)


def _own(found: Any) -> dict[str, Any]:
    own = getattr(found, "__dict__", None)
    return own if isinstance(own, dict) else {}


def same_names(found: Any) -> Callable[[], Callable[[Any], bool]]:
    """Return what makes the test that a whole has the parts that it has now.

    A trace may give an object attributes, which it then sets in every call; items that
    it adds to a container are seen by the next call only, so they are a change.
    """
    kind = type(found)
    if isinstance(found, (Sequence, deque)):
        count = len(found)
        return lambda: lambda now: type(now) is kind and len(now) == count
    if isinstance(found, Mapping):
        keys = tuple(found)
        return lambda: lambda now: type(now) is kind and tuple(now) == keys
    if isinstance(found, type):
        return lambda: _same_class(found)
    return lambda: _same_attributes(found)


def _same_class(kind: type) -> Callable[[Any], bool]:
    """Return the test that no class behind ``kind`` got or lost a name."""
    names = [*_names_of_classes(kind), *_names_of_classes(type(kind))]
    return lambda now: now is kind and _have_names(names)


def _same_attributes(found: Any) -> Callable[[Any], bool]:
    """Return the test that an object has the attributes that it has now, or lacks."""
    kind, classes = type(found), _names_of_classes(type(found))
    own = tuple(_own(found)) if hasattr(found, "__dict__") else None
    empty = [slot for slot in _all_slots(kind) if not hasattr(found, slot)]
    return lambda now: (
        type(now) is kind
        and (own is None or tuple(_own(now)) == own)
        and not any(hasattr(now, slot) for slot in empty)
        and _have_names(classes)
    )


def _names_of_classes(kind: type) -> list[tuple[type, tuple[str, ...]]]:
    """Return the user's classes behind ``kind``, each with the names in it."""
    return [(c, tuple(vars(c))) for c in kind.__mro__ if is_users_class(c)]


def _have_names(classes: list[tuple[type, tuple[str, ...]]]) -> bool:
    # Most often there is one: a plain loop costs half of what ``all`` does.
    for kind, names in classes:  # noqa: SIM110
        if tuple(vars(kind)) != names:
            return False
    return True


def _class_data(kind: type) -> dict[str, Any]:
    """Return the attributes of the user's classes that are neither code nor private."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if is_users_class(base):
            found |= {k: v for k, v in vars(base).items() if _is_data(k, v)}
    return found


def _is_data(name: str, item: Any) -> bool:
    return not name.startswith("__") and not (
        isinstance(item, type) or hasattr(item, "__get__") or name.startswith("_abc_")
    )


def _slot_values(found: Any) -> dict[str, Any]:
    slots = _all_slots(type(found))
    return {slot: getattr(found, slot) for slot in slots if hasattr(found, slot)}


def _all_slots(kind: type) -> list[str]:
    return [slot for base in kind.__mro__ for slot in _slots(base)]


def _slots(base: type) -> Iterator[str]:
    slots = base.__dict__.get("__slots__", ())
    for slot in (slots,) if isinstance(slots, str) else slots:
        if not slot.startswith("__"):
            yield slot


def is_spent_by_reading(found: Any) -> bool:
    """Tell whether ``found`` is an iterator whose state cannot be seen."""
    is_iterator = isinstance(found, Iterator) and not isinstance(found, io.IOBase)
    return is_iterator and not is_users_class(type(found))


def is_array(item: Any) -> bool:
    """Tell whether ``item`` is an array of some library, not a NumPy scalar.

    Objects that answer to any name, and those that only show memory, are none.
    """
    is_shown = is_ndarray(item) or shows_memory(item)
    return is_shown and hasattr(item, "dtype") and hasattr(item, "shape")


def shows_memory(item: Any) -> bool:
    """Tell whether the class of ``item`` has a protocol of arrays."""
    if isinstance(item, (np.generic, type)):
        return False
    names = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")
    return any(hasattr(type(item), name) for name in names)


def is_silent(item: Any) -> bool:
    """Tell whether writes into ``item`` are seen only in the code that does them."""
    kind: type[Any] = type(item)
    if isinstance(item, Standin) or not hasattr(kind, "__setitem__"):
        return False
    return is_array(item) and kind.__module__.partition(".")[0] not in _IMMUTABLE


def is_closed(item: Any) -> bool:
    """Tell whether items of ``item`` can be set, and then not be seen: a table's."""
    if isinstance(item, (*_WHOLE, Mapping, Sequence, deque, type)) or is_array(item):
        return False
    setters = (c for c in type(item).__mro__ if "__setitem__" in vars(c))
    setter = next(setters, None)
    return setter is not None and not is_users_class(setter)


def is_users_array(item: Any) -> bool:
    """Tell whether ``item`` is an array of a class of the user's."""
    return is_array(item) and is_users_class(type(item))


@lru_cache(1)
def _library_folders() -> tuple[str, ...]:
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_paths()[kind] for kind in kinds}
    return tuple(f"{folder}/" for folder in sorted(folders))


# Packages lie in many folders: the user's, the system's, those of other environments.
_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")


@lru_cache(4096)
def is_users_file(file: str) -> bool:
    """Tell whether ``file`` is neither of the standard library nor installed.

    >>> is_users_file("/opt/tools/site-packages/attr/__init__.py")
    False
    >>> is_users_file("/opt/models/site/packages.py")
    True
    """
    if not is_users(file) or _INSTALLED.search(file):
        return False
    return not file.startswith((*_library_folders(), "<frozen"))


def is_users_module(module: ModuleType) -> bool:
    """Tell whether ``module`` is neither of the standard library nor installed."""
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__.partition(".")[0] not in sys.stdlib_module_names
    return is_users_file(file)


def is_users_name(name: str | None) -> bool:
    """Tell whether the module of this name is neither of a library nor installed.

    What was sent here by value may be of a module that only the sender has; what was
    sent by a script or notebook is of its ``__main__``, not of the program that runs.
    """
    if name is None:
        return False
    module = sys.modules.get(name)
    return module is None or name == "__main__" or is_users_module(module)


def is_users_class(kind: type) -> bool:
    """Tell whether a class is neither Python's, of a library nor installed.

    One that text made in a namespace without a name says that it is of ``builtins``.
    """
    if kind.__module__ == "builtins":
        is_pythons = getattr(builtins, kind.__name__, None) is kind
        return bool(kind.__flags__ & _MADE) and not is_pythons
    return is_users_name(kind.__module__)


_MADE = 1 << 9  # by a statement; CPython's Py_TPFLAGS_HEAPTYPE
