# SPDX-License-Identifier: Apache-2.0
"""What all native calls share: which objects and functions lie where in this process.

Native code reads fields of objects at fixed offsets. Before the first use each offset
is compared with what the public interface says; where one differs, as in free-threaded
builds and on other Pythons, there are no native calls, and Python does the same.
"""

# ctypes and llvmlite carry few types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from importlib import import_module
from types import MethodDescriptorType
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.base.system as system
import nfuser.config as config
from nfuser.base.locks import ForkSafeLock
from nfuser.codegen.numba.compiler_lock import undisturbed
from nfuser.compiler.trace.tracer import VARIABLE
from nfuser.execution.device.cuda import ordering
from nfuser.execution.device.describe.libraries import Library, module
from nfuser.execution.device.native import layout
from nfuser.execution.device.native.library import library
from nfuser.execution.device.native.owned import Owned, for_ever, new_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_NEW_FROM_DESCRIPTION, _RETURN = 94, 76  # places in NumPy's table of C functions
_DLPACK = b"dlpack_exchange_api"
_TO_DLPACK, _STREAM = 5, 6  # places in DLPack's, after its version and a pointer
_FASTCALL_KEYWORDS = 0x82
_INSTALLING = ForkSafeLock()


class MethodDefinition(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Shared:
    """The compiled entry, and the table of what it needs to know.

    It is there for ever, and so is all that the table names: a finalizer may call when
    modules are gone.
    """

    def __init__(self) -> None:
        self._library = library()
        self._table = self._library.address("table")
        self._known: set[Library] = set()
        take = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
        self._read: Callable[[int, int], int] = take(self._library.address("read"))
        self._mixed: Callable[[int, int], int] = take(self._library.address("mixed"))
        numpy_functions = _capsule(_numpy_table(), None)
        at = layout
        for place, item in (
            (at.NONE, None),
            (at.TRUE, True),
            (at.TRACER, VARIABLE),
            (at.FLOAT, float),
            (at.INT, int),
            (at.TUPLE, tuple),
            (at.LIST, list),
            (at.DICT, dict),
            (at.NDARRAY, np.ndarray),
            (at.MEMMAP, np.memmap),
            (at.REQUIRES_GRAD, "requires_grad"),
            (at.IS_NEG, "is_neg"),
            (at.IS_CONJ, "is_conj"),
            (at.CUPY_DATA, "data"),
            (at.CUPY_POINTER, "ptr"),
            (at.CUPY_DEVICE, "device_id"),
            (at.DTYPE, "dtype"),
            (at.SHAPE, "shape"),
            (at.STRIDES, "strides"),
        ):
            self._set_object(place, item)
        self.scalars = _scalars_as_expected()
        for k, kind in enumerate(self.scalars):
            place = at.SCALARS + at.SCALAR_BYTES * k
            bits = 8 * kind(0).nbytes
            self._set_object(place, kind)
            self._set(place + 8, bits)
            self._set(place + 16, _has_sign(kind))
        self._set(at.NEW_ARRAY, _word(numpy_functions + 8 * _NEW_FROM_DESCRIPTION))
        self._set(at.RETURN_ARRAY, _word(numpy_functions + 8 * _RETURN))
        for place, words in ((at.CONFIG, config.words()), (at.RECORDER, ordering.HOOK)):
            for_ever(words)
            self._set(place, words.buffer_info()[0])
        self._set_object(at.OWNED, Owned)
        mark = new_words([0])
        size = Owned.__basicsize__ + Owned.__itemsize__
        self._set(at.OWNED_WORDS, _place_of(mark, Owned(mark), size))

    def install(self, owner: Any, slot: str, *, bound: bool = False) -> None:
        """Give ``owner`` a native ``__call__``; attribute ``slot`` holds the state.

        What ``__call__`` is now serves the calls that native code does not. Threads may
        come here at once: the second would find what the first has made, which would
        then serve itself.
        """
        with _INSTALLING:
            if not isinstance(vars(owner).get("__call__"), MethodDescriptorType):
                self._install(owner, slot, bound=bound)

    def _install(self, owner: Any, slot: str, *, bound: bool) -> None:
        sample: Any = object.__new__(owner)
        mark = object()
        setattr(sample, slot, mark)
        place = _place_of(mark, sample, owner.__basicsize__)
        self._set(layout.BOUND_SLOT if bound else layout.SLOT, place)
        self._set_object(layout.BOUND_SLOW if bound else layout.SLOW, owner.__call__)
        name = "call_bound" if bound else "call"
        definition = MethodDefinition(
            b"__call__",
            self._library.address(name),
            _FASTCALL_KEYWORDS,
            b"Call the fused function.",
        )
        make = ctypes.pythonapi.PyDescr_NewMethod
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.py_object, ctypes.c_void_p]
        for_ever(definition)
        setattr(owner, "__call__", make(owner, ctypes.addressof(definition)))  # noqa: B010 (a checker knows the one it has)

    def read(self, items: Sequence[Any]) -> Any:
        """Return the frame of a call as rows of words, or None where it has none."""
        frame = np.zeros((max(len(items), 1), layout.FRAME_WORDS), np.int64)
        for row, item in zip(frame, items, strict=False):
            if self._read(id(item), row.ctypes.data):
                return None
        return frame

    def mixed(self, frame: Any, count: int) -> int:
        """Return the number by which records are found."""
        return self._mixed(frame.ctypes.data, count)

    def learn(self, libraries: Iterable[Library]) -> None:
        """Make arrays of these libraries known, where they let themselves be read."""
        for found in libraries:
            if found not in self._known:
                self._known.add(found)
                if teach := _TEACH.get(found):
                    teach(self)

    def learn_torch(self) -> None:
        """Find how tensors are read: through DLPack's table of C functions."""
        torch = module(Library.TORCH)
        capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
        if capsule is None:
            return
        functions = _capsule(capsule, _DLPACK)
        if ctypes.c_uint32.from_address(functions).value != 1:
            return  # another version may lay out tensors in another way
        self._set(layout.READ_TENSOR, _word(functions + 8 * _TO_DLPACK))
        self._set(layout.TORCH_STREAM, _word(functions + 8 * _STREAM))
        self._set_object(layout.GRAD_MODE, torch.is_grad_enabled)
        self._set_object(layout.FORWARD_MODE, torch.autograd.forward_ad)
        self._set_object(layout.DUAL_LEVEL, "_current_level")
        self._set_object(layout.NO_LEVEL, -1)  # Python has one object for it
        self._set_object(layout.PARAMETER, torch.nn.Parameter)
        self._set_object(layout.TENSOR, torch.Tensor)

    def learn_cupy(self) -> None:
        """Make CuPy's arrays known."""
        self._set_object(layout.CUPY, module(Library.CUPY).ndarray)

    def learn_context(self) -> None:
        """Make the driver's current context known."""
        from nfuser.execution.device.cuda.driver import function_address

        self._set(layout.CONTEXT, function_address("cuCtxGetCurrent"))

    def _set(self, place: int, number: int) -> None:
        ctypes.c_int64.from_address(self._table + place).value = number

    def _set_object(self, place: int, item: object) -> None:
        self._set(place, for_ever(item))


