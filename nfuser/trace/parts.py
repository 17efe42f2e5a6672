# SPDX-License-Identifier: Apache-2.0
"""What a captured value is made of, as far as a later change can be seen."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

import io
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator
from functools import lru_cache, partial
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from nfuser.trace.bytecode import Step
from nfuser.trace.source_line import is_users

PLAIN = (bool, int, float, complex, str, bytes, np.generic, type(None))


def parts_of(found: Any) -> list[tuple[Step, Any]] | None:
    """Return the parts of ``found``; None when it is taken as a whole."""
    if isinstance(found, dict):
        return [(Step(k, False), v) for k, v in found.items()]
    if isinstance(found, (list, tuple, deque)):
        return [(Step(k, False), v) for k, v in enumerate(found)]
    if isinstance(found, partial):
        names = ("func", "args", "keywords")
        return [(Step(k, True), getattr(found, k)) for k in names]
    if isinstance(found, (FunctionType, MethodType, ModuleType)):
        return None
    names = _class_data(found if isinstance(found, type) else type(found))
    if not isinstance(found, type):
        if not isinstance(found, SimpleNamespace) and not _is_users_class(type(found)):
            return None
        names |= getattr(found, "__dict__", {})
        names |= _slot_values(found)
    return [(Step(k, True), v) for k, v in names.items()] or None


def _class_data(kind: type) -> dict[str, Any]:
    """Return the attributes of the user's classes that are neither code nor private."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if _is_users_class(base):
            found |= {k: v for k, v in vars(base).items() if _is_data(k, v)}
    return found


def _is_data(name: str, item: Any) -> bool:
    return not name.startswith("__") and not (
        isinstance(item, type) or hasattr(item, "__get__") or name.startswith("_abc_")
    )


def _slot_values(found: Any) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for base in type(found).__mro__:
        for slot in _slots(base):
            if hasattr(found, slot):
                names[slot] = getattr(found, slot)
    return names


def _slots(base: type) -> Iterator[str]:
    slots = base.__dict__.get("__slots__", ())
    for slot in (slots,) if isinstance(slots, str) else slots:
        if not slot.startswith("__"):
            yield slot


def is_spent_by_reading(found: Any) -> bool:
    """Tell whether ``found`` is an iterator whose state cannot be seen."""
    is_iterator = isinstance(found, Iterator) and not isinstance(found, io.IOBase)
    return is_iterator and not _is_users_class(type(found))


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


def is_users_module(module: ModuleType) -> bool:
    """Tell whether ``module`` is neither of the standard library nor installed."""
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__.partition(".")[0] not in sys.stdlib_module_names
    return is_users_file(file)


def _is_users_class(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    return module is not None and is_users_module(module)
