# SPDX-License-Identifier: Apache-2.0
"""What an array is without its elements: enough to compile for it."""

from __future__ import annotations

from typing import Any

from nfuser.device.allocate import empty
from nfuser.device.libraries import Device, Library, c_strides, library_of
from nfuser.dtypes import as_dtype
from nfuser.errors import ArgumentError
from nfuser.ir.base import value
from nfuser.trace import tree as trees


@value
class Spec:
    """The shape, dtype, library and device of an array, in place of the array.

    ``library`` is numpy, torch, cupy, numba or jax, ``device`` is cpu or cuda:0. Where
    a fused function is compiled without being called, ``jax.ShapeDtypeStruct`` and
    whatever else has a shape and a dtype stand for NumPy arrays.

    >>> Spec((2, 3), "bfloat16").empty().shape
    (2, 3)
    """

    shape: tuple[int, ...]
    dtype: Any = "float32"
    library: str = "numpy"
    device: str = "cpu"

    def empty(self) -> Any:
        """Return such an array, in C order, elements undefined."""
        kind, _, index = self.device.partition(":")
        known = [library.value for library in Library]
        if self.library not in known or kind not in ("cpu", "cuda"):
            message = (
                f"expected a library among {', '.join(known)} and a device like cpu "
                f"or cuda:0, found {self.library!r} and {self.device!r}"
            )
            raise ArgumentError(message)
        device = Device(kind, int(index or 0))
        shape, dtype = tuple(self.shape), as_dtype(self.dtype)
        return empty(Library(self.library), device, shape, c_strides(shape), dtype)


def with_arrays(nest: Any) -> Any:
    """Return ``nest`` with an array in place of each spec."""
    leaves, tree = trees.flatten(nest)
    return trees.unflatten(tree, [_array(leaf) for leaf in leaves])


def _array(leaf: Any) -> Any:
    if isinstance(leaf, Spec):
        return leaf.empty()
    is_known = library_of(leaf.__class__) is not None or hasattr(leaf, "__array__")
    if is_known or isinstance(leaf, type):
        return leaf
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return Spec(tuple(leaf.shape), leaf.dtype).empty()
    return leaf
