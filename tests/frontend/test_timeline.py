# SPDX-License-Identifier: Apache-2.0
"""A timeline has what was traced, compiled and launched while it was open."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import config
from nfuser.base.debug import events
from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from pathlib import Path

    from nfuser.base.debug.timeline import Timeline

X = np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 6)


def _centred() -> Any:
    """Return a function whose calls launch two kernels."""

    @nfuser.fuse
    def centred(x: Any) -> Any:
        return (x - x.mean(axis=1, keepdims=True)).sum(axis=0)

    return centred


def _names(seen: Timeline, kind: str) -> list[str]:
    return [event["name"] for event in seen.events if event["cat"] == kind]


def test_a_first_call_is_traced_compiled_and_launched() -> None:
    centred = _centred()
    with nfuser.timeline() as seen:
        centred(X)
    assert _names(seen, "trace") == ["trace centred"]
    assert _names(seen, "prepare") == ["prepare centred"]
    assert {"rewrite.drop_dead_code", "rewrite centred"} <= set(_names(seen, "rewrite"))
    assert _names(seen, "launch") == [
        "centred:centred_0_kernel",
        "centred:centred_1_kernel",
    ]
    (told,) = [e["args"] for e in seen.events if e["cat"] == "prepare"]
    assert told == {"why": centred.why()}


def test_spans_lie_within_each_other() -> None:
    with nfuser.timeline() as seen:
        _centred()(X)
    (call,) = [e for e in seen.events if e["cat"] == "call"]
    launches = [e for e in seen.events if e["cat"] == "launch"]
    assert len(launches) == 2
    for inner in launches:
        assert call["ts"] <= inner["ts"]
        assert inner["ts"] + inner["dur"] <= call["ts"] + call["dur"]


def test_native_code_steps_aside_and_comes_back() -> None:
    centred = _centred()
    wanted = [centred(X) for _ in range(5)][-1]
    before = centred.native_calls
    with nfuser.timeline() as seen:
        found = [centred(X) for _ in range(4)]
    assert len(_names(seen, "call")) == 4
    assert centred.native_calls == before
    assert all(np.array_equal(f, wanted) for f in found)
    centred(X)
    assert centred.native_calls == before + (before > 0)
    assert len(_names(seen, "call")) == 4
    assert centred.cache_info().traces == 1


def test_a_bound_call_is_seen() -> None:
    call = _centred().bind(X)
    call()
    with nfuser.timeline() as seen:
        call()
    assert len(_names(seen, "launch")) == 2


def test_settings_change_within_and_around_a_timeline() -> None:
    before = config.number()
    with config.override(num_threads=1):
        inner = config.number()
        with nfuser.timeline():
            assert config.number() == inner
            assert config.words()[0] != inner
            with config.override(num_threads=2):
                assert config.is_left_to_python()
            assert config.number() == inner
        assert config.words()[0] == inner
    with nfuser.timeline(), config.override(num_threads=1):
        assert config.number() == inner
    assert (config.words()[0], config.number()) == (before, before)


class _Watcher:
    """Notes what it is told; raises where it is asked to."""

    def __init__(self, raises: bool = False) -> None:
        self.raises, self.told = raises, list[str]()

    def begin(self, name: str, kind: str) -> str:
        if self.raises:
            raise RuntimeError(kind)
        self.told.append(f"begin {name}")
        return name

    def end(self, begun: str, told: dict[str, object]) -> None:
        self.told.append(f"end {begun}")


def test_settings_stay_right_where_threads_change_and_watch_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, number = config.words()[0], config.number
    watcher = _Watcher()

    def slow() -> int:
        found = number()
        time.sleep(2e-4)  # others run between what is read and what is written
        return found

    def watch() -> None:
        for _ in range(50):
            events.watch(watcher)
            events.leave(watcher)

    monkeypatch.setattr(config, "number", slow)
    thread = threading.Thread(target=watch)
    thread.start()
    while thread.is_alive():
        with config.override(num_threads=1):
            assert config.current().num_threads == 1
        assert number() == before
    assert config.words()[0] == before


def test_a_span_ends_for_all_whom_its_beginning_was_told() -> None:
    first, second = _Watcher(), _Watcher(raises=True)
    events.watch(first)
    events.watch(second)
    try:
        with pytest.raises(RuntimeError, match="launch"), events.span("f", "launch"):
            pass
    finally:
        events.leave(first)
        events.leave(second)
    assert first.told == ["begin f", "end f"]


def test_a_definition_and_a_host_program_are_seen() -> None:
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], [True, True], nfuser.DataType.Float)
        fd.add_output(fd.ops.mul(x, 2.0))
    hc = nfuser.HostIrContainer()
    given = hc.define_tensor([-1, -1])
    hc.add_output(hc.unary("negative", given))
    with nfuser.timeline() as seen:
        fd.execute([X])
        nfuser.HostIrEvaluator(hc.program()).run([X])
    launched = [name.partition(":")[0] for name in _names(seen, "launch")]
    assert launched == ["definition", "host"]
    (statement,) = _names(seen, "statement")
    assert statement.endswith("negative(T0)")


def test_a_product_of_the_library_is_a_launch() -> None:
    product = nfuser.fuse(lambda a, b: np.tanh(a @ b))
    with nfuser.timeline() as seen:
        product(X, X.T.copy())
    assert "lambda:matmul" in _names(seen, "launch")


def test_every_thread_has_a_row_with_its_name() -> None:
    centred = _centred()
    centred(X)
    with nfuser.timeline() as seen:
        thread = threading.Thread(target=centred, args=(X,), name="beside")
        thread.start()
        thread.join()
        centred(X)
    trace = json.loads(seen.text())["traceEvents"]
    rows = {e["tid"] for e in trace if e.get("cat") == "call"}
    named = {e["tid"]: e["args"]["name"] for e in trace if e["ph"] == "M"}
    assert len(rows) == 2
    assert {named[row] for row in rows} == {"beside", threading.current_thread().name}


def test_a_file_is_written_and_a_fault_ends_the_timeline(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with nfuser.timeline(path):
        _centred()(X)
    assert "traceEvents" in json.loads(path.read_text())
    with pytest.raises(KeyError), nfuser.timeline(tmp_path / "none.json"):
        raise KeyError
    assert not (tmp_path / "none.json").exists()
    assert not events.watched()


# -- NVTX ----------------------------------------------------------------------


class _FakeNvtx(ModuleType):
    """The two functions of the package that are used."""

    def __init__(self) -> None:
        super().__init__("nvtx")
        self.said: list[str] = []

    def push_range(self, name: str) -> None:
        self.said.append(name)

    def pop_range(self) -> None:
        self.said.append("end")


def test_nvtx_ranges_are_named_by_function_and_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = _FakeNvtx()
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    centred = _centred()
    centred(X)
    with nfuser.timeline(nvtx=True):
        centred(X)
    centred(X)
    assert fake.said == [
        "nfuser call: centred",
        *("centred:centred_0_kernel", "end"),
        *("centred:centred_1_kernel", "end"),
        "end",
    ]


def test_without_nvtx_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfuser.base.debug.ranges.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "nvtx", raising=False)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(ArgumentError, match=r"^install the package nvtx"):
        nfuser.timeline(nvtx=True).__enter__()
    assert not events.watched()


# -- whole processes -----------------------------------------------------------

SCRIPT = """\
import numpy as np, nfuser
nfuser.fuse(lambda x: x * 2)(np.ones(3))
"""


@pytest.mark.parametrize("way", ["command", "variable"])
def test_a_script_is_watched_from_outside(way: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    options = ["-m", "nfuser", "timeline"] if way == "command" else []
    environment = {"NFUSER_DUMP": "timeline"} if way == "variable" else {}
    done = subprocess.run(
        [sys.executable, *options, str(script)],
        cwd=tmp_path,
        env={**_environment(), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    (path,) = tmp_path.glob("*timeline.json")
    assert f"nfuser wrote {path.name}" in done.stderr
    kinds = {e.get("cat") for e in json.loads(path.read_text())["traceEvents"]}
    assert {"trace", "prepare", "call", "launch"} <= kinds


def _environment() -> dict[str, str]:
    import os

    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, "PYTHONPATH": path}
