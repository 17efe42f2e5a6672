# SPDX-License-Identifier: Apache-2.0
"""Compile one primitive into a loop and run it over NumPy arrays."""

# Numba, mpmath and SciPy carry few types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from nfuser.codegen.numba import kernel_target
from nfuser.codegen.objects.load_object import load_object
from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.codegen.primitives import cpu

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Loop:
    """Machine code of a kernel ``(n, pointers...)`` and its optimised LLVM IR."""

    address: int
    text: str
    library: Any
    owner: Any

    def __call__(self, count: int, *arrays: Array) -> None:
        """Run over the arrays' elements."""
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        kinds = [ctypes.c_void_p] * 2 + [ctypes.c_ssize_t]
        kinds += [ctypes.c_void_p] * len(pointers)
        function = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(self.address)
        slot = ctypes.c_void_p()
        status = function(ctypes.byref(slot), ctypes.byref(slot), count, *pointers)
        assert status == 0


def storage(dtype: Any) -> Any:
    """Return the Numba type of an element in memory."""
    dtype = np.dtype(dtype)
    return types.uint8 if dtype == np.bool_ else from_dtype(dtype)


def compile_kernel(kernel: Callable[..., None], *dtypes: Any) -> Loop:
    """Compile ``kernel(n, *pointers)`` as generated kernels are."""
    signature = (types.intp, *[types.CPointer(storage(d)) for d in dtypes])
    compiled = kernel_target.compile_kernel(kernel, signature)
    name = compiled.fndesc.llvm_func_name
    library = compiled.library
    address, owner = load_object(MachineCode(library.emit(), name))
    return Loop(address, str(library._final_module), library, owner)


@cache
def unary_loop(name: str, source: str, target: str) -> Loop:
    """Compile a loop of a one-operand primitive."""
    apply = getattr(cpu, name)
    read = cpu.load_bool if source == "bool" else cpu.load
    write = cpu.store_bool if target == "bool" else cpu.store

    def kernel(n, x, out):
        for i in range(n):
            write(out, i, apply(read(x, i)))

    return compile_kernel(kernel, source, target)


@cache
def binary_loop(name: str, source: str, target: str) -> Loop:
    """Compile a loop of a two-operand primitive."""
    apply = getattr(cpu, name)
    read = cpu.load_bool if source == "bool" else cpu.load
    write = cpu.store_bool if target == "bool" else cpu.store

    def kernel(n, x, y, out):
        for i in range(n):
            write(out, i, apply(read(x, i), read(y, i)))

    return compile_kernel(kernel, source, source, target)


def apply(name: str, *operands: Array, to: Any = None) -> Array:
    """Return the primitive's results over arrays of one dtype."""
    first = np.ascontiguousarray(operands[0])
    target = np.dtype(to or first.dtype)
    out = np.empty(first.shape, target)
    make = unary_loop if len(operands) == 1 else binary_loop
    loop = make(name, first.dtype.name, target.name)
    loop(first.size, *[np.ascontiguousarray(o) for o in operands], out)
    return out
