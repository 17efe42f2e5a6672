# SPDX-License-Identifier: Apache-2.0
"""Which stream waits for which, on a device that only writes it down."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.base.debug.timeline import Timeline
from nfuser.errors import HostError
from nfuser.execution.device.describe.libraries import Device, Library
from nfuser.execution.host.passes.assign_streams import assign_streams
from nfuser.execution.host.passes.lower_streams import lower_streams
from nfuser.execution.host.run.arrays import Arrays
from nfuser.execution.runtime.host import linked_calls

if TYPE_CHECKING:
    from pathlib import Path

X = np.arange(28, dtype=np.float32).reshape(7, 4)


class _Stream:
    """Not every library's streams can be hashed."""

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Stream) and self.name == other.name


class _Device(Arrays):
    """NumPy's arrays, as if they were on a device."""

    def __init__(self) -> None:
        super().__init__(Library.NUMPY, Device("cuda"))
        self.log: list[str] = []
        self.now = _Stream("caller")
        self.events = 0

    def current(self) -> Any:
        return self.now

    def side(self, number: int) -> Any:
        return _Stream(f"side {number}")

    def use(self, stream: Any) -> None:
        self.now = stream

    def join(self, stream: Any) -> None:
        self.log.append(f"{self.now.name} waits for {stream.name}")

    def lend(self, array: Any) -> Any:
        self.log.append(f"{self.now.name} takes {array.shape}")
        return array

    def record(self) -> Any:
        self.events += 1
        return f"event {self.events} of {self.now.name}"

    def wait(self, event: Any) -> None:
        self.log.append(f"{self.now.name} waits for {event}")

    def mark(self) -> Any:
        self.events += 1
        return self.events

    def elapsed(self, begin: Any, end: Any) -> float:
        return 10.0 * (end - begin)

    def stream_number(self) -> int:
        return sum(map(ord, self.now.name))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> _Device:
    made = _Device()
    monkeypatch.setattr(linked_calls, "arrays_of", lambda library, where: made)
    return made


def _run(program: nfuser.HostProgram, *arrays: Any, streams: int = 4) -> list[Any]:
    evaluator = nfuser.HostIrEvaluator(program, number_of_streams=streams)
    return evaluator.run(list(arrays))


def test_a_parallel_loop_waits_once_for_each_stream(device: _Device) -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    first = hc.set(x)
    second = hc.set(first)
    hc.add_output(second)
    program = lower_streams(hc.program(), {first: 0, second: 0})
    np.testing.assert_array_equal(_run(program, X, streams=2)[0], X)
    assert device.log == [
        "side 0 waits for event 1 of caller",
        "side 1 waits for event 1 of caller",
        "caller waits for side 0",
        "caller waits for side 1",
    ]


def test_independent_statements_wait_for_what_they_need(device: _Device) -> None:
    hc = nfuser.HostIrContainer()
    x, y = hc.define_tensor([-1, -1]), hc.define_tensor([-1, -1])
    left, right = hc.unary("exp", x), hc.unary("sin", y)
    hc.add_output(hc.binary("add", left, right))
    made = _run(assign_streams(hc.program()), X, X)
    np.testing.assert_allclose(made[0], np.exp(X) + np.sin(X))
    assert device.log == [
        "side 0 waits for event 1 of caller",
        "side 0 waits for event 2 of caller",
        "caller waits for side 0",  # which has read memory of the caller's
        "caller waits for side 0",
        "caller takes (7, 4)",
    ]


