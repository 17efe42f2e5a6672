# SPDX-License-Identifier: Apache-2.0
"""The arguments of one call, taken apart: arrays, run-time numbers, static values."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from nfuser.device.descriptor import (
    CPU,
    Descriptor,
    Device,
    Library,
    describe,
    key_reader,
    library_of,
    pointer_reader,
)
from nfuser.dtypes import DType, as_dtype
from nfuser.errors import ArgumentError, DeviceError
from nfuser.trace import ArrayLeaf, ScalarLeaf, StaticLeaf, TracedCall
from nfuser.trace import tree as trees

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from nfuser.trace.call import Leaf

_NUMBERS = (int, float)
_SCALARS = (np.number, np.bool_, ml_dtypes.bfloat16)
_PLAIN = (bool, str, bytes, type(None), type(Ellipsis))
_NAMED: tuple[type[Any], ...] = (type, np.dtype)
# To a strict checker type(x) of a value typed Any is unknown; this one is not.
_class_of: Callable[[object], type[object]] = type


class Arguments:
    """One call: what its leaves are, and keys that tell calls apart.

    ``key`` holds everything a plan depends on but the values of run-time numbers;
    ``structure`` what a trace depends on.
    """

    __slots__ = ("arrays", "flat", "key", "kinds", "numbers", "structure", "tree")

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.flat, self.tree = trees.flatten((args, dict(kwargs)))
        self.arrays: dict[int, Any] = {}
        self.numbers: dict[int, Any] = {}
        keys: list[Hashable] = [self.tree]
        kinds: list[Hashable] = [self.tree]
        slot = 0
        for item in self.flat:
            cls = _class_of(item)
            if cls in _NUMBERS:
                self.numbers[slot] = item
                keys.append(cls)
                kinds.append(cls)
                slot += 1
            elif (library := library_of(cls)) is not None:
                self.arrays[slot] = item
                keys.append(_array_key(library, item))
                kinds.append((library, item.dtype, len(item.shape)))
                slot += 1
            elif isinstance(item, _SCALARS):
                self.numbers[slot] = item
                keys.append(cls)
                kinds.append(cls)
                slot += 1
            else:
                static = static_key(item)
                keys.append(static)
                kinds.append(static)
        self.key = tuple(keys)
        self.structure = tuple(kinds)
        self.kinds = slot


def _array_key(library: Library, array: Any) -> Hashable:
    pointer = pointer_reader(library)(array)
    return library, key_reader(library)(array), pointer & 15


def static_key(item: Any) -> Hashable:
    """Return a key for an argument that is a constant of the trace.

    Objects are known by a weak reference: a cache keeps no ``self`` alive.
    """
    kind = _class_of(item)
    if isinstance(item, _PLAIN):
        return kind, item
    if kind is slice:
        return kind, item.start, item.stop, item.step
    if isinstance(item, complex):
        return complex, repr(item)
    if isinstance(item, _NAMED):
        return kind, item
    try:
        hash(item)
    except TypeError as error:
        message = (
            f"an argument of type {kind.__name__} is neither an array nor a "
            "number, nor hashable: it cannot be a constant of the trace"
        )
        raise ArgumentError(message) from error
    try:
        return kind, weakref.ref(item)
    except TypeError:
        return kind, item


class Described:
    """The arrays of one call described, with where the call runs."""

    def __init__(self, arguments: Arguments, name: str) -> None:
        self.arrays: dict[int, Descriptor] = {}
        self.numbers = dict(arguments.numbers)
        for slot, array in arguments.arrays.items():
            self.arrays[slot] = describe(array, f"argument {slot} of {name}")
        self.lifted = self._lift_scalars(arguments)
        self.library, self.device = self._place(name)

    def _lift_scalars(self, arguments: Arguments) -> tuple[int, ...]:
        """Turn 0-d CPU arrays beside CUDA arrays into numbers; return their slots."""
        if not any(d.device.kind == "cuda" for d in self.arrays.values()):
            return ()
        lifted: list[int] = []
        for slot, d in list(self.arrays.items()):
            if d.device.kind == "cpu" and d.shape == ():
                self.numbers[slot] = host_number(arguments.arrays[slot], d)
                del self.arrays[slot]
                lifted.append(slot)
        return tuple(lifted)

    def _place(self, name: str) -> tuple[Library, Device]:
        devices = {d.device: d for d in self.arrays.values()}
        if len(devices) > 1:
            listed = ", ".join(
                f"argument {slot} on {d.device}" for slot, d in self.arrays.items()
            )
            message = f"{name}: all arrays must be on one device; found {listed}"
            raise DeviceError(message)
        if not self.arrays:
            return Library.NUMPY, CPU
        libraries = [d.library for d in self.arrays.values()]
        # NumPy arrays beside those of another library are its guests.
        found = next((x for x in libraries if x is not Library.NUMPY), libraries[0])
        return found, next(iter(devices))

    def call(self, arguments: Arguments) -> TracedCall:
        """Return the call as a tracer wants it."""
        leaves: list[Leaf] = []
        slot = 0
        for item in arguments.flat:
            leaf: Leaf
            if slot in self.arrays and item is arguments.arrays.get(slot):
                d = self.arrays[slot]
                leaf = ArrayLeaf(slot, d.dtype, d.shape)
            elif slot in self.numbers and (
                item is arguments.numbers.get(slot) or slot in self.lifted
            ):
                number = self.numbers[slot]
                leaf = ScalarLeaf(slot, _kind_of(_class_of(number)), number)
            else:
                leaves.append(StaticLeaf(item))
                continue
            leaves.append(leaf)
            slot += 1
        return TracedCall(arguments.tree, tuple(leaves))


def _kind_of(cls: type[object]) -> type[int] | type[float] | DType:
    if cls is int or cls is float:
        return cls
    return as_dtype(cls)


def host_number(array: Any, descriptor: Descriptor) -> Any:
    """Return a 0-d CPU array as a NumPy scalar of its dtype."""
    return descriptor.dtype.numpy.type(array.item())
