# SPDX-License-Identifier: Apache-2.0
"""A fault in one statement names it, and leaves nothing behind."""

from __future__ import annotations

import gc
import json
import tracemalloc
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.base.debug.timeline import Timeline
from nfuser.errors import ArgumentError, HostError
from nfuser.execution.host.call import evaluate

if TYPE_CHECKING:
    from pathlib import Path

X = np.ones((3, 4), np.float32)


def test_the_statement_and_the_line_are_named() -> None:
    seen: list[weakref.ref[Any]] = []

    def fail(array: Any) -> Any:
        seen.append(weakref.ref(array))
        raise MemoryError("no more")

    hc = nfuser.HostIrContainer("faulty")
    x = hc.define_tensor([-1, 4])
    work = hc.binary("add", x, 1.0)
    made = hc.launch(fail, work, like=[(x.shape, np.float32)])
    hc.add_output(made)
    evaluator = nfuser.HostIrEvaluator(hc.program())
    with pytest.raises(HostError) as caught:
        evaluator.run([X])
    message = str(caught.value)
    assert message.startswith("faulty: `T1: f32[n0, 4] = launch fail(T2)` failed:")
    assert "MemoryError: no more" in message
    assert "test_faults.py" in message
    assert "made = hc.launch(fail, work" in message
    assert isinstance(caught.value.__cause__, MemoryError)
    del caught
    gc.collect()
    assert [ref() for ref in seen] == [None]


def test_memory_that_is_not_there_is_named() -> None:
    hc = nfuser.HostIrContainer("large")
    x = hc.define_tensor([-1, 4])
    first = hc.binary("add", x, 1.0)
    hc.add_output(first)
    hc.add_output(hc.allocate((1 << 30, 1 << 30), np.float32))
    evaluator = nfuser.HostIrEvaluator(hc.program())
    with pytest.raises(HostError, match=r"large: `T2: .* = allocate` failed: .*Memory"):
        evaluator.run([X])
    timeline = Timeline()
    with pytest.raises(HostError, match="allocate"):
        evaluator.run([X], timeline=timeline)
    assert [e["name"] for e in timeline.events] == ["T1: f32[n0, 4] = add(T0, 1.0)"]


