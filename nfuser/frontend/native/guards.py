# SPDX-License-Identifier: Apache-2.0
"""Captured values that native code compares by itself: immutable ones, by identity.

The same object is the same value. Where another object lies, or a value can change in
place, Python is asked.
"""

# Captured values have no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import sys
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.device.native import layout as at
from nfuser.trace.captures.parts import PLAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.device.native.owned import Keeper
    from nfuser.frontend.call.shape import CallShape
    from nfuser.trace.captures.captured import Captured, CapturedArray, CapturedConstant
    from nfuser.trace.captures.origin import Origin


_KEPT = (*PLAIN, np.ufunc, CodeType, ModuleType, BuiltinFunctionType)


def quick_guard(
    captured: Captured, shape: CallShape, args: Sequence[Any], keep: Keeper
) -> list[int] | None:
    """Return the words by which native code compares, or None if Python has to.

    ``keep`` gets the objects that the words name.
    """
    if captured.aliases:
        return None
    words: list[int] = []
    for constant in captured.constants:
        found = _constant(constant, shape, args, keep)
        if found is None:
            return None
        words += found
    for origin, read, *_ in captured.streams.places:
        stream = keep.object(read(*shape.bound(args)))
        found = _path(origin, stream, shape, keep)
        if found is None:
            return None
        words += found
    return words


def captured_words(
    found: CapturedArray, shape: CallShape, keep: Keeper
) -> list[int] | None:
    """Return the words by which native code finds a captured array, if it can."""
    return _path(found.origin, 0, shape, keep)


def _constant(
    constant: CapturedConstant, shape: CallShape, args: Sequence[Any], keep: Keeper
) -> list[int] | None:
    origin = constant.origin
    value = constant.read(*shape.bound(args))
    keys = [step.key for step in origin.steps]
    is_defaults = keys == ["__defaults__"] and type(value) is tuple
    if not (is_defaults or isinstance(value, _KEPT) or _is_static(value)):
        return None
    return _path(origin, keep.object(value), shape, keep)


def _is_static(value: Any) -> bool:
    """Tell whether ``value`` is a function without a closure, as modules keep them."""
    return isinstance(value, FunctionType) and value.__closure__ is None


def _path(
    origin: Origin, expected: int, shape: CallShape, keep: Keeper
) -> list[int] | None:
    """Return the words of a path: a root, and the attributes from there."""
    if not all(s.is_attribute and type(s.key) is str for s in origin.steps):
        return None
    root = _root(origin.root.place, origin.root.key, shape, keep)
    if root is None:
        return None
    names = [sys.intern(step.key) for step in origin.steps]
    size = at.Q_STEPS + 8 * len(names)
    return [size, *root, expected, *map(keep.object, names)]


def _root(
    place: Any, key: Any, shape: CallShape, keep: Keeper
) -> tuple[int, int, int] | None:
    if isinstance(place, dict):
        return at.FROM_DICT, keep.object(place), keep.object(key)
    if isinstance(place, CellType):
        return at.FROM_CELL, keep.object(place), 0
    if place is not None:
        return None
    if isinstance(key, int):
        return at.FROM_ARGUMENT, 0, shape.positions[key]
    return at.FROM_ARGUMENT, 0, dict(shape.keywords)[key]
