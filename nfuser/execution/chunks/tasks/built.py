# SPDX-License-Identifier: Apache-2.0
"""What a process has built for the stages of its tasks, and calls of known forms."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from nfuser.execution.device.cpu.affinity import (
    as_one_of_many,
    num_threads,
    share_of_threads,
)
from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
from nfuser.execution.runtime.host.native_form import (
    MISSED,
    NativeForm,
    form_of,
    native_form,
)
from nfuser.execution.runtime.tables.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from nfuser.compiler.ir.fusion import Fusion

MOST_NATIVE = 8  # forms that native code is asked about one after another


class Built:
    """The executor cache of a stage; native code serves chunks of a form met twice.

    It does so for tasks that run in one thread each, and for one that has them all. How
    many helpers others have differs from call to call, which Python sees to.
    """

    def __init__(self, fusion: Fusion) -> None:
        self.cache = FusionExecutorCache(fusion)
        self._native: dict[bool, tuple[NativeForm, ...]] = {True: (), False: ()}
        self._met: Memo[Hashable, count[int]] = Memo()

    def run(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return what the stage gives for arrays and numbers by slot."""
        with as_one_of_many():
            share = share_of_threads()
            is_alone = share == 1
            if not is_alone and share < num_threads():
                return self.cache.run(inputs)
            for call in self._native[is_alone]:
                found = call(*inputs)
                if found is not MISSED:
                    return found
            found = self.cache.run(inputs)
        self._learn(inputs, is_alone=is_alone)
        return found

    def _learn(self, inputs: Sequence[Any], *, is_alone: bool) -> None:
        """Let native code serve what comes for the second time."""
        form = form_of(inputs)
        if form is None or next(self._met.get((is_alone, form), count)[0]) != 1:
            return
        plan = self.cache.plan_for(inputs)
        positions = {slot: k for k, slot in plan.inputs.items()}
        integers = {k: k for k, x in enumerate(inputs) if type(x) is int}
        where = plan.place, positions, inputs, integers
        made = native_form(plan.program, *where, is_alone=is_alone)
        if made is not None:
            before = self._native[is_alone][: MOST_NATIVE - 1]
            self._native[is_alone] = made, *before


_built: Memo[str, Built] = Memo()


def built_for(stage: str, read: Callable[[], Fusion]) -> Built:
    """Return what this process has built for a stage; ``stage`` tells fusions apart.

    What it computes is read once.
    """
    return _built.get(stage, lambda: Built(read()))[0]


def built() -> list[FusionExecutorCache]:
    """Return what this process has built, stage by stage."""
    return [one.cache for one in _built.values()]
