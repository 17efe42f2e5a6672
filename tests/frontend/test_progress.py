# SPDX-License-Identifier: Apache-2.0
"""A first call that takes long says how far it is, where somebody looks on."""

from __future__ import annotations

import io
import re
import sys
import time
from itertools import count, pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser import config
from nfuser.base.debug import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "_PAUSE", 0.01)


_numbers = count(3)


def _several() -> Any:
    number = next(_numbers)  # a fusion that nothing has compiled

    def several(x: Any) -> Any:
        centred = x - x.mean(1, keepdims=True)
        return centred.sum(0), (x @ x.T).max(0) * number

    return nfuser.fuse(several)


def _watched(monkeypatch: pytest.MonkeyPatch, stream: Any, **settings: Any) -> str:
    def slow(name: str) -> None:
        time.sleep(0.03)
        kept(name)

    kept = progress.stage
    monkeypatch.setattr(progress, "stage", slow)
    monkeypatch.setattr(sys, "stderr", stream)
    with config.override(**settings):
        _several()(np.ones((4, 3)))
    return stream.getvalue()


def test_a_terminal_shows_one_line_that_is_rewritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = _watched(monkeypatch, Terminal())
    assert shown.count("\n") == 1
    assert "\rnfuser: several: tracing, 0 s" in shown
    assert re.search(r"\w+ing kernel 1 of [23], \d+ s", shown)
    last = shown.rpartition("\r")[2]
    assert re.match(r"nfuser: several: ready, [23] kernels after [\d.]+ s", last)


def test_without_a_terminal_it_is_said_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _watched(monkeypatch, io.StringIO()) == ""
    lines = _watched(monkeypatch, io.StringIO(), progress=True).splitlines()
    assert lines[-1].startswith("nfuser: several: ready")
    told = [line.rpartition(",")[0] for line in lines]
    assert all(a != b for a, b in pairwise(told))
    assert config.from_environment({"NFUSER_PROGRESS": "1"}).progress is True


def test_a_terminal_stays_silent_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _watched(monkeypatch, Terminal(), progress=False) == ""


def test_a_notebook_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class ZMQInteractiveShell:
        pass

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            assert raw
            shown.append(data["text/html"])

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        shown.append(data["text/html"])
        return Handle()

    shell: Any = ModuleType("IPython")
    shell.get_ipython = ZMQInteractiveShell
    output: Any = ModuleType("IPython.display")
    output.display = display
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", output)
    assert _watched(monkeypatch, io.StringIO()) == ""
    assert shown[0].startswith("<progress value=")
    assert re.search(r"ready, [23] kernels", shown[-1])


def test_a_quick_call_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    assert _watched(monkeypatch, Terminal()) == ""
