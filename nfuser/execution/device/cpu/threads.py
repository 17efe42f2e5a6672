# SPDX-License-Identifier: Apache-2.0
"""Run a CPU kernel over a range, on as many threads as are worth waking.

A range is cut into chunks at multiples of its grain, in as many lanes as there are
cores, large chunks first. Threads take the next chunk of their lane when they are done
with one, and those of other lanes when theirs is empty: so they mostly have the same
part of each range, and find near them what they left in the kernel before. Which thread
computes what is chance, but what is computed for an index is not, nor where cuts are:
results cannot depend on the number of threads.

The calling thread takes chunks too and never waits for a thread to wake: a helper that
comes late finds nothing to do. Calls from several threads share the helpers, which run
native code alone (``native/source/pool.py``): a thread of Python's would need the GIL,
and two dozen cold functions, before its first chunk.

Where somebody else runs many tasks at once, each of them a call, a task asks no more
helpers than its share: none where tasks keep all cores busy.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import nfuser.base.system as system
from nfuser.base.locks import at_fork
from nfuser.execution.device.cpu.affinity import (
    available_threads,
    num_threads,
    share_of_threads,
)
from nfuser.execution.device.cpu.kernel import (
    EXCEPTION,
    KINDS,
    RESULT,
    CpuKernel,
    kernel_failure,
)
from nfuser.execution.device.native import layout
from nfuser.execution.device.native.library import (
    begin_library,
    kernel_caller,
    kernel_callers,
    library,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SERIAL_COST = 1 << 19
"""Cost below which the work (40 us) is done before helpers are awake (20 to 50 us)."""

AWAKE_COST = 1 << 16
"""The same (5 us) where helpers come from the kernel before and still look for work."""

CHUNK_COST = 1 << 16
"""Cost below which a chunk (4 us) is not worth fetching (1 us, or more)."""

AWAKE_CHUNK_COST = 1 << 13
"""The same (1 us or more) for helpers that are awake: chunks of the end are so short
that who has none left does not fall asleep before the others are done."""

MOST_CHUNKS = 256
"""The most chunks of the smallest size in a range: they even out unequal threads."""

TURNS = 3
"""Each chunk is one part of this many times the cores of what remains: a chunk begins
with cold loads."""


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
    is_short = work <= SERIAL_COST or total <= grain
    if is_short or share_of_threads() == 1 or not system.has("native_calls"):
        status = kernel.entry(RESULT, EXCEPTION, 0, total, *arguments)
        if status:
            raise kernel_failure(status)
        return
    least = chunk_size(total, grain, work)
    chunks = cuts(total, least, available_threads(), grain)
    helpers = min(helpers_for(chunks), share_of_threads() - 1)
    words, values = cut_words(chunks), _packed(kernel.kinds, arguments)
    job = (ctypes.c_int64 * layout.JOB_WORDS)()
    for place, number in (
        (layout.J_INVITED, helpers),
        (layout.J_EACH, chunks.each),
        (layout.J_LANES, chunks.lanes),
        (layout.J_CUTS, ctypes.addressof(words)),
        (layout.J_CALLER, kernel_caller(kernel.kinds)),
        (layout.J_KERNEL, kernel.address),
        (layout.J_VALUES, ctypes.addressof(values)),
    ):
        job[place // 8] = number
    start_helpers(helpers)
    status = _pool().share(ctypes.addressof(job))
    if status:
        raise kernel_failure(status)


def begin_sharing(elements: int) -> None:
    """Have what ``run_range`` shares so much work with compiled, if it will be asked.

    It takes LLVM as long as ten kernels do, once where there is a cache.
    """
    if elements > SERIAL_COST and share_of_threads() > 1 and system.has("native_calls"):
        begin_library()


def prepare_callers(kinds: Iterable[tuple[str, ...]]) -> None:
    """Compile what calls kernels of these kinds, where work was said to be shared."""
    if begin_library.cache_info().currsize:
        kernel_callers(kinds)


def chunk_size(total: int, grain: int, cost: int, least: int = CHUNK_COST) -> int:
    """Return the indices of the smallest chunk: a multiple of ``grain``.

    It costs ``least``, if there is so much to do.

    >>> chunk_size(1_000_000, 64, 1_000_000)
    66688
    >>> chunk_size(10, 1, 10_000_000)
    1
    """
    chunks = max(1, min(MOST_CHUNKS, cost // least))
    grains = -(-total // grain)
    return -(-grains // chunks) * grain


class Cuts(NamedTuple):
    """Where chunks begin and end, those of one lane after those of another."""

    places: tuple[int, ...]
    each: int
    back: tuple[tuple[int, int], ...]
    """The chunks of the way back: each lane begins at its end."""

    @property
    def there(self) -> tuple[tuple[int, int], ...]:
        """The chunks from the first index to the last."""
        return tuple(pairwise(self.places))

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self.places) - 1

    @property
    def lanes(self) -> int:
        """How many lanes there are."""
        return self.chunks // self.each


@lru_cache(maxsize=1024)
def cuts(total: int, least: int, cores: int, grain: int = 1) -> Cuts:
    """Return where chunks begin and end: each is a part of what its lane has left.

    ``cores`` are those there are, whatever the threads of a call. Each has a lane, or
    several one. Lanes are equal parts of any range, but for a ``grain``.

    >>> found = cuts(100, 12, 2)
    >>> found.there
    ((0, 12), (12, 24), (24, 36), (36, 50), (50, 62), (62, 74), (74, 86), (86, 100))
    >>> found.back
    ((38, 50), (26, 38), (14, 26), (0, 14), (88, 100), (76, 88), (64, 76), (50, 64))
    """
    lanes = max(min(cores, layout.MOST_LANES, total // least), 1)
    borders = [total * k // lanes // grain * grain for k in range(lanes)]
    lengths = [b - a for a, b in pairwise([*borders, total])]
    left, begins = max(min(lengths) // least, 1), [0]
    while size := left and max(left // (TURNS * -(-cores // lanes)), 1):
        begins.append(begins[-1] + size)
        left -= size
    begins.pop()  # where the next lane begins, or before
    found = [border + least * begin for border in borders for begin in begins]
    back: list[tuple[int, int]] = []
    for border, length in zip(borders, lengths, strict=True):
        ends = [(length - least * begin) // grain * grain for begin in begins[1:]]
        downward = pairwise([length, *ends, 0])
        back += [(border + start, border + stop) for stop, start in downward]
    return Cuts((*found, total), len(begins), tuple(back))


def helpers_for(cuts: Cuts) -> int:
    """Return how many threads are asked to help with what lies between ``cuts``."""
    return max(min(num_threads(), cuts.chunks) - 1, 0)


@lru_cache(maxsize=1024)
def cut_words(cuts: Cuts) -> Any:
    """Return chunks as native code reads them: those there, and those back."""
    words = [index for chunk in cuts.there + cuts.back for index in chunk]
    return (ctypes.c_int64 * len(words))(*words)


def start_helpers(wanted: int) -> None:
    """Have ``wanted`` threads to help, but for those that the system refuses.

    They are no threads of Python's and have no part in its end: the process ends them.
    """
    pool = _pool()
    with _starting:
        while pool.size.value < wanted:
            _start_one(pool)
            pool.size.value += 1


@cache
def _for_python() -> frozenset[signal.Signals]:
    """Return the signals that threads of Python's take: all but those of a fault."""
    faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
    return frozenset(signal.valid_signals() - faults)


