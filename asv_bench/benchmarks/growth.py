# SPDX-License-Identifier: Apache-2.0
"""How the compiler's time grows with the program: milliseconds an operation."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from benchmarks import normal
from nfuser.compiler.concretize import answer, concretize, questions
from nfuser.compiler.lower.lowering import lower
from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.schedule.facts.target import H200
from nfuser.compiler.schedule.registry import find_scheduler
from nfuser.compiler.segment import segment
from nfuser.compiler.trace import call_of, trace_function
from nfuser.execution.device.describe.descriptor import CPU, Library, describe
from nfuser.execution.runtime.kernel_runtime import heuristics_for
from nfuser.execution.runtime.pieces.concretized import Concretization
from nfuser.execution.runtime.place import Place
from nfuser.execution.runtime.planning.plan import facts_of, symbol_values

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTS = (10, 100, 1000)
STAGES = ("trace", "concretize", "rewrite", "segment", "schedule", "lower")
PLACE = Place(Library.NUMPY, CPU, "interpret", H200)


def pointwise(count: int) -> Callable[[Any, Any], Any]:
    """Return a function of ``count`` elementwise operations, one after another."""

    def chain(x: Any, y: Any) -> Any:
        for k in nfuser.unroll(range(count // 2)):
            x = np.maximum(x * (1 + k), y)
        return x

    return chain


def normalized(count: int) -> Callable[[Any, Any], Any]:
    """Return the same with a reduction every ten operations."""

    def chain(x: Any, y: Any) -> Any:
        for k in nfuser.unroll(range(count // 10)):
            for _ in range(4):
                x = np.maximum(x * (1 + k), y)
            x = x - x.sum(axis=k % 2, keepdims=True)
        return x

    return chain


CHAINS = {"pointwise": pointwise, "normalized": normalized}


def stage_seconds(function: Callable[..., Any]) -> dict[str, float]:
    """Return the seconds that each stage takes to compile ``function``."""
    arrays = (normal(32, 48), normal(32, 48, seed=1))
    described = {k: describe(a, "an argument") for k, a in enumerate(arrays)}
    clock = Clock()
    fusion = trace_function(function, call_of(arrays)).fusion
    clock.stop("trace")
    values = symbol_values(described, {})
    asked = questions(fusion)
    concrete = concretize(fusion, asked, answer(fusion, asked, values))
    clock.stop("concretize")
    rewritten = rewrite(concrete)
    clock.stop("rewrite")
    segmented = segment(rewritten.fusion, find_scheduler)
    clock.stop("segment")
    found = Concretization(concrete, rewritten, segmented)
    heuristics = heuristics_for(segmented, facts_of(found, PLACE, described, values))
    pairs = zip(segmented.segments, heuristics, strict=True)
    scheduled: list[Any] = []
    for piece, heuristic in pairs:
        scheduler: Any = piece.scheduler
        scheduled.append(scheduler.apply(piece.fusion, heuristic, PLACE.target))
    clock.stop("schedule")
    for piece in scheduled:
        lower(piece)
    clock.stop("lower")
    return clock.seconds


class Clock:
    """Charges the time since the last stop to a name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begin = perf_counter()

    def stop(self, name: str) -> None:
        now = perf_counter()
        self.seconds[name] = now - self._begin
        self._begin = now


class Growth:
    """Each stage of each chain, least of three; ``total`` is their sum."""

    params = (tuple(CHAINS), COUNTS, (*STAGES, "total"))
    param_names = ("chain", "operations", "stage")
    unit = "ms/op"
    timeout = 300

    def setup_cache(self) -> dict[tuple[str, int], dict[str, float]]:
        return {(c, n): per_operation(c, n) for c in CHAINS for n in COUNTS}

    def track_milliseconds(
        self,
        found: dict[tuple[str, int], dict[str, float]],
        chain: str,
        operations: int,
        stage: str,
    ) -> float:
        return found[chain, operations][stage]


def per_operation(chain: str, count: int) -> dict[str, float]:
    """Return milliseconds an operation, by stage and in all."""
    runs = [stage_seconds(CHAINS[chain](count)) for _ in range(3)]
    least = {stage: min(run[stage] for run in runs) for stage in STAGES}
    least["total"] = sum(least.values())
    return {stage: 1e3 * seconds / count for stage, seconds in least.items()}