class _Failing:
    """Interpreted kernels, of which those whose numbers are in ``bad`` do not start."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.bad = range(0)
        self.count = 0
        self.seen: list[weakref.ref[Any]] = []
        run = evaluate._InterpretedLaunch.run  # pyright: ignore[reportPrivateUsage]

        def launch(given: Any, frame: evaluate.Frame) -> None:
            self.seen.extend(weakref.ref(array) for array, _ in frame.arrays.values())
            self.count += 1
            if self.count - 1 in self.bad:
                raise RuntimeError("no such kernel")
            run(given, frame)

        patch.setattr(evaluate._InterpretedLaunch, "run", launch)  # pyright: ignore[reportPrivateUsage]


def test_a_call_that_fails_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with nfuser.FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.sum(fd.ops.exp(fd.ops.cumsum(t, 0)), 1))
    failing = _Failing(monkeypatch)
    cache = nfuser.FusionExecutorCache(
        fd.fusion, backend="interpret", should_merge=lambda a, b: False
    )
    kernels = [launch.source.entry for launch in cache.program_for([X]).launches]
    assert len(kernels) > 1
    for number, kernel in enumerate(kernels):
        failing.bad, failing.count = range(number, number + 1), 0
        with pytest.raises(RuntimeError, match="no such kernel") as caught:
            cache.run([X])
        (note,) = caught.value.__notes__
        assert note.startswith(f"in `launch {kernel}(")
        alive = [a for ref in failing.seen if (a := ref()) is not None and a is not X]
        assert not alive  # though the error is
    assert len(failing.seen) > len(kernels)


def test_a_kept_program_that_fails_names_the_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with nfuser.FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.mul(t, 2.0))
    hc = nfuser.HostIrContainer("linked")
    first = hc.launch(fd.fusion, hc.define_tensor([-1, 4]))
    second = hc.launch(fd.fusion, first)
    hc.add_output(second)
    evaluator = nfuser.HostIrEvaluator(hc.program(), backend="interpret")
    failing = _Failing(monkeypatch)
    np.testing.assert_array_equal(evaluator.run([X])[0], X * 4)
    for number, line in enumerate(("first", "second")):
        failing.bad, failing.count = range(number, 9), 0
        with pytest.raises(HostError, match="no such kernel") as caught:
            evaluator.run([X])
        assert failing.count == number + 1  # nothing runs twice
        assert "= launch definition(T" in str(caught.value)
        assert f"{line} = hc.launch(fd.fusion" in str(caught.value)
    failing.bad, failing.count = range(0), 0
    np.testing.assert_array_equal(evaluator.run([X])[0], X * 4)


def test_a_size_below_zero_names_the_statement() -> None:
    hc = nfuser.HostIrContainer("sizes")
    x = hc.define_tensor([-1])
    hc.add_output(hc.allocate((x.shape[0] - 5,), np.float32))
    evaluator = nfuser.HostIrEvaluator(hc.program())
    assert evaluator.run([np.ones(6, np.float32)])[0].shape == (1,)
    for _ in range(2):
        with pytest.raises(HostError, match=r"f32\[n0 - 5\] = allocate` failed"):
            evaluator.run([np.ones(4, np.float32)])


def test_what_a_function_gives_is_checked() -> None:
    hc = nfuser.HostIrContainer("faulty")
    x = hc.define_tensor([-1, 4])
    hc.add_output(hc.launch(np.transpose, x, like=[(x.shape, np.float32)]))
    with pytest.raises(HostError, match=r"expected an array of shape \(3, 4\)"):
        nfuser.HostIrEvaluator(hc.program()).run([X])
    hc = nfuser.HostIrContainer("faulty")
    x = hc.define_tensor([-1, 4])
    hc.add_output(hc.launch(np.isnan, x, like=[(x.shape, np.float32)]))
    with pytest.raises(HostError, match="expected an array of f32, found bool"):
        nfuser.HostIrEvaluator(hc.program()).run([X])


def _with_work() -> nfuser.HostIrEvaluator:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1])
    work = hc.allocate(x.shape, np.float32)
    hc.binary("add", x, 1.0, out=work)
    hc.add_output(hc.binary("multiply", work, 2.0))
    hc.free(work)
    return nfuser.HostIrEvaluator(hc.program())


def test_memory_that_is_freed_counts_no_more() -> None:
    evaluator, array = _with_work(), np.zeros(1000, np.float32)
    for number in range(3):
        timeline = Timeline()
        (got,) = evaluator.run([array + number], timeline=timeline)
        assert (got == 2 * (number + 1)).all()
        assert timeline.peak_bytes == 2 * array.nbytes


def test_calls_of_many_sizes_leave_no_memory_behind() -> None:
    evaluator = _with_work()
    evaluator.run([np.zeros(20_000, np.float32)], timeline=Timeline())
    tracemalloc.start()
    for number in range(40):
        evaluator.run([np.zeros(20_001 + number, np.float32)], timeline=Timeline())
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 20 * 80_000


def test_memory_that_a_function_keeps_is_not_used_again() -> None:
    kept: list[Any] = []

    def keep(array: Any) -> Any:
        kept.append(array + 1)
        return kept[-1]

    def twice(array: Any) -> Any:
        made = array + 1
        return made, made[::-1]

    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1])
    form = x.shape, np.float32
    made = hc.launch(keep, x, like=[form])
    first, second = hc.launch(twice, x, like=[form, form])
    for gone in (made, first):
        hc.free(gone)
    for _ in range(4):
        hc.binary("multiply", x, 0.0, out=hc.allocate(x.shape, np.float32))
    hc.add_output(second)
    (found,) = nfuser.HostIrEvaluator(hc.program()).run([X[0]])
    assert (found == 2).all()
    assert (kept[0] == 2).all()


def test_memory_that_a_function_gave_back_is_not_used_again() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1])
    work = hc.allocate(x.shape, np.float32)
    hc.binary("add", x, 1.0, out=work)
    same = hc.launch(np.ravel, work, like=[(x.shape, np.float32)])
    hc.free(work)
    other = hc.allocate(x.shape, np.float32)
    hc.binary("multiply", x, 0.0, out=other)
    hc.add_output(same)
    hc.add_output(other)
    first, second = nfuser.HostIrEvaluator(hc.program()).run([X[0]])
    assert (first == 2).all()
    assert not second.any()


def test_what_a_function_gives_to_be_read_alone_is_not_written() -> None:
    given = np.frombuffer(bytes(16), np.float32)

    def give(_: Any) -> Any:
        return given

    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([4])
    made = hc.launch(give, x, like=[((4,), np.float32)])
    hc.binary("add", x, made, out=made)
    hc.add_output(made)
    evaluator = nfuser.HostIrEvaluator(hc.program())
    x = np.arange(4, dtype=np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(evaluator.run([x])[0], x)
        assert not given.any()


def test_what_two_calls_of_a_function_give_lies_apart() -> None:
    kept = np.empty((64, 64), np.float32)

    def give(x: Any) -> Any:
        kept[...] = x
        return kept

    hc = nfuser.HostIrContainer()
    x = hc.define_tensor(kept.shape)
    first, second = (hc.launch(give, x, like=[(x.shape, x.dtype)]) for _ in range(2))
    hc.set(hc.permute(second, (1, 0)), out=first)
    hc.add_output(first)
    evaluator = nfuser.HostIrEvaluator(hc.program())
    given = np.arange(kept.size, dtype=np.float32).reshape(kept.shape)
    for _ in range(3):
        np.testing.assert_array_equal(evaluator.run([given])[0], given.T)


def test_a_timeline_is_a_chrome_trace(tmp_path: Path) -> None:
    timeline = Timeline()
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, 4])
    hc.add_output(hc.unary("exp", x))
    nfuser.HostIrEvaluator(hc.program()).run([X], timeline=timeline)
    timeline.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (event,) = (e for e in trace if e["ph"] == "X")
    (row,) = (e for e in trace if e["ph"] == "M")
    assert row["tid"] == event["tid"]  # the name of the thread
    assert event["name"] == "T1: f32[n0, 4] = exp(T0)"
    assert event["dur"] > 0


def test_a_refusal_of_a_call_is_the_error_that_numpy_raises_too() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1])
    hc.add_output(hc.reshape(x, (2, x.shape[0] // 2)))
    evaluator = nfuser.HostIrEvaluator(hc.program())
    with pytest.raises(HostError, match="reshape") as caught:
        evaluator.run([np.ones(5, np.float32)])
    assert isinstance(caught.value, ValueError)
    assert type(caught.value).__name__ == "HostError"


def test_what_is_no_tensor_or_exchange_is_refused_where_it_is_written() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([4])
    with pytest.raises(ArgumentError, match="found int"):
        hc.alias(hc.set(x), 3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="no exchange between ranks"):
        hc.communicate("gossip", x, (0,), (4,))
