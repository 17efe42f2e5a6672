# SPDX-License-Identifier: Apache-2.0
"""A compiled CPU kernel as a Python callable that releases the GIL.

The convention is the one Numba compiles functions with::

    int32 kernel(void **result, void **exception, int64 start, int64 stop, arguments...)

where arguments are addresses and numbers. Zero means success.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

from nfuser.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KINDS: dict[str, Any] = {
    "pointer": ctypes.c_void_p,
    "bool": ctypes.c_uint8,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}

# Every kernel returns nothing and raises nothing: the two slots that the convention
# asks for are written to and never read, so all threads share them.
_scratch = (ctypes.c_int64 * 16)()
RESULT = ctypes.addressof(_scratch)
EXCEPTION = RESULT + 64


@cache
def _prototype(kinds: tuple[str, ...]) -> Any:
    address, index = ctypes.c_void_p, ctypes.c_int64
    arguments = (KINDS[kind] for kind in kinds)
    return ctypes.CFUNCTYPE(ctypes.c_int, address, address, index, index, *arguments)


class CpuKernel:
    """A native function over a range of indices; ``keep`` owns its machine code."""

    __slots__ = ("address", "entry", "keep", "kinds")

    def __init__(self, address: int, kinds: Sequence[str], keep: object = None) -> None:
        self.address = address
        self.kinds = tuple(kinds)
        self.keep = keep
        self.entry: Callable[..., int] = _prototype(self.kinds)(address)

    def run(self, start: int, stop: int, arguments: Sequence[Any]) -> None:
        """Run one range in this thread."""
        status = self.entry(RESULT, EXCEPTION, start, stop, *arguments)
        if status:
            raise kernel_failure(status)

    def __repr__(self) -> str:
        return f"CpuKernel({self.address:#x}, {', '.join(self.kinds)})"


def kernel_failure(status: int) -> BackendError:
    """Return the error for a kernel that did not return zero."""
    return BackendError(
        f"a CPU kernel returned status {status}, though no kernel of nfuser raises; "
        "please report it"
    )
