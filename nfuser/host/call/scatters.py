# SPDX-License-Identifier: Apache-2.0
"""Scatters on a CPU: the index is checked, and then one native loop obeys it."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.codegen.numba.compiler_lock import imported
from nfuser.errors import host_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.host.call.program import Call, Scattered

_GRAIN = 64  # elements of rows that a thread takes at once: no line of two threads

_FEW = 4096


def scatter_call(
    stmt: Call, scattered: Scattered, readers: Sequence[Callable[[Any], Any]]
) -> Callable[..., None]:
    """Return what scatters into the last array given, whose memory the first may be.

    Nothing is written where the index names a position that is not there.
    """
    imported("nfuser.device.cpu.threads")
    from nfuser.device.cpu.threads import run_range  # noqa: PLC0415 (its own pool)

    kernel, lead = scattered.kernel(), scattered.lead

    def call(*given: Any) -> None:
        *operands, target = given
        read = [r(x) for r, x in zip(readers, operands, strict=True)]
        source, out = read[0], np.asarray(target)
        index = np.ascontiguousarray(read[1])
        _check(index, out.shape[:lead], stmt.note)
        value, step = _in_row(read[2], out)
        whole = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        if whole.ctypes.data != source.ctypes.data:
            whole[...] = source
        addresses = [x.ctypes.data for x in (whole, index, value)]
        rows, inner = prod(out.shape[:lead]), prod(out.shape[lead:])
        if index.size and inner:
            has_runs = inner == 1 and _has_runs(index.reshape(-1))
            numbers = [index.size, rows, inner, step, int(has_runs)]
            cost = index.size * inner
            run_range(kernel, [*addresses, *numbers], inner, _GRAIN, cost)
        if whole is not out:
            out[...] = whole

    return call


def _in_row(value: Any, out: Any) -> tuple[Any, int]:
    """Return values one after another, apart from ``out``, and the step to the next.

    One value for all places is not repeated.
    """
    is_one = value.size and not any(value.strides)
    first = value[(0,) * value.ndim] if is_one else value
    if is_one or np.may_share_memory(value, out):
        return np.array(first), int(not is_one)
    return np.ascontiguousarray(value), 1


def _has_runs(index: Any) -> bool:
    """Tell whether neighbours mostly name one position, as far as some of them show."""
    if index.size < _FEW:
        return False
    some = index[: -1 : index.size // 256]
    after = index[1 :: index.size // 256][: some.size]
    return int(np.count_nonzero(some[: after.size] == after)) > after.size * 7 // 8


def _check(index: Any, shape: tuple[int, ...], note: str) -> None:
    rows = prod(shape)
    if not index.size:
        return
    low, high = int(index.min()), int(index.max())
    if low >= -rows and high < rows:
        return
    wrong = high if high >= rows else low
    if len(shape) == 1:
        place = f"index {wrong} is out of bounds for axis 0 with size {rows}"
    else:
        place = f"an index is out of bounds for axes of the sizes {shape}"
    message = f"{place}; nothing was written by this assignment{note}"
    raise host_error(message, IndexError())
