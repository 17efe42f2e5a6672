# SPDX-License-Identifier: Apache-2.0
"""The compiler's own speed: seconds in each stage of a first call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser
from benchmarks import gelu, layer_norm, normal, softmax
from nfuser.base.debug import timing
from nfuser.execution.runtime.caches.shared_cache import forget_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FUNCTIONS = {
    "gelu": (gelu, [(64, 64), (64,)]),
    "layer_norm": (layer_norm, [(64, 64), (64,), (64,)]),
    "softmax": (softmax, [(64, 64)]),
}
STAGES = (
    "trace",
    "concretize",
    "rewrite",
    "segment",
    "schedule",
    "lower",
    "codegen",
    "compile",
    "host",
)


class Stages:
    """One account of ``nfuser.base.debug.timing`` each, least of five first calls."""

    params = (tuple(FUNCTIONS), STAGES)
    param_names = ("function", "stage")

    def setup_cache(self) -> dict[str, dict[str, float]]:
        return {name: _least_seconds(*case) for name, case in FUNCTIONS.items()}

    def track_seconds(
        self, least: dict[str, dict[str, float]], function: str, stage: str
    ) -> float:
        return least[function][stage]


def _least_seconds(
    function: Callable[..., Any], shapes: Sequence[tuple[int, ...]]
) -> dict[str, float]:
    arguments = [normal(*shape) for shape in shapes]
    tables: list[dict[str, float]] = []
    for _ in range(5):
        timing.clear()
        forget_all(kernels=False)
        nfuser.fuse(function)(*arguments)
        tables.append(timing.table())
    # Only the first of the five compiles; the others find its kernel.
    first, *others = tables
    return {
        stage: min([table[stage] for table in others if stage in table] or [seconds])
        for stage, seconds in first.items()
    }
