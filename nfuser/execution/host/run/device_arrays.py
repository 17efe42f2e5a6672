# SPDX-License-Identifier: Apache-2.0
"""What CuPy and PyTorch do for a host program: operations, views, streams."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.dtypes.tensors import as_tensor
from nfuser.errors import UnsupportedError
from nfuser.execution.device.describe.libraries import Device, Library, module
from nfuser.execution.host.run.arrays import Arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.dtypes import DType

_SIDES: dict[tuple[Library, Device, int], Any] = {}  # streams of the process


class CupyArrays(Arrays):
    """CuPy's arrays, on CUDA streams."""

    def _address(self, array: Any) -> int:
        return array.data.ptr

    def sort(self, source: Any, axis: int, out: Any, kth: Sequence[int] = ()) -> None:
        """Sort a copy, since CuPy sorts none in place that is not in C order."""
        del kth  # all places are as those few
        out[...] = self.module.sort(source, axis)

    def current(self) -> Any:
        """Return CuPy's current stream."""
        return self.module.cuda.get_current_stream(self.device.index)

    def side(self, number: int) -> Any:
        """Return a stream that does not wait for the default one."""
        key = self.library, self.device, number
        if key not in _SIDES:
            _SIDES[key] = self.module.cuda.Stream(non_blocking=True)
        return _SIDES[key]

    def use(self, stream: Any) -> None:
        """Make ``stream`` CuPy's current one."""
        stream.use()

    def join(self, stream: Any) -> None:
        """Wait for a stream on the device."""
        self.current().wait_event(stream.record())

    def lend(self, array: Any) -> Any:
        """Copy: CuPy gives memory that is let go to the stream that made it."""
        return array.copy()

    def record(self) -> Any:
        """Record an event."""
        return self.current().record()

    def wait(self, event: Any) -> None:
        """Wait for an event on the device."""
        self.current().wait_event(event)

    def mark(self) -> Any:
        """Record an event, with its time."""
        return self.current().record()

    def elapsed(self, begin: Any, end: Any) -> float:
        """Return the time between two events."""
        end.synchronize()
        return 1e3 * self.module.cuda.get_elapsed_time(begin, end)

    def stream_number(self) -> int:
        """Return the stream's address."""
        return self.current().ptr


_TORCH_NAMES = {
    "absolute": "abs",
    "negative": "neg",
    "power": "pow",
    "arctan2": "atan2",
    "rint": "round",
    "invert": "bitwise_not",
    "conjugate": "conj_physical",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "equal": "eq",
    "not_equal": "ne",
    "fabs": "abs",
    "bitwise_invert": "bitwise_not",
}
_TORCH_FOLDS = {"max": "amax", "min": "amin"}


@cache
def _torch_kind(dtype: DType) -> Any:
    return getattr(module(Library.TORCH), dtype.numpy.name)


