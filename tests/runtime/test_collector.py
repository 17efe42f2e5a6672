# SPDX-License-Identifier: Apache-2.0
"""Planning a call holds off Python's collector of cycles, in this process alone."""

# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import gc
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np

import nfuser
import nfuser.execution.runtime.pieces.concretized as stages
from nfuser.base.collector import count_as_old, no_collection

if TYPE_CHECKING:
    import pytest

    from nfuser.compiler.concretize import Concrete


def test_it_is_held_off_while_a_call_is_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []
    rewrite = stages.rewrite

    def looked(concrete: Concrete) -> Concrete:
        seen.append(gc.isenabled())
        return rewrite(concrete)

    monkeypatch.setattr(stages, "rewrite", looked)
    found = nfuser.fuse(lambda x: x * 2.0 + 0.125)(np.ones(3))
    assert found[0] == 2.125
    assert seen == [False]
    assert gc.isenabled()


def test_who_had_it_disabled_finds_it_disabled() -> None:
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


FIRST = """
import gc
import numpy as np, nfuser
doubled, x, looked = nfuser.fuse(lambda x: x * 2), np.ones(3), []
note = lambda phase, info: looked.append(info["generation"]) if phase == "stop" else 0
gc.callbacks.append(note)
doubled(x)
gc.callbacks.remove(note)
print(len(looked), gc.get_count()[0], gc.get_freeze_count())
"""


def test_what_a_first_call_makes_counts_as_old() -> None:
    command = [sys.executable, "-c", FIRST]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    passes, young, frozen = map(int, told.split())
    assert passes < 10  # of the trace, during which the collector is not held off
    assert young < 2000
    assert frozen == 0


def test_what_somebody_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        count_as_old()
        assert gc.get_freeze_count() >= frozen > 0
    finally:
        gc.unfreeze()


def test_a_child_has_it_enabled_again() -> None:
    with no_collection():
        child = os.fork()
        if not child:
            os._exit(not gc.isenabled())
    assert os.waitpid(child, 0)[1] == 0
