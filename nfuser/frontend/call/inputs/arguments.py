# SPDX-License-Identifier: Apache-2.0
"""The arguments of one call, taken apart: arrays, run-time numbers, static values."""

from __future__ import annotations

import sys
import weakref
from dataclasses import is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import ml_dtypes
import numpy as np

import nfuser.config as config
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.trace import ArrayLeaf, ScalarLeaf, StaticLeaf, TracedCall
from nfuser.compiler.trace.call import labelled
from nfuser.compiler.trace.call import tree as trees
from nfuser.compiler.trace.captures.parts import shows_memory
from nfuser.compiler.trace.captures.randomness.streams import is_drawn_from
from nfuser.compiler.trace.standins.containers import array_in
from nfuser.errors import ArgumentError, ChunkedError
from nfuser.execution.device.describe.descriptor import (
    Descriptor,
    Library,
    address_and_key,
    describe,
    library_of,
)
from nfuser.execution.device.describe.libraries import array_class, is_imported
from nfuser.execution.device.describe.readable import fault, readable
from nfuser.execution.runtime.place import common_place
from nfuser.frontend.call.inputs.argument_names import leaf_names
from nfuser.frontend.call.inputs.spec import Spec

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from nfuser.compiler.trace.call.call import Leaf
    from nfuser.compiler.trace.captures.captured import Captured

_NUMBERS = (int, float)
_SCALARS = (np.number, np.bool_, ml_dtypes.bfloat16)
_NONE: Mapping[Any, Any] = MappingProxyType({})
_PLAIN = (bool, str, bytes, type(None), type(Ellipsis))
_HOLDING = (list, tuple, dict, set, bytearray, int, float)  # beside attributes
_NAMED: tuple[type[Any], ...] = (type, np.dtype)
# To a strict checker type(x) of a value typed Any is unknown; this one is not.
_class_of: Callable[[object], type[object]] = type


_IN_MEMORY = (
    "write f.explain(x) to see what a call on Dask arrays does, or pass one chunk, "
    "x.blocks[0].compute(): expected arrays in memory, found a Dask array"
)


def is_chunked(cls: type) -> bool:
    """Tell whether ``cls`` is Dask's array; nothing is imported to find out.

    >>> is_chunked(np.ndarray)
    False
    """
    known = sys.modules.get("dask.array.core")
    return known is not None and issubclass(cls, getattr(known, "Array", ()))