class TorchArrays(Arrays):
    """PyTorch's tensors, on the CPU or on CUDA streams."""

    def own(self, array: Any) -> Any:
        """Return an array beside torch's as a tensor, which shares it where it can."""
        return as_tensor(array) if isinstance(array, np.ndarray) else array

    def is_dense(self, array: Any) -> bool:
        """Tell whether elements lie one after another in C order."""
        return array.is_contiguous()

    def is_same(self, a: Any, b: Any) -> bool:
        """Tell whether two tensors of one shape are one in memory."""
        return a.stride() == b.stride() and a.data_ptr() == b.data_ptr()

    def records(self, read: Sequence[Any]) -> bool:
        """Tell whether an operand asks for gradients, and torch records them."""
        wants = any(getattr(x, "requires_grad", False) for x in read)
        return wants and self.module.is_grad_enabled()

    def joined(self, real: Any, imag: Any, dtype: DType) -> Any:
        """Return the complex tensor of two parts."""
        return self.module.complex(real, imag)

    def number(self, value: bool | float, dtype: DType) -> Any:
        """Return a tensor without axes."""
        kind, device = self._kind(dtype), str(self.device)
        return self.module.full((), value, dtype=kind, device=device)

    def copy(self, source: Any, out: Any) -> Any:
        """Copy elements."""
        return source.clone() if out is None else out.copy_(source)

    def compute(
        self, name: str, operands: Sequence[Any], types: Sequence[DType], out: Any
    ) -> Any:
        """Apply a function in the dtypes that NumPy would choose."""
        found = getattr(self.module, _TORCH_NAMES.get(name, name), None)
        if found is None:
            message = f"torch has no elementwise function {name}"
            raise UnsupportedError(message)
        given = [self._cast(x, t) for x, t in zip(operands, types[:-1], strict=True)]
        if not isinstance(given[0], self.module.Tensor):
            given[0] = self.number(given[0], types[0])
        if out is None:
            return found(*given)
        try:
            return found(*given, out=out)
        except (TypeError, RuntimeError):  # some write nowhere, or take no numbers
            pairs = zip(given, types, strict=False)
            is_tensor = self.module.is_tensor
            given = [x if is_tensor(x) else self.number(x, t) for x, t in pairs]
            return out.copy_(found(*given))

    def _cast(self, x: Any, dtype: DType) -> Any:
        if not isinstance(x, self.module.Tensor):
            return x
        return x.to(self._kind(dtype))

    def _kind(self, dtype: DType) -> Any:
        return _torch_kind(dtype)

    def reduce(
        self, name: str, source: Any, axes: tuple[int, ...], dtype: DType, out: Any
    ) -> Any:
        """Fold axes, one after another where torch takes one only."""
        if not axes:
            return self.copy(source.to(self._kind(dtype)), out)
        fold = getattr(self.module, _TORCH_FOLDS.get(name, name))
        if name in ("prod", "any", "all"):
            made = source
            for axis in sorted(axes, reverse=True):
                made = fold(made, axis)
            made = made.to(self._kind(dtype))
            return made if out is None else out.copy_(made)
        kind = {"dtype": self._kind(dtype)} if name == "sum" else {}
        if out is not None:
            kind["out"] = out
        return fold(source, axes, **kind)

    def matmul(self, lhs: Any, rhs: Any, dtype: DType, out: Any) -> Any:
        """Multiply matrices; torch has no product of integers on CUDA."""
        kind = self._kind(dtype)
        rows, columns = lhs.ndim > 1, rhs.ndim > 1
        lhs, rhs = lhs if rows else lhs[None], rhs if columns else rhs[:, None]
        if self._is_wide(lhs, rhs, dtype):
            made = self._wide_product(lhs, rhs)
        elif out is None:
            made = self.module.matmul(lhs.to(kind), rhs.to(kind))
        else:
            lhs, rhs = lhs.to(kind), rhs.to(kind)
            whole = out if columns else out[..., None]  # or torch would resize it
            self.module.matmul(lhs, rhs, out=whole if rows else whole[..., None, :])
            return out
        made = made if columns else made[..., 0]
        made = made if rows else made[..., 0, :] if columns else made[..., 0]
        return made.to(kind) if out is None else out.copy_(made)

    def _is_wide(self, lhs: Any, rhs: Any, dtype: DType) -> bool:
        """Tell whether a product of 16-bit floats is computed as f32.

        On the CPU torch takes a hundred times as long for float16 as for f32.
        """
        kinds = self.module.float16, self.module.bfloat16
        if lhs.dtype is not rhs.dtype or lhs.dtype not in kinds:
            return False
        is_slow = not self.device.is_cuda and lhs.dtype is kinds[0]
        return is_slow or not dtype.is_half

    def _wide_product(self, lhs: Any, rhs: Any) -> Any:
        """Multiply 16-bit floats into f32, where torch can."""
        torch = self.module
        if not self.device.is_cuda:
            return torch.matmul(lhs.float(), rhs.float())
        if not hasattr(torch.ops.aten.bmm, "dtype"):
            return torch.matmul(lhs, rhs)
        if rhs.ndim == 2:
            made = torch.mm(
                lhs.reshape(-1, lhs.shape[-1]), rhs, out_dtype=torch.float32
            )
            return made.view(*lhs.shape[:-1], rhs.shape[-1])
        stack = torch.broadcast_shapes(lhs.shape[:-2], rhs.shape[:-2])
        flat = [x.expand(*stack, -1, -1).flatten(0, -3) for x in (lhs, rhs)]
        made = torch.bmm(*flat, out_dtype=torch.float32)
        return made.view(*stack, lhs.shape[-2], rhs.shape[-1])

    def sort(self, source: Any, axis: int, out: Any, kth: Sequence[int] = ()) -> None:
        """Write what ``source`` holds into ``out``, in order along ``axis``."""
        del kth  # torch parts nothing: all places are as those few
        out.copy_(self.module.sort(source, axis).values)

    def argsort(
        self,
        source: Any,
        axis: int,
        stable: bool,
        out: Any,
        kth: Sequence[int] = (),
    ) -> None:
        """Write the places of the elements into ``out``, in their order."""
        del kth
        out.copy_(self.module.argsort(source, dim=axis, stable=stable))

    def permute(self, source: Any, order: tuple[int, ...]) -> Any:
        """Return a view with other axes."""
        return source.permute(order)

    def current(self) -> Any:
        """Return torch's current stream."""
        return self.module.cuda.current_stream(self.device.index)

    def side(self, number: int) -> Any:
        """Return a stream of torch's pool."""
        key = self.library, self.device, number
        if key not in _SIDES:
            _SIDES[key] = self.module.cuda.Stream(self.device.index)
        return _SIDES[key]

    def use(self, stream: Any) -> None:
        """Make ``stream`` torch's current one."""
        self.module.cuda.set_stream(stream)

    def join(self, stream: Any) -> None:
        """Wait for a stream on the device."""
        self.current().wait_stream(stream)

    def lend(self, array: Any) -> Any:
        """Let torch wait for the current stream before it uses the memory again."""
        array.record_stream(self.current())
        return array

    def record(self) -> Any:
        """Record an event."""
        return self.current().record_event()

    def wait(self, event: Any) -> None:
        """Wait for an event on the device."""
        self.current().wait_event(event)

    def mark(self) -> Any:
        """Record an event, with its time."""
        if not self.device.is_cuda:
            return None
        return self.current().record_event(self.module.cuda.Event(enable_timing=True))

    def elapsed(self, begin: Any, end: Any) -> float:
        """Return the time between two events."""
        end.synchronize()
        return 1e3 * begin.elapsed_time(end)

    def stream_number(self) -> int:
        """Return the stream's address."""
        return self.current().cuda_stream
