# SPDX-License-Identifier: Apache-2.0
"""Planning a call holds off Python's collector of cycles, in this process alone."""

# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import numpy as np

import nfuser
import nfuser.execution.runtime.pieces.concretized as stages
from nfuser.base.collector import no_collection

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


def test_a_child_has_it_enabled_again() -> None:
    with no_collection():
        child = os.fork()
        if not child:
            os._exit(not gc.isenabled())
    assert os.waitpid(child, 0)[1] == 0
