# SPDX-License-Identifier: Apache-2.0
"""Where a call runs: which backend, on which device, for which target."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import node
from nfuser.compiler.schedule.facts.target import CPU as CPU_TARGET
from nfuser.compiler.schedule.facts.target import H200, Target, gpu
from nfuser.errors import ArgumentError, DeviceError
from nfuser.execution.device.describe.descriptor import CPU, Library

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.execution.device.describe.descriptor import Descriptor, Device

BACKENDS = ("cpu", "cuda", "interpret")


@node
class Place:
    """Where a call runs: the library outputs belong to, the device, the backend."""

    library: Library
    device: Device
    backend: str
    target: Target

    @property
    def from_last(self) -> Place:
        """The same place for what goes from the last rows to the first.

        A thread that is alone with its part of the work has its own way through it.
        """
        if not self.target.has_blocks:
            return self
        return replace(self, target=replace(self.target, from_last=True))


_TO_DEVICE = {
    Library.TORCH: "torch.as_tensor({name}, device={device!r})",
    Library.CUPY: "cupy.asarray({name})",
    Library.NUMBA: "numba.cuda.to_device({name})",
    Library.JAX: "jax.device_put({name})",
}


def common_place(what: str, arrays: Mapping[str, Descriptor]) -> tuple[Library, Device]:
    """Return the library and the device of the arrays, which have the keys as names.

    NumPy arrays beside those of another library on the CPU are its guests: the results
    belong to the other one.
    """
    if not arrays:
        return Library.NUMPY, CPU
    name = next((n for n, d in arrays.items() if d.device.is_cuda), None)
    if name is None:
        guest = Library.NUMPY
        name = next((n for n, d in arrays.items() if d.library is not guest), None)
    name = next(iter(arrays)) if name is None else name
    host = arrays[name]
    for other, d in arrays.items():
        if d.device != host.device:
            raise _apart(what, arrays, name, other)
        if d.library is not host.library and d.library is not Library.NUMPY:
            raise _foreign(what, arrays, name, other)
    return host.library, host.device


def _listed(arrays: Mapping[str, Descriptor], *names: str) -> str:
    ordered = [name for name in arrays if name in names]
    return " and ".join(
        f"{n} ({arrays[n].library.value}) on {arrays[n].device}" for n in ordered
    )


def _apart(
    what: str, arrays: Mapping[str, Descriptor], name: str, other: str
) -> DeviceError:
    host = arrays[name]
    if arrays[other].device.is_cuda:
        remedy = f"copy {other} to {host.device} before the call"
    else:
        move = _TO_DEVICE[host.library].format(name=other, device=str(host.device))
        remedy = f"pass {move}"
    message = (
        f"{what}: expected all arrays on one device, found "
        f"{_listed(arrays, name, other)}; {remedy}"
    )
    return DeviceError(message)


def _foreign(
    what: str, arrays: Mapping[str, Descriptor], name: str, other: str
) -> DeviceError:
    host, library = arrays[name], arrays[name].library.value
    remedy = f"convert {other} to {library} before the call"
    if host.device.is_cuda:
        move = _TO_DEVICE[host.library].format(name=other, device=str(host.device))
        remedy = f"pass {move}, which shares the memory where it can"
    message = (
        f"{what}: expected arrays of one library (whose streams and memory the call "
        f"uses), found {_listed(arrays, name, other)}; {remedy}"
    )
    return DeviceError(message)


def check_backend(backend: str | None) -> None:
    """Refuse a backend that there is not; None leaves it to the arrays."""
    if backend is not None and backend not in BACKENDS:
        message = f"backend must be one of {BACKENDS}, not {backend!r}"
        raise ArgumentError(message)


def find_place(
    library: Library, device: Device, backend: str | None, *, has_arrays: bool
) -> Place:
    """Return the place of a call, from where its arrays are."""
    natural = "cuda" if device.kind == "cuda" else "cpu"
    check_backend(backend)
    chosen = backend or natural
    if {chosen, natural} == {"cpu", "cuda"}:
        where = f"the arrays are on {device}" if has_arrays else "there is no array"
        message = (
            f"backend={backend!r} was asked for, but {where}; leave backend out, or "
            f"pass arrays on {'a CUDA device' if chosen == 'cuda' else 'the CPU'}"
        )
        raise ArgumentError(message)
    return Place(library, device, chosen, _target(chosen, device.index))


@cache
def _target(backend: str, index: int) -> Target:
    if backend == "cpu":
        return CPU_TARGET
    if backend == "interpret":
        return H200
    from nfuser.execution.device.cuda.driver import attributes, why_missing  # noqa: PLC0415 (loads libcuda)

    if why_missing() is not None:
        return H200  # of a spec
    found = attributes(index)
    return gpu(
        found.compute_capability,
        found.multiprocessors,
        found.shared_per_multiprocessor,
    )