_TEACH: dict[Library, Callable[[Shared], None]] = {
    Library.TORCH: Shared.learn_torch,
    Library.CUPY: Shared.learn_cupy,
}


@cache
def shared() -> Shared | None:
    """Return what native calls share, or None where there can be none."""
    if not system.has("native_calls") or not is_as_expected():
        return None
    return undisturbed(Shared)


def _has_sign(kind: type[Any]) -> bool:
    """Tell whether a value is read as an integer with a sign; doubles are as bits."""
    return issubclass(kind, np.signedinteger) or kind is np.float64


def _scalars_as_expected() -> tuple[type[Any], ...]:
    """Return the types of scalars whose values lie where they are looked for."""
    kinds = dict.fromkeys(np.dtype(code).type for code in "?bBhHiIlLqQfd")
    return tuple(kind for kind in kinds if _is_value(kind(1)) and _is_value(kind(0)))


def _is_value(scalar: Any) -> bool:
    found = ctypes.string_at(id(scalar) + layout.NUMBER, scalar.nbytes)
    return found == scalar.tobytes()


def is_as_expected() -> bool:
    """Tell whether objects of this process are laid out as native code takes them."""
    return (
        object.__basicsize__ == 16
        and _objects_are_as_expected()
        and _arrays_are_as_expected()
    )


def _objects_are_as_expected() -> bool:
    number = 2.5
    owner = frozenset({number})
    reference = weakref.ref(owner)
    return (
        _word(id(number) + layout.OBJECT_TYPE) == id(float)
        and ctypes.c_double.from_address(id(number) + layout.NUMBER).value == number
        and _word(id(reference) + layout.REFERENT) == id(owner)
    )


def _arrays_are_as_expected() -> bool:
    whole = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    fixed = whole[:, ::-2].T
    fixed.flags.writeable = False
    odd = np.zeros(9, np.uint8)[1:].view(np.int64)
    return all(_is_read_right(a) for a in (whole, fixed, odd, np.float32(3) + whole))


def _is_read_right(array: Any) -> bool:
    at = id(array)
    rank = ctypes.c_int32.from_address(at + layout.NUMPY_NDIM).value
    if rank != array.ndim:
        return False
    dims, strides = (
        tuple(_word(_word(at + place) + 8 * k) for k in range(rank))
        for place in (layout.NUMPY_DIMS, layout.NUMPY_STRIDES)
    )
    found = ctypes.c_int32.from_address(at + layout.NUMPY_FLAGS).value
    flags = 0x100 * array.flags.aligned + 0x400 * array.flags.writeable
    return (
        _word(at + layout.OBJECT_TYPE) == id(type(array))
        and _word(at + layout.NUMPY_DATA) == array.__array_interface__["data"][0]
        and dims == array.shape
        and strides == array.strides
        and _word(at + layout.NUMPY_DTYPE) == id(array.dtype)
        and found & layout.NUMPY_CHECKED == flags
    )


def _place_of(item: object, owner: object, size: int) -> int:
    """Return how far from the beginning of ``owner`` its reference to ``item`` is."""
    (place,) = (k for k in range(16, size, 8) if _word(id(owner) + k) == id(item))
    return place


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _numpy_table() -> Any:
    return import_module("numpy._core._multiarray_umath")._ARRAY_API


def _capsule(capsule: Any, name: bytes | None) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)
