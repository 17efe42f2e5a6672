# SPDX-License-Identifier: Apache-2.0
"""Dtypes, devices, copies, and arrays like another, under torch's names."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.trace.torch.words.common import sizes_of
from nfuser.compiler.trace.torch.words.shapes import adjoint
from nfuser.compiler.trace.transforms.derivatives import stop
from nfuser.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.torch.words.common import Word
    from nfuser.compiler.trace.tracer import Tracer


def _to(t: Tracer, x: Any, *args: Any, **options: Any) -> Any:
    """Convert to a dtype, or to that of another tensor; the device is to stay."""
    dtype, device = options.pop("dtype", None), options.pop("device", None)
    copies = bool(options.pop("copy", False))
    if (other := options.pop("other", None)) is not None:
        args = (other, *args)
    for name in ("non_blocking", "memory_format"):
        options.pop(name, None)
    if options:
        message = f"to: {sorted(options)} have no fused form; write x.to(dtype)"
        raise ArgumentError(message)
    torch: Any = sys.modules["torch"]
    switches = [given for given in args if isinstance(given, bool)]
    copies |= any(switches[1:])  # the first is non_blocking
    for given in args:
        if isinstance(given, bool) or given is None:
            continue
        if isinstance(given, torch.dtype):
            dtype = given
        elif hasattr(given, "dtype"):
            dtype, device = given.dtype, given.device
        else:
            device = given
    _check_device(t, device)
    found = x if dtype is None else _of_dtype(t, x, as_dtype(dtype))
    return _clone(t, x) if copies and found is x else found


def _of_dtype(t: Tracer, x: Any, dtype: DType) -> Any:
    """Return ``x`` in a dtype: the tensor itself, if it is of that."""
    held = t.tensor(x)
    if held.dtype is dtype and held not in t.builder.weak:
        return x
    return t.call_on_tensor(ops.astype, x, dtype)


def _check_device(t: Tracer, device: Any) -> None:
    """Refuse a device that is not that of the call: results stay where inputs are."""
    if device is None:
        return
    torch: Any = sys.modules["torch"]
    wanted = torch.device(device)
    here = torch.device(str(t.device))
    same = wanted.type == here.type and wanted.index in (None, here.index or 0)
    if not same:
        message = (
            f"move tensors before or after the call: a fused function runs on {here}, "
            f"where its arguments are, and cannot move them to {wanted}"
        )
        raise UnsupportedError(message)


def _moved(kind: str) -> Word:
    def word(t: Tracer, x: Any, device: Any = None, **_: Any) -> Any:
        _check_device(t, kind if device is None else device)
        return x

    return word


def _converted(dtype: DType) -> Word:
    def word(t: Tracer, x: Any, **_: Any) -> Any:
        return _of_dtype(t, x, dtype)

    return word


def _type_as(t: Tracer, x: Any, other: Any) -> Any:
    return _of_dtype(t, x, t.tensor(other).dtype)


def _type(t: Tracer, x: Any, dtype: Any = None, **_: Any) -> Any:
    if dtype is None:
        message = "write x.dtype: x.type() is a text"
        raise UnsupportedError(message)
    return _of_dtype(t, x, as_dtype(dtype))


def _itself(t: Tracer, x: Any, **_: Any) -> Any:
    del t
    return x


def _positive(t: Tracer, x: Any) -> Any:
    return t.operate(ops.positive, x) if t.tensor(x).dtype.is_bool else x


def _clone(t: Tracer, x: Any, **_: Any) -> Any:
    return t.handlers["copy"](t, x)


def _detach(t: Tracer, x: Any) -> Any:
    """Return what shares the memory of ``x``; where none differentiates, that is it."""
    return t.view(stop, x) if t.runs else x


def _is_floating_point(t: Tracer, x: Any) -> bool:
    return t.tensor(x).dtype.is_float


def _is_complex(t: Tracer, x: Any) -> bool:
    return t.tensor(x).dtype.is_complex


def _element_size(t: Tracer, x: Any) -> int:
    return t.tensor(x).dtype.itemsize


def _get_device(t: Tracer, x: Any) -> int:
    del x
    return sys.modules["torch"].device(str(t.device)).index or 0


def _like(value: Any) -> Word:
    def word(
        t: Tracer, x: Any, *, dtype: Any = None, device: Any = None, **_: Any
    ) -> Any:
        _check_device(t, device)
        return filled(t, x.shape, value, dtype or x.dtype)

    return word


def _full_like(
    t: Tracer,
    x: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    **_: Any,
) -> Any:
    _check_device(t, device)
    return filled(t, x.shape, fill_value, dtype or x.dtype)


def _new(value: Any) -> Word:
    def word(
        t: Tracer, x: Any, *size: Any, dtype: Any = None, device: Any = None, **_: Any
    ) -> Any:
        _check_device(t, device)
        return filled(t, sizes_of(size), value, dtype or x.dtype)

    return word


def _new_full(
    t: Tracer,
    x: Any,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    **_: Any,
) -> Any:
    _check_device(t, device)
    return filled(t, size, fill_value, dtype or x.dtype)


def filled(t: Tracer, shape: Any, value: Any, dtype: Any) -> Any:
    """Return a tensor of one value."""
    wanted = as_dtype(dtype)
    sizes = [t.operand(n) for n in shape]
    return t.apply(ops.full, tuple(sizes), value, wanted)


def _is_on(kind: str) -> Word:
    def attribute(t: Tracer, x: Any) -> bool:
        del x
        return sys.modules["torch"].device(str(t.device)).type == kind

    return attribute


ATTRIBUTES: dict[str, Word] = {
    "is_cuda": _is_on("cuda"),
    "is_cpu": _is_on("cpu"),
    "H": adjoint,
    "mH": adjoint,
}
_DTYPES = {
    "float": DType.F32,
    "double": DType.F64,
    "half": DType.F16,
    "bfloat16": DType.BF16,
    "int": DType.I32,
    "long": DType.I64,
    "short": DType.I16,
    "char": DType.I8,
    "byte": DType.U8,
    "bool": DType.BOOL,
    "cfloat": DType.C64,
    "cdouble": DType.C128,
}
WORDS: dict[str, Word] = {
    **{name: _converted(dtype) for name, dtype in _DTYPES.items()},
    "to": _to,
    "type": _type,
    "type_as": _type_as,
    "contiguous": _itself,
    "positive": _positive,
    "clone": _clone,
    "detach": _detach,
    "cpu": _moved("cpu"),
    "cuda": _moved("cuda"),
    "is_floating_point": _is_floating_point,
    "is_complex": _is_complex,
    "element_size": _element_size,
    "get_device": _get_device,
    "zeros_like": _like(0),
    "ones_like": _like(1),
    "empty_like": _like(0),
    "full_like": _full_like,
    "new_zeros": _new(0),
    "new_ones": _new(1),
    "new_empty": _new(0),
    "new_full": _new_full,
}
