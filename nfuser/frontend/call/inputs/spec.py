# SPDX-License-Identifier: Apache-2.0
"""What an array is without its elements: enough to compile for it."""

from __future__ import annotations

from typing import Any

from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.ir.base import value
from nfuser.compiler.trace.call import tree as trees
from nfuser.errors import ArgumentError, BackendError
from nfuser.execution.device.allocate import empty
from nfuser.execution.device.cuda.driver import why_missing
from nfuser.execution.device.describe.libraries import (
    Device,
    Library,
    c_strides,
    library_of,
)
from nfuser.execution.device.phantom import Phantom


@value
class Spec:
    """The shape, dtype, library and device of an array, in place of the array.

    ``library`` is numpy, torch, cupy, numba or jax, ``device`` is cpu or cuda:0, which
    need not be there for ``explain``, ``lower`` and ``kernels`` to show kernels. Where
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
        """Return such an array, in C order, elements undefined.

        Where there is no CUDA device, what stands for an array on one has no elements.
        """
        kind, _, index = self.device.partition(":")
        known = [one.value for one in Library if one is not Library.PHANTOM]
        if self.library not in known or kind not in ("cpu", "cuda"):
            message = (
                f"expected a library among {', '.join(known)} and a device like cpu "
                f"or cuda:0, found {self.library!r} and {self.device!r}"
            )
            raise ArgumentError(message)
        device = Device(kind, int(index or 0))
        shape, dtype = tuple(self.shape), as_dtype(self.dtype)
        if device.is_cuda and why_missing() is not None:
            return Phantom(Library(self.library), device, shape, dtype)
        return empty(Library(self.library), device, shape, c_strides(shape), dtype)


def with_arrays(nest: Any) -> Any:
    """Return ``nest`` with an array in place of each spec."""
    leaves, tree = trees.flatten(nest)
    return trees.unflatten(tree, [_array(leaf) for leaf in leaves])


def has_phantoms(nest: Any) -> bool:
    """Tell whether ``nest`` holds what stands for an array on a device that lacks."""
    return any(isinstance(leaf, Phantom) for leaf in trees.flatten(nest)[0])


def no_device(name: str) -> BackendError:
    """Return the error for kernels of a device that this machine lacks."""
    message = (
        f"compile {name} on a machine with a CUDA device: expected one for a Spec on "
        f"cuda, found none ({why_missing()}); lower, explain and kernels show its "
        "kernels here"
    )
    return BackendError(message)


def _array(leaf: Any) -> Any:
    if isinstance(leaf, Spec):
        return leaf.empty()
    is_known = library_of(leaf.__class__) is not None or hasattr(leaf, "__array__")
    if is_known or isinstance(leaf, type):
        return leaf
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return Spec(tuple(leaf.shape), leaf.dtype).empty()
    return leaf
