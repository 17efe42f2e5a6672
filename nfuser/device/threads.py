# SPDX-License-Identifier: Apache-2.0
"""Run a CPU kernel over a range, on as many threads as are worth waking.

A range is cut into chunks at multiples of its grain, large ones first; threads take the
next chunk when they are done with one. So which thread computes what is chance, but
what is computed for an index is not, nor where cuts are: results cannot depend on the
number of threads.

The calling thread takes chunks too and never waits for a thread to wake: a helper that
comes late finds nothing to do. Calls from several threads share the helpers, which run
native code alone (``native/pool.py``): a thread of Python's would need the GIL, and two
dozen cold functions, before its first chunk.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from nfuser.device.affinity import available_threads, num_threads
from nfuser.device.cpu_kernel import EXCEPTION, RESULT, CpuKernel, kernel_failure
from nfuser.device.native import layout
from nfuser.device.parameters import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SERIAL_COST = 1 << 19
"""Cost below which the work (40 us) is done before helpers are awake (20 to 50 us)."""

CHUNK_COST = 1 << 16
"""Cost below which a chunk (4 us) is not worth fetching (1 us, or more)."""

MOST_CHUNKS = 256
"""What a range is as long as, in the smallest chunks: they even out unequal threads."""

TURNS = 3
"""How many chunks for each core the rest of a range would make: each begins with cold
loads."""


def run_range(
    kernel: CpuKernel,
    arguments: Sequence[Any],
    total: int,
    grain: int = 1,
    cost: int | None = None,
) -> None:
    """Run ``kernel`` over ``range(total)``; return when all of it is done.

    ``cost`` is the number of elements the whole range touches, by default ``total``;
    where an element takes longer than a few additions, more.
    What a kernel computes for an index must not depend on where the range is cut, cuts
    being multiples of ``grain``.
    """
    work = total if cost is None else cost
    if work <= SERIAL_COST or total <= grain or num_threads() == 1:
        status = kernel.entry(RESULT, EXCEPTION, 0, total, *arguments)
        if status:
            raise kernel_failure(status)
        return
    chunks = cuts(total, chunk_size(total, grain, work), available_threads())
    values = ctypes.create_string_buffer(_packer(kernel.kinds)(*arguments))
    job = (ctypes.c_int64 * layout.JOB_WORDS)()
    for place, number in (
        (layout.J_INVITED, helpers_for(chunks)),
        (layout.J_CHUNKS, len(chunks) - 1),
        (layout.J_CUTS, ctypes.addressof(cut_words(chunks))),
        (layout.J_CALLER, _caller(kernel.kinds)),
        (layout.J_KERNEL, kernel.address),
        (layout.J_VALUES, ctypes.addressof(values)),
    ):
        job[place // 8] = number
    start_helpers(helpers_for(chunks))
    status = _pool().share(ctypes.addressof(job))
    if status:
        raise kernel_failure(status)


def chunk_size(total: int, grain: int, cost: int) -> int:
    """Return the indices of the smallest chunk: a multiple of ``grain``.

    >>> chunk_size(1_000_000, 64, 1_000_000)
    66688
    >>> chunk_size(10, 1, 10_000_000)
    1
    """
    chunks = max(1, min(MOST_CHUNKS, cost // CHUNK_COST))
    grains = -(-total // grain)
    return -(-grains // chunks) * grain


@lru_cache(maxsize=1024)
def cuts(total: int, least: int, cores: int) -> tuple[int, ...]:
    """Return where chunks begin and end: a part of the rest each, but ``least``.

    ``cores`` are those there are, whatever the threads of a call.

    >>> cuts(100, 4, 2)
    (0, 16, 28, 40, 48, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96, 100)
    """
    found = [0]
    while (left := total - found[-1]) > 0:
        size = max(left // (TURNS * cores * least), 1) * least
        found.append(min(found[-1] + size, total))
    return tuple(found)


def helpers_for(cuts: tuple[int, ...]) -> int:
    """Return how many threads are asked to help with what lies between ``cuts``."""
    return min(num_threads(), len(cuts) - 1) - 1


@lru_cache(maxsize=1024)
def cut_words(cuts: tuple[int, ...]) -> Any:
    """Return cuts as native code reads them."""
    return (ctypes.c_int64 * len(cuts))(*cuts)


def start_helpers(wanted: int) -> None:
    """Have ``wanted`` threads to help, but for those that the system refuses.

    They are no threads of Python's and have no part in its end: the process ends them.
    """
    pool = _pool()
    with pool.starting:
        while pool.size.value < wanted:
            thread, own = ctypes.c_ulong(), ctypes.c_void_p(pool.state)
            create = ctypes.pythonapi.pthread_create
            if not create(ctypes.byref(thread), None, pool.help_others, own):
                ctypes.pythonapi.pthread_detach(thread)
            pool.size.value += 1


class _Pool(NamedTuple):
    """Where native code keeps its list of jobs, and how many threads look at it."""

    state: int
    size: ctypes.c_int64
    starting: threading.Lock
    help_others: ctypes.c_void_p
    share: Callable[[int], int]  # runs a job without the GIL


@cache
def _pool() -> _Pool:
    from nfuser.device.native.library import library

    state = library().address("table") + layout.POOL_STATE
    size = ctypes.c_int64.from_address(state + layout.H_SIZE)
    helper = ctypes.c_void_p(library().address("help_others"))
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    return _Pool(
        state, size, threading.Lock(), helper, kind(library().address("share"))
    )


def _caller(kinds: tuple[str, ...]) -> int:
    from nfuser.device.native.library import kernel_caller

    return kernel_caller(kinds)


@lru_cache(maxsize=1024)
def _packer(kinds: tuple[str, ...]) -> Callable[..., bytes]:
    return struct.Struct("<" + "".join(FORMATS[kind] for kind in kinds)).pack


def _after_fork() -> None:
    """Forget threads that a child process does not have, and what they held."""
    if _pool.cache_info().currsize:
        ctypes.memset(_pool().state, 0, layout.POOL_BYTES)
    _pool.cache_clear()
    available_threads.cache_clear()


os.register_at_fork(after_in_child=_after_fork)
