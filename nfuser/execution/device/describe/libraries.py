# SPDX-License-Identifier: Apache-2.0
"""The array libraries, and what nfuser needs to know about one of their arrays.

No library is imported to find out: a type tells by the module it was defined in, and a
library whose array somebody holds is already in ``sys.modules``.
"""

from __future__ import annotations

import sys
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ir.base import value
from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType


class Library(Enum):
    """Who made an array, and whose allocator makes the outputs."""

    NUMPY = "numpy"
    TORCH = "torch"
    CUPY = "cupy"
    NUMBA = "numba"
    JAX = "jax"
    PHANTOM = "none"  # of arrays that only stand for others

    # Each call asks by library for each of its arrays; Enum's own takes the name.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.value


@value
class Device:
    """Where memory lies: ``cpu``, or the CUDA device of an ordinal."""

    kind: str
    index: int = 0

    @property
    def is_cuda(self) -> bool:
        """Whether this is a CUDA device."""
        return self.kind == "cuda"

    def __str__(self) -> str:
        return f"cuda:{self.index}" if self.is_cuda else self.kind


CPU = Device("cpu")


@value
class Descriptor:
    """An array as a kernel sees it; strides count elements, not bytes."""

    library: Library
    device: Device
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    pointer: int
    writable: bool

    @property
    def span(self) -> tuple[int, int]:
        """The addresses between which the elements lie; they are equal if it has none.

        >>> from nfuser.compiler.dtypes import DType
        >>> Descriptor(Library.NUMPY, CPU, DType.F32, (2, 3), (-3, 1), 1012, True).span
        (1000, 1024)
        """
        if 0 in self.shape:
            return 0, 0
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        item = self.dtype.itemsize
        return self.pointer + item * low, self.pointer + item * (high + 1)

    def meets(self, other: Descriptor) -> bool:
        """Tell whether the two may share memory."""
        (a, b), (c, d) = self.span, other.span
        return a < d and c < b

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"{self.library.value} {self.dtype}[{sizes}] on {self.device}"


_ARRAY_CLASSES = {
    ("torch", "Tensor"): Library.TORCH,
    ("cupy", "ndarray"): Library.CUPY,
    ("numba", "DeviceNDArrayBase"): Library.NUMBA,
    ("numba", "DeviceNDArray"): Library.NUMBA,
    ("jax", "ArrayImpl"): Library.JAX,
    ("jaxlib", "ArrayImpl"): Library.JAX,
    ("jax", "Tracer"): Library.JAX,
    ("nfuser", "Phantom"): Library.PHANTOM,
}
_known_types: dict[type, Library | None] = {}


def library_of(cls: type) -> Library | None:
    """Return the library whose array ``cls`` is, or None for any other type.

    >>> library_of(np.ndarray), library_of(list)
    (numpy, None)
    """
    try:
        return _known_types[cls]
    except KeyError:
        found = _known_types[cls] = _classify(cls)
        return found


def _classify(cls: type) -> Library | None:
    if issubclass(cls, np.ndarray):
        return Library.NUMPY
    for base in cls.__mro__:
        root = base.__module__.partition(".")[0]
        if found := _ARRAY_CLASSES.get((root, base.__name__)):
            return found
    return None


def is_array(x: object) -> bool:
    """Tell whether ``x`` is an array of a library that nfuser knows, fit or not.

    NumPy's scalars are no arrays: they are numbers with a dtype.

    >>> is_array(np.ones(3)), is_array(np.float32(1)), is_array([1.0])
    (True, False, False)
    """
    return library_of(type(x)) is not None


def array_class(library: Library) -> type:
    """Return the class by which programs ask for the arrays of ``library``.

    >>> array_class(Library.NUMPY)
    <class 'numpy.ndarray'>
    """
    if library is Library.TORCH:
        return module(library).Tensor
    if library in (Library.NUMPY, Library.CUPY):
        return module(library).ndarray
    return object


def _module_name(library: Library) -> str:
    return "numba.cuda" if library is Library.NUMBA else library.value


def is_imported(library: Library) -> bool:
    """Tell whether there can be arrays of ``library``: its module is there."""
    return _module_name(library) in sys.modules


def module(library: Library) -> Any:
    """Return the module of ``library``; importing it was the caller's choice."""
    name = _module_name(library)
    found = sys.modules.get(name)
    if found is None:
        message = (
            f"{name} is not imported, so no array of it can be made; import {name}"
        )
        raise ArgumentError(message)
    return found


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Tell whether the strides are those of a C-ordered array of this shape.

    >>> is_dense((2, 3), (3, 1)), is_dense((2, 3), (1, 2)), is_dense((1, 3), (99, 1))
    (True, False, True)
    """
    if 0 in shape:
        return True
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a C-ordered array.

    >>> c_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))
