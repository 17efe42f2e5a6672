# SPDX-License-Identifier: Apache-2.0
"""Captured values that native code compares by itself: immutable ones, by identity.

The same object is the same value; a dict is the same with the same keys and values.
Where another object lies, or a value can change in another way, Python is asked.
"""

# Captured values have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.captures.lookup.bytecode import PathStep
from nfuser.compiler.trace.captures.lookup.origin import Origin, Root
from nfuser.compiler.trace.captures.parts import PLAIN
from nfuser.execution.device.native import layout as at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.trace.captures.captured import (
        Captured,
        CapturedArray,
        CapturedConstant,
    )
    from nfuser.execution.device.native.owned import Keeper
    from nfuser.frontend.call.shape import CallShape


_KEPT = (*PLAIN, np.ufunc, CodeType, ModuleType, BuiltinFunctionType)
_CONTAINERS = (tuple, dict)
_NAMES = PathStep("__dict__", True)


def quick_guard(
    captured: Captured, shape: CallShape, args: Sequence[Any], keep: Keeper
) -> list[int] | None:
    """Return the words by which native code compares, or None if Python has to.

    ``keep`` gets the objects that the words name.
    """
    if captured.aliases:
        return None
    constants = _Constants(shape, args, keep)
    words: list[int] = []
    for constant in captured.constants:
        found = constants.words(constant)
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


class _Constants:
    """Words for one constant after another; containers come before what they hold.

    A tuple, and a dict whose items are named, say by themselves what they hold.
    """

    def __init__(self, shape: CallShape, args: Sequence[Any], keep: Keeper) -> None:
        self._shape, self._keep = shape, keep
        self._bound = shape.bound(args)
        self._compared: set[Origin] = set()

    def words(self, constant: CapturedConstant) -> list[int] | None:
        """Return the words for ``constant``, or None if Python has to look."""
        origin = constant.origin
        value = constant.read(*self._bound)
        keys = [step.key for step in origin.steps]
        if keys == ["__defaults__"] and type(value) is tuple:
            return self._identity(origin, value)
        if type(value) is partial:
            names = vars(value)
            inside = self._items(origin.then(_NAMES), names)
            return _joined(self._identity(origin.then(_NAMES), names), inside)
        if type(value) in _CONTAINERS:
            inside = self._items(origin, value)
            return _joined(self._identity(origin, value), inside)
        return self._identity(origin, value) if _is_kept(value) else None

    def _items(self, origin: Origin, found: Any) -> list[int] | None:
        """Return the words for what a tuple or a dict holds."""
        is_dict = isinstance(found, dict)
        if not all(map(_may_be_held, found.values() if is_dict else found)):
            return None
        self._compared.add(origin)
        if not is_dict:
            return []
        items = [self._keep.object(x) for item in found.items() for x in item]
        size = at.Q_ITEMS + 8 * len(items)
        return [size, at.WHOLE_DICT, self._keep.object(found), *items]

    def _identity(self, origin: Origin, value: Any) -> list[int] | None:
        """Return the words that ``origin`` leads to the object ``value``."""
        steps = origin.steps
        items = [k for k, step in enumerate(steps) if not step.is_attribute]
        if not items:
            return _path(origin, self._keep.object(value), self._shape, self._keep)
        last = items[-1]
        if replace(origin, steps=steps[:last]) not in self._compared:
            return None
        if last + 1 == len(steps):
            return []
        item = replace(origin, steps=steps[: last + 1]).read(*self._bound)
        root = Root({"item": item}, "item")
        rest = Origin(root, origin.name, steps[last + 1 :])
        return _path(rest, self._keep.object(value), self._shape, self._keep)


def _joined(first: list[int] | None, second: list[int] | None) -> list[int] | None:
    return None if first is None or second is None else [*first, *second]


def _may_be_held(item: Any) -> bool:
    """Tell whether ``item`` may be known by what holds it."""
    return type(item) in _CONTAINERS or _is_kept(item)


def _is_kept(value: Any) -> bool:
    return isinstance(value, _KEPT) or _is_static(value)


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
