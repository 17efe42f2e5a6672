# SPDX-License-Identifier: Apache-2.0
"""RoPE over ten lengths: one compile of symbolic extents beside one for each length."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from asv_bench.compare.contest import OURS, make_row
from asv_bench.compare.peers import DYNAMIC_COMPILE, bind_nfuser
from asv_bench.compare.workloads.rope import PAIR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asv_bench.compare.devices import Cpu

LENGTHS = (1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 32768)
HEADS = ((32, 32), (32, 8), (28, 4))
HEAD_SIZES = (128, 96)
OURS_TWICE = {
    OURS: bind_nfuser,
    f"{OURS} static": partial(bind_nfuser, resize="static"),
}
LEAST_BYTES = 4 * 60 * 10**6  # four times the L2 of the largest GPU of its time


def rope_rows(
    device: Cpu,
    peers: Mapping[str, Any],
    only: Sequence[str],
    done: Callable[[Any], None],
) -> None:
    """Make the rows whose names begin as one of ``only``."""
    chosen = {n: p for n, p in peers.items() if n in ("torch", "torch.compile")}
    if "torch.compile" in chosen:
        chosen["torch.compile, dynamic"] = DYNAMIC_COMPILE[1]
    for (q, k), size, length in product(HEADS, HEAD_SIZES, LENGTHS):
        batch = -(-LEAST_BYTES // (4 * (q + k) * length * size))
        sizes = (q, k, size, length, batch)
        if PAIR.row_name(sizes).startswith(tuple(only) or ""):
            done(make_row(device, PAIR, sizes, chosen, OURS_TWICE))