def _start_one(pool: _Pool) -> None:
    thread, own = ctypes.c_ulong(), ctypes.c_void_p(pool.state)
    create = ctypes.pythonapi.pthread_create
    # A thread begins with its parent's mask: signals are for threads of Python's.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _for_python())
    try:
        if not create(ctypes.byref(thread), None, pool.help_others, own):
            ctypes.pythonapi.pthread_detach(thread)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Pool(NamedTuple):
    """Where native code keeps its list of jobs, and how many threads were started."""

    state: int
    size: ctypes.c_int64
    help_others: ctypes.c_void_p
    share: Callable[[int], int]  # runs a job without the GIL


@cache
def _pool() -> _Pool:
    state = library().address("table") + layout.POOL_STATE
    size = ctypes.c_int64.from_address(state + layout.H_SIZE)
    helper = ctypes.c_void_p(library().address("help_others"))
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    return _Pool(state, size, helper, kind(library().address("share")))


def _packed(kinds: tuple[str, ...], arguments: Sequence[Any]) -> Any:
    """Return the arguments of a kernel, 8 bytes each, as ``ctypes`` passes them."""
    words = (ctypes.c_int64 * max(len(kinds), 1))()
    for k, (kind, value) in enumerate(zip(kinds, arguments, strict=True)):
        try:
            KINDS[kind].from_buffer(words, 8 * k).value = value
        except TypeError as error:
            raise ctypes.ArgumentError(f"argument {k}: {error}") from None
    return words


def _after_fork() -> None:
    """Forget threads that a child process does not have, and what they held."""
    global _starting
    if _pool.cache_info().currsize:  # before that nobody has used it
        ctypes.memset(_pool().state, 0, layout.POOL_BYTES)
    _starting = threading.Lock()
    available_threads.cache_clear()


_starting = threading.Lock()
at_fork(after_in_child=_after_fork)