def test_a_view_that_is_copied_is_work_of_a_stream(
    device: _Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy(_: Any, source: Any, out: Any) -> Any:
        device.log.append(f"{device.now.name} copies {source.shape}")
        out[...] = source
        return out

    monkeypatch.setattr(Arrays, "copy", copy)
    hc = nfuser.HostIrContainer()
    x, y = hc.define_tensor([-1, -1]), hc.define_tensor([-1, -1])
    left, right = hc.unary("exp", x), hc.unary("sin", y)
    turned = hc.allocate(x.shape[::-1], np.float32)
    hc.permute(right, (1, 0), out=turned)
    hc.permute(left, (1, 0))
    hc.add_output(left)
    hc.add_output(turned)
    _run(assign_streams(hc.program()), X, X)
    assert "side 0 copies (4, 7)" in device.log
    assert sum("copies" in line for line in device.log) == 1


def test_written_inputs_that_overlap_others_keep_to_one_stream(
    device: _Device,
) -> None:
    hc = nfuser.HostIrContainer()
    x, y = hc.define_tensor([-1, -1]), hc.define_tensor([-1, -1])
    hc.add_output(hc.unary("sin", x))
    hc.binary("multiply", y, 2.0, out=y)
    hc.add_output(y)
    program = assign_streams(hc.program())
    rows = X / 7
    want = np.sin(rows[:5])
    _run(program, rows[:2], rows[4:].copy())
    assert any(line.startswith("side 0") for line in device.log)
    device.log.clear()
    (made, _) = _run(program, rows[:5], rows[2:])
    np.testing.assert_array_equal(made, want)
    assert not any(line.startswith("side") for line in device.log)


def test_memory_used_elsewhere_is_waited_for_before_it_goes(device: _Device) -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    work = hc.binary("add", x, 1.0)
    caller = hc.get_stream()
    hc.set_stream(hc.stream(3))
    hc.synchronize(caller)
    read = hc.binary("multiply", work, 2.0)
    hc.set_stream(caller)
    hc.free(work)
    hc.add_output(read)
    np.testing.assert_array_equal(_run(hc.program(), X)[0], (X + 1) * 2)
    assert device.log[:2] == ["side 3 waits for caller", "caller waits for side 3"]


def test_the_caller_waits_for_what_the_program_left_running(device: _Device) -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    hc.set_stream(hc.stream(1))
    hc.add_output(hc.unary("exp", x))
    _run(hc.program(), X)
    assert device.log == ["caller waits for side 1", "caller takes (7, 4)"]
    assert device.now.name == "caller"


def test_only_results_of_other_streams_are_lent(device: _Device) -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    mine = hc.unary("exp", x)
    hc.set_stream(hc.stream(1))
    theirs = hc.unary("exp", x)
    for output in (x, mine, hc.row(mine, 0), theirs, hc.row(theirs, 0)):
        hc.add_output(output)
    _run(hc.program(), X)
    taken = [line for line in device.log if "takes" in line]
    assert taken == ["caller takes (7, 4)", "caller takes (4,)"]


def test_a_fault_goes_back_to_the_callers_stream(device: _Device) -> None:
    def fail(x: Any) -> Any:
        raise MemoryError

    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    hc.set_stream(hc.stream(1))
    work = hc.unary("exp", x)
    hc.add_output(hc.launch(fail, work, like=[(x.shape, np.float32)]))
    with pytest.raises(HostError, match="launch fail"):
        _run(hc.program(), X)
    assert device.now.name == "caller"
    assert device.log == ["caller waits for side 1"]


def test_a_timeline_shows_what_each_stream_did(device: _Device, tmp_path: Path) -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    hc.add_output(made := hc.set(x))
    program = lower_streams(hc.program(), {made: 0})
    timeline = Timeline()
    nfuser.HostIrEvaluator(program, number_of_streams=2).run([X], timeline=timeline)
    timeline.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    rows = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    streams = {0: "device stream 0", 1: "device stream 1"}
    assert rows.items() > streams.items()
    assert len(rows) == 3  # and that of this thread
    on_device = [e for e in events if e["ph"] == "X" and e["tid"] in streams]
    assert [e["tid"] for e in on_device] == [k % 2 for k in range(7)]
    assert {e["name"] for e in on_device} == {"T3 = set(T2)"}
    assert str(program).count("T3 = set(T2)") == 1
    assert {e["dur"] for e in on_device} == {10.0}
    starts = [e["ts"] for e in on_device]
    assert starts == sorted(starts)
    # The host's rows show the loop, and what is inside of it.
    assert sum(e["name"].startswith("parallel for") for e in events) == 1
    assert sum("alias_select" in e["name"] for e in events) == 14
