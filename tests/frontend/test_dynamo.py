# SPDX-License-Identifier: Apache-2.0
"""What is kept for torch, which may be imported later or never."""

# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import NoReturn

import numpy as np
import pytest

import nfuser
from nfuser.frontend.fuse import dynamo


def test_functions_made_in_one_place_wait_for_torch_once() -> None:
    waiting: list[int] = []
    for _ in range(20):
        nfuser.fuse(lambda x: x + 1)(np.ones(3))
        waiting.append(len(dynamo._waiting))
    assert waiting[1] == waiting[-1]


def test_a_torch_that_cannot_be_told_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise TypeError("other arguments")

    compiler = SimpleNamespace(substitute_in_graph=refuse)
    torch = SimpleNamespace(compiler=compiler, __version__="9.9")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._dynamo", SimpleNamespace())
    with pytest.warns(RuntimeWarning, match=r"torch 9\.9 .*other arguments"):
        assert dynamo.follow(nfuser.Fused)