class Arguments:
    """One call: what its leaves are, and keys that tell calls apart.

    ``apart`` are leaves and structure, where these are known already.
    ``key`` holds everything a plan depends on but the values of run-time numbers;
    ``structure`` what a trace depends on; ``nest`` is all of it as it was passed. What
    no kernel can read where it lies is copied: ``copied`` are the originals, ``read``
    adds those of what is captured.
    """

    __slots__ = (
        *("arrays", "copied", "flat", "key", "kinds", "nest", "numbers", "pointers"),
        *("_captured", "streams", "tree"),
    )

    def __init__(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        function: Callable[..., Any],
        apart: tuple[list[Any], trees.Tree] | None = None,
    ) -> None:
        self.nest = args, kwargs
        self.flat, self.tree = apart or trees.flatten((args, dict(kwargs)))
        self.arrays: dict[int, Any] = {}
        self.pointers: dict[int, int] = {}
        self.numbers: dict[int, Any] = {}
        self.copied: Mapping[int, Any] = _NONE
        self._captured = _NONE
        self.streams: tuple[Any, ...] = ()
        keys: list[Hashable] = [config.number(), self.tree]
        slot = 0
        for place, item in enumerate(self.flat):
            cls = _class_of(item)
            if cls in _NUMBERS:
                self.numbers[slot] = item
                keys.append(cls)
                slot += 1
            elif (library := library_of(cls)) is not None:
                array = readable(library, item)
                if array is not item:
                    self.copied = {**self.copied, slot: item}
                    self.flat[place] = array
                self.arrays[slot] = array
                self.pointers[slot], key = _address_and_key(library, array)
                keys.append(key)
                slot += 1
            elif isinstance(item, _SCALARS):
                self.numbers[slot] = item
                keys.append(cls)
                slot += 1
            else:
                if is_chunked(cls):
                    raise ChunkedError(_IN_MEMORY)
                if cls not in trees.NODES and labelled.learn(cls):
                    self.__init__(args, kwargs, function)
                    return
                static = None if isinstance(item, Spec) else static_key(item)
                if static is None:
                    raise _no_constant(self, function, item)
                keys.append(static)
        self.key = tuple(keys)
        self.kinds = slot

    @property
    def copies(self) -> int:
        """The number of arrays that were copied for this call."""
        return len(self.copied) + len(self._captured)

    @property
    def is_as_given(self) -> bool:
        """Whether all arrays are used where they lie, and none is behind labels."""
        return not self.copies and not trees.has_labels(self.tree)

    def read(
        self, captured: Captured, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...] | None:
        """Return what a trace captures, or None; what has to be copied, as copies."""
        has_streams = bool(captured.streams.places)
        streams = captured.read_streams(args, kwargs) if has_streams else ()
        if streams is None:
            return None
        held = captured.read(args, kwargs)
        if held is not None:
            self.streams = streams
        if not held:
            return held
        found = tuple(map(_readable, held))
        triples = zip(captured.arrays, held, found, strict=True)
        self._captured = {str(c.origin): a for c, a, b in triples if a is not b}
        return found

    def copies_told(self, names: Mapping[int, str]) -> tuple[str, ...]:
        """Say which arrays are copied for each such call, and why."""
        found = {names[slot]: array for slot, array in self.copied.items()}
        found |= self._captured
        return tuple(
            f"{n} is copied at each call: {fault(a)}" for n, a in found.items()
        )

    @property
    def structure(self) -> tuple[Hashable, ...]:
        """What a trace depends on: of arrays, all but sizes and how they lie."""
        kinds: list[Hashable] = [self.tree]
        slot = 0
        for item, key in zip(self.flat, self.key[2:], strict=True):
            taken = self.arrays if slot in self.arrays else self.numbers
            if slot not in taken or taken[slot] is not item:
                kinds.append(key)
                continue
            is_array = taken is self.arrays
            library = library_of(_class_of(item))
            if is_array:
                # What a trace is told of a tensor, and a kernel asks of all arrays.
                where = item.device if library is Library.TORCH else None
                key = library, item.dtype, len(item.shape), where
            kinds.append(key)
            slot += 1
        return tuple(kinds)


def _readable(array: Any) -> Any:
    """Return what a kernel can read; what is of no library is refused by its name."""
    library = library_of(_class_of(array))
    return array if library is None else readable(library, array)


def _address_and_key(library: Library, array: Any) -> tuple[int, Hashable]:
    try:
        return address_and_key(library, array)
    except Exception:
        describe(array, "an argument")  # says what is wrong with it, if it knows
        raise


class _Itself(weakref.ref[Any]):
    """A weak reference to an object that has no hash: equal is that object alone."""

    __slots__ = ("_hash",)
    _hash: int

    def __new__(cls, item: Any) -> Self:
        found = super().__new__(cls, item)
        found._hash = id(item)
        return found

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        item = self()
        return isinstance(other, _Itself) and item is not None and item is other()


def _has_weak(kind: type) -> bool:
    return getattr(kind, "__weakrefoffset__", 0) != 0


