# SPDX-License-Identifier: Apache-2.0
"""PyTorch tensors: strided, real memory, outside of autograd and of tracers."""

from __future__ import annotations

import sys
from typing import Any

from nfuser.errors import ArgumentError, DeviceError
from nfuser.execution.device.describe.elements import element_type, finished
from nfuser.execution.device.describe.libraries import (
    CPU,
    Descriptor,
    Device,
    Library,
    c_strides,
)


def describe_torch(tensor: Any, what: str) -> Descriptor:
    """Return what a kernel needs to know about a tensor, or refuse it by name."""
    torch = sys.modules["torch"]
    if problem := _problem(torch, tensor):
        message = f"{what}: {problem}"
        raise ArgumentError(message)
    device = _device(tensor.device, what)
    dtype = element_type(tensor.dtype, what)
    shape = tuple(tensor.shape)
    strides = c_strides(shape) if 0 in shape else tensor.stride()
    if 0 not in shape:
        _require_memory(tensor, shape, strides, what)
    return finished(
        Library.TORCH,
        device,
        dtype,
        (shape, strides),
        tensor.data_ptr(),
        writable=True,
        what=what,
    )


def _problem(torch: Any, tensor: Any) -> str | None:
    cls = tensor.__class__
    if cls is not torch.Tensor and cls is not torch.nn.Parameter:
        return _subclass_problem(cls)
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return (
            "the tensor is a tracer of torch.func (vmap, grad, ...); apply the "
            "transform to a function that nfuser does not fuse"
        )
    if tensor.layout is not torch.strided:
        return f"tensors of layout {tensor.layout} are not dense; call .to_dense()"
    if tensor.is_conj():
        return "the tensor is a lazy conjugate view; call .resolve_conj()"
    if tensor.is_neg():
        return "the tensor is a lazy negative view; call .resolve_neg()"
    if has_tangent(torch, tensor):
        return (
            "the tensor has a tangent, which a fused function does not carry on; take "
            "nfuser.jvp of the function, or pass forward_ad.unpack_dual(x).primal"
        )
    if tensor.requires_grad and torch.is_grad_enabled():
        return (
            "the tensor requires a gradient, which a fused function does not record; "
            "call it under torch.no_grad(), or pass x.detach()"
        )
    return None


def has_tangent(torch: Any, tensor: Any) -> bool:
    """Tell whether ``tensor`` is a dual number of torch's forward mode."""
    forward = torch.autograd.forward_ad
    level = getattr(forward, "_current_level", -1)
    return level >= 0 and forward.unpack_dual(tensor).tangent is not None


def _require_memory(
    tensor: Any, shape: tuple[int, ...], strides: tuple[int, ...], what: str
) -> None:
    """Refuse a tensor whose storage was shrunk, as by ``FSDP`` between two uses."""
    last = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    needed = (tensor.storage_offset() + last + 1) * tensor.element_size()
    held = tensor.untyped_storage().nbytes()
    if held < needed:
        message = (
            f"{what}: pass a tensor whose storage is whole; this one's holds {held} "
            f"bytes, and its shape and strides reach {needed}: it was resized since"
        )
        raise ArgumentError(message)


def _subclass_problem(cls: type) -> str:
    name = f"{cls.__module__}.{cls.__qualname__}"
    match cls.__name__:
        case "FakeTensor" | "FunctionalTensor":
            return f"{name} has no memory: it belongs to a tracer of torch"
        case "DTensor":
            return f"{name} is spread over processes; pass x.to_local()"
        case _:
            return (
                f"nfuser does not take {name}, a subclass of torch.Tensor, since it "
                "may give operators another meaning; pass x.as_subclass(torch.Tensor)"
            )


def _device(device: Any, what: str) -> Device:
    if device.type == "cpu":
        return CPU
    if device.type == "cuda":
        return Device("cuda", device.index)
    if device.type == "meta":
        message = f"{what}: a tensor on the meta device has no memory"
        raise DeviceError(message)
    message = f"{what}: device {device} is neither a CPU nor a CUDA device"
    raise DeviceError(message)
