# SPDX-License-Identifier: Apache-2.0
"""Processors as data: what schedules and kernels need to know of one.

Nothing below asks which processor it serves; it asks for a property. A chip of a known
kind is one more value, with the source of each number beside it.
"""

from __future__ import annotations

from nfuser.compiler.ir.base import value

WARP = 32  # threads of a GPU that run as one, and banks of its shared memory: CUDA's
# Where f64 runs at half the speed of f32, not at a thirty-second or less: the table of
# arithmetic throughput in the CUDA C++ Programming Guide, by compute capability.
_FAST_DOUBLES = ((8, 0), (9, 0), (10, 0))


@value
class Target:
    """What a kernel is made for; the numbers steer heuristics only.

    ``kind`` names what prints, compiles and launches for it. Where it ``has_blocks``,
    its threads come in blocks that share memory and meet at barriers; else a thread is
    alone with its part of the work. Where it ``has_vectors``, the compiler makes them
    of inner loops: sums may be regrouped, and what no vector does is worth avoiding: to
    divide an index, to gather from an address that is chosen, to fold pairs. Where it
    ``prepares_divisions``, kernels divide indices by multiplying with what the host has
    worked out. Where blocks go ``from_last``, the first to run takes the last rows.
    """

    kind: str
    has_blocks: bool
    has_vectors: bool
    prepares_divisions: bool
    fast_doubles: bool = False  # quotients in f32 cost less by way of f64
    compute_capability: tuple[int, int] = (0, 0)
    multiprocessors: int = 1
    registers: int = 0  # of a multiprocessor, of 4 bytes each
    most_threads: int = 1  # of a block
    most_cluster: int = 1  # blocks that run together, and reach each other's memory
    most_rows: int = 0  # of blocks in a grid: the limit of its second axis
    shared_bytes: int = 0  # of a multiprocessor, for all its blocks
    block_bytes: int = 0  # of shared memory that every block may take
    cache_bytes: int = 0  # of the last cache, of what is read again
    near_bytes: int = 0  # of these, of what is fast to read again
    line_bytes: int = 0  # of memory that a cache moves at once
    stack_elements: int = 0  # that a thread may keep of a row, in the cache next to it
    from_last: bool = False  # what ran before has left the last rows in the cache


CPU = Target(
    "cpu",
    has_blocks=False,
    has_vectors=True,
    prepares_divisions=False,
    line_bytes=64,  # those of x86-64, and of most others
    stack_elements=1 << 14,  # 128 KiB of f64, which a second cache holds
)


def gpu(
    compute_capability: tuple[int, int], multiprocessors: int, shared_bytes: int
) -> Target:
    """Return an NVIDIA GPU of which the driver says these numbers.

    The others are those that the CUDA C++ Programming Guide gives for compute
    capabilities 7.0 to 10.0 ("Features and Technical Specifications"), and for caches
    those of an H200 with 50 MB of L2, as much of it as rows may take that pay for being
    read again there.
    """
    return Target(
        "cuda",
        has_blocks=True,
        has_vectors=False,
        prepares_divisions=True,
        fast_doubles=compute_capability in _FAST_DOUBLES,
        compute_capability=compute_capability,
        multiprocessors=multiprocessors,
        registers=1 << 16,
        most_threads=1024,
        most_cluster=8 if compute_capability >= (9, 0) else 1,  # that any GPU runs
        most_rows=(1 << 16) - 1,
        shared_bytes=shared_bytes,
        block_bytes=40 << 10,  # of 48 KiB that are granted unasked, less states
        cache_bytes=40 << 20,
        near_bytes=26 << 20,
        line_bytes=128,
    )


H200 = gpu((9, 0), multiprocessors=132, shared_bytes=227 << 10)
"""What kernels are made for where no device says otherwise."""