def static_key(item: Any) -> Hashable | None:
    """Return a key for an argument that is a constant of the trace, if it can be one.

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
    if is_drawn_from(item):
        return kind, "a stream"  # one trace serves them all
    if array_in(kind) is not None:
        return None
    try:
        hash(item)
    except (TypeError, ValueError):
        # Of ``@dataclass`` alone, which compares by what may change: known by itself.
        is_object = is_dataclass(kind) and not issubclass(kind, _HOLDING)
        return (kind, _Itself(item)) if is_object and _has_weak(kind) else None
    try:
        return kind, weakref.ref(item)
    except TypeError:
        return kind, item


def _no_constant(
    arguments: Arguments, function: Callable[..., Any], item: object
) -> ArgumentError:
    names = leaf_names(function, arguments.tree)
    places = (n for n, x in zip(names, arguments.flat, strict=True) if x is item)
    kind = _class_of(item)
    if isinstance(item, Spec):
        where = "lower, warmup, kernels and explain"
        remedy = f"pass an array, for which a Spec stands in {where} only"
    elif (instead := array_in(kind)) is not None:
        remedy = f"pass {instead}"
    elif kind in (set, bytearray):
        remedy = "pass tuple(sorted(x))"
    elif issubclass(kind, (dict, list)):
        plain = "dict" if issubclass(kind, dict) else "list"
        remedy = f"pass {plain}(x), as of its kinds only {plain} itself is taken"
    else:
        remedy = (
            "pass its arrays and numbers, or make it hashable: of a dataclass, "
            "@dataclass(eq=False), whose attributes are then followed"
        )
    message = (
        f"argument {next(places)} of {_title(function)}: {remedy}; expected an array, "
        "a number or a hashable constant (alone, or in tuples, lists and dicts), found "
        f"{kind.__qualname__}"
    )
    return ArgumentError(message)


def _foreign_array(what: str, item: object) -> ArgumentError:
    kind = _class_of(item)
    on_gpu = hasattr(item, "__cuda_array_interface__")
    library = "cupy" if on_gpu else "numpy"
    message = (
        f"{what}: pass {library}.asarray(x), which shares the memory where it can; "
        f"expected an array of NumPy, PyTorch, CuPy, Numba or JAX, found "
        f"{kind.__module__}.{kind.__qualname__}"
    )
    return ArgumentError(message)


def _title(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "function")


class Described:
    """The arrays of one call described, with where the call runs.

    ``names`` say how a caller would write the argument in each slot.
    """

    def __init__(self, arguments: Arguments, function: Callable[..., Any]) -> None:
        self.arguments = arguments
        self.arrays: dict[int, Descriptor] = {}
        self.numbers = dict(arguments.numbers)
        self.names = self._name_slots(arguments, function)
        title = _title(function)
        for slot, array in arguments.arrays.items():
            what = f"argument {self.names[slot]} of {title}"
            self.arrays[slot] = describe(array, what)
        self.lifted = self._lift_scalars(arguments)
        # Before the trace, where arrays that are apart would be the lesser trouble.
        common_place(title, self.named(self.arrays))

    def named(self, arrays: Mapping[int, Descriptor]) -> dict[str, Descriptor]:
        """Return ``arrays`` by the names of their slots."""
        return {self.names[slot]: d for slot, d in arrays.items()}

    def _name_slots(
        self, arguments: Arguments, function: Callable[..., Any]
    ) -> dict[int, str]:
        names: dict[int, str] = {}
        pairs = zip(leaf_names(function, arguments.tree), arguments.flat, strict=True)
        for name, item in pairs:
            slot = len(names)
            taken = arguments.arrays if slot in arguments.arrays else arguments.numbers
            if slot in taken and taken[slot] is item:
                names[slot] = name
            elif shows_memory(item):
                raise _foreign_array(f"argument {name} of {_title(function)}", item)
        return names

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

    def call(self, arguments: Arguments, dialect: str | None = None) -> TracedCall:
        """Return the call as a tracer wants it, where all arrays speak ``dialect``."""
        leaves: list[Leaf] = []
        slot = 0
        for item in arguments.flat:
            leaf: Leaf
            if slot in self.arrays and item is arguments.arrays.get(slot):
                d = self.arrays[slot]
                leaf = _array_leaf(slot, d, dialect)
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


def _array_leaf(slot: int, d: Descriptor, dialect: str | None) -> ArrayLeaf:
    # What a Spec stands for has no class and no dialect where its library is absent.
    if dialect == "numpy" or not is_imported(d.library):
        return ArrayLeaf(slot, d.dtype, d.shape)
    where = sys.modules["torch"].device(str(d.device)) if _is_tensor(d) else "cpu"
    return ArrayLeaf(slot, d.dtype, d.shape, array_class(d.library), where)


def _is_tensor(d: Descriptor) -> bool:
    return d.library is Library.TORCH


def _kind_of(cls: type[object]) -> type[int] | type[float] | DType:
    if cls is int or cls is float:
        return cls
    return as_dtype(cls)


def host_number(array: Any, descriptor: Descriptor) -> Any:
    """Return a 0-d CPU array as a NumPy scalar of its dtype."""
    return descriptor.dtype.numpy.type(array.item())


def same_number(a: Any, b: Any) -> bool:
    """Tell whether two numbers are alike: NaN equals itself, -0.0 is not 0.0."""
    return type(a) is type(b) and repr(a) == repr(b)
