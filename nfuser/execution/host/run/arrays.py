# SPDX-License-Identifier: Apache-2.0
"""What a host program asks of an array library: operations and views.

Each operation takes ``out``, which may be None but for those that sort. Index
expressions make views in all libraries, so what they have in common is a base class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.execution.device.describe.libraries import Device, Library, module

if TYPE_CHECKING:
    from collections.abc import Sequence


class Arrays:
    """NumPy and CuPy, which has NumPy's functions.

    Work on the CPU is done when a call returns, so it has no streams.
    """

    def __init__(self, library: Library, device: Device) -> None:
        self.library = library
        self.device = device
        self.module: Any = np if library is Library.NUMPY else module(library)

    # -- operations ----------------------------------------------------------

    def own(self, array: Any) -> Any:
        """Return an array of the call as one of the library, in the same memory."""
        return self.module.asarray(array)

    def is_dense(self, array: Any) -> bool:
        """Tell whether elements lie one after another in C order."""
        return array.flags.c_contiguous

    def is_same(self, a: Any, b: Any) -> bool:
        """Tell whether two arrays of one shape are one in memory."""
        return a.strides == b.strides and self._address(a) == self._address(b)

    def _address(self, array: Any) -> int:
        return array.ctypes.data

    def records(self, read: Sequence[Any]) -> bool:
        """Tell whether what is made of arrays remembers how, for gradients."""
        del read
        return False

    def joined(self, real: Any, imag: Any, dtype: DType) -> Any:
        """Return the complex array of two parts."""
        whole = self.module.empty(real.shape, dtype.numpy)
        whole.real, whole.imag = real, imag
        return whole

    def number(self, value: bool | float, dtype: DType) -> Any:
        """Return an array without axes."""
        return self.module.asarray(np.full((), value, dtype.numpy))

    def copy(self, source: Any, out: Any) -> Any:
        """Copy elements."""
        if out is None:
            return source.copy()
        out[...] = source
        return out

    def compute(
        self, name: str, operands: Sequence[Any], types: Sequence[DType], out: Any
    ) -> Any:
        """Apply an elementwise function; ``types`` are what NumPy computes in."""
        made = getattr(self.module, name)(*operands, out=out)
        return self.module.asarray(made) if out is None else out

    def reduce(
        self, name: str, source: Any, axes: tuple[int, ...], dtype: DType, out: Any
    ) -> Any:
        """Fold axes."""
        made = getattr(self.module, name)(source, axis=axes, out=out)
        return self.module.asarray(made) if out is None else out

    def matmul(self, lhs: Any, rhs: Any, dtype: DType, out: Any) -> Any:
        """Multiply matrices; NumPy is slow with 16-bit floats, and adds in 32 bits.

        CuPy multiplies stacks of matrices of all dtypes but bfloat16, and gives no f32.
        """
        kind = lhs.dtype
        halves = kind == rhs.dtype and as_dtype(kind).is_half
        if halves and self._widens(lhs, rhs):
            lhs, rhs = lhs.astype(np.float32), rhs.astype(np.float32)
        if halves and lhs.dtype != dtype.numpy:
            made = self.module.asarray(self.module.matmul(lhs, rhs))
            made = made.astype(dtype.numpy)
            return made if out is None else self.copy(made, out)
        made = self.module.matmul(lhs, rhs, **({} if out is None else {"out": out}))
        return self.module.asarray(made) if out is None else out

    def _widens(self, lhs: Any, rhs: Any) -> bool:
        """Tell whether matrices of 16-bit floats are multiplied as f32."""
        is_stack = max(lhs.ndim, rhs.ndim) > 2
        is_refused = is_stack and as_dtype(lhs.dtype) is DType.BF16
        return self.library is Library.NUMPY or is_refused

    def sort(self, source: Any, axis: int, out: Any, kth: Sequence[int] = ()) -> None:
        """Write what ``source`` holds into ``out``, in order along ``axis``.

        Where there are places in ``kth``, a library may leave all others anywhere.
        """
        held = self.module.asarray(out)
        held[...] = source
        if kth:
            held.partition(kth, axis)
        else:
            held.sort(axis)

    def argsort(
        self,
        source: Any,
        axis: int,
        stable: bool,
        out: Any,
        kth: Sequence[int] = (),
    ) -> None:
        """Write the places of the elements into ``out``, in their order."""
        held = self.module.asarray(out)
        if kth:
            held[...] = self.module.argpartition(source, kth, axis)
        else:
            kind = "stable" if stable else None
            held[...] = self.module.argsort(source, axis, kind=kind)

    # -- views ---------------------------------------------------------------

    def index(self, source: Any, key: tuple[Any, ...]) -> Any:
        """Return the view that integers and slices select."""
        return source[(*key, ...)]

    def permute(self, source: Any, order: tuple[int, ...]) -> Any:
        """Return a view with other axes."""
        return source.transpose(order)

    def reshape(self, source: Any, shape: tuple[int, ...]) -> Any:
        """Return a view where strides can say so, else a copy."""
        return source.reshape(shape)

    # -- streams, of a device ------------------------------------------------

    def mark(self) -> Any:
        """Return an event whose time is kept; None where nothing runs later."""
        return None
