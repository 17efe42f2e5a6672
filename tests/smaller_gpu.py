# SPDX-License-Identifier: Apache-2.0
"""A GPU with less of something than the one at hand: large shapes by small arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.execution.runtime.place as place
from nfuser.compiler.schedule.facts.target import H200
from tests.schedule import run_schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from nfuser.compiler.schedule.facts.target import Target


def use_smaller_gpu(monkeypatch: pytest.MonkeyPatch, **changes: int) -> None:
    """Let schedules be chosen, until a test ends, for a target with ``changes``."""
    find: Callable[[str, int], Target] = vars(place)["_target"]

    def smaller(backend: str, index: int) -> Target:
        return replace(find(backend, index), **changes)

    monkeypatch.setattr(place, "_target", smaller)
    monkeypatch.setattr(run_schedule, "CUDA", replace(H200, **changes))
