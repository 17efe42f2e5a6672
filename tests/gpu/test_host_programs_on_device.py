# SPDX-License-Identifier: Apache-2.0
"""Host programs on a device: streams, their order, and memory that goes round."""

# pyright: reportMissingImports=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.base.debug.timeline import Timeline
from nfuser.errors import HostError
from nfuser.execution.device.describe.descriptor import describe
from nfuser.execution.host.call.stream_order import StreamWaits
from nfuser.execution.host.passes.assign_streams import assign_streams
from nfuser.execution.host.passes.lower_streams import lower_streams
from nfuser.execution.host.run.arrays_of import arrays_of
from nfuser.execution.host.run.device_arrays import CupyArrays, TorchArrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.execution.device.describe.libraries import Device, Library

pytestmark = pytest.mark.gpu
LIBRARIES = pytest.mark.parametrize("library", ["torch", "cupy"])


def _array(library: str, array: Any) -> Any:
    if library == "torch":
        torch = pytest.importorskip("torch")
        return torch.from_numpy(array).cuda()
    return pytest.importorskip("cupy").asarray(array)


def _home(array: Any) -> tuple[Library, Device]:
    d = describe(array, "an array")
    return d.library, d.device


def _host(array: Any) -> Any:
    return array.cpu().numpy() if hasattr(array, "cpu") else array.get()


def _chain(*axes: int | None) -> nfuser.HostProgram:
    hc = nfuser.HostIrContainer("chain")
    last = hc.define_tensor([-1, -1, -1])
    bindings: dict[Any, int] = {}
    for axis in axes:
        last = hc.unary("exp", hc.binary("multiply", last, -0.5))
        last = hc.set(last)
        if axis is not None:
            bindings[last] = axis
    hc.add_output(last)
    return lower_streams(hc.program(), bindings)


@LIBRARIES
@pytest.mark.parametrize("axes", [(0,), (0, 0), (0, None, 0), (0, 1, 0)])
def test_streams_change_no_bit(library: str, axes: tuple[int | None, ...]) -> None:
    x = np.random.default_rng(0).normal(size=(37, 41, 2500)).astype(np.float32)
    given = _array(library, x)
    (want,) = nfuser.HostIrEvaluator(_chain(*[None] * len(axes))).run([given])
    for streams in (1, 4):
        evaluator = nfuser.HostIrEvaluator(_chain(*axes), number_of_streams=streams)
        for _ in range(3):
            (got,) = evaluator.run([given])
            np.testing.assert_array_equal(_host(got), _host(want))


@LIBRARIES
def test_matmul_rows_and_columns(library: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (512, 512)).astype(np.float32) for _ in range(2))
    for axis in (0, 1):
        hc = nfuser.HostIrContainer()
        x, y = hc.define_tensor([-1, -1]), hc.define_tensor([-1, -1])
        product = hc.matmul(x, y)
        hc.add_output(product)
        program = lower_streams(hc.program(), {product: axis})
        given = [_array(library, a), _array(library, b)]
        (got,) = nfuser.HostIrEvaluator(program).run(given)
        np.testing.assert_array_equal(_host(got), a @ b)


def _reuse() -> nfuser.HostIrEvaluator:
    """Return a program whose side stream reads slowly what the caller's makes anew."""
    hc = nfuser.HostIrContainer("reuse")
    x = hc.define_tensor([-1, -1])
    first = hc.binary("add", x, 1.0)
    caller = hc.get_stream()
    side = hc.stream(0)
    hc.set_stream(side)
    hc.synchronize(caller)
    busy = x
    for _ in range(8):
        busy = hc.matmul(busy, x)  # keeps the side stream at work
    read = hc.binary("add", first, hc.binary("multiply", busy, 0.0))
    hc.set_stream(caller)
    hc.free(first)
    other = hc.allocate(x.shape, np.float32)
    hc.binary("multiply", x, 0.0, out=other)
    hc.synchronize(side)
    hc.add_output(read)
    hc.add_output(other)
    return nfuser.HostIrEvaluator(hc.program())


@LIBRARIES
def test_memory_used_on_another_stream_goes_round_after_it(library: str) -> None:
    evaluator = _reuse()
    array = np.eye(4096, dtype=np.float32)
    given = _array(library, array)
    for _ in range(5):
        got, zeros = evaluator.run([given])
        np.testing.assert_array_equal(_host(got), array + 1)
        assert not _host(zeros).any()


@LIBRARIES
def test_memory_that_nobody_waits_for_would_be_seen(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the wait, what the test above compares is wrong."""

    def wait(order: StreamWaits, home: Any, others: Any) -> None:
        del order, home, others

    monkeypatch.setattr(StreamWaits, "_wait", wait)
    evaluator = _reuse()
    array = np.eye(4096, dtype=np.float32)
    given = _array(library, array)
    found = [_host(evaluator.run([given])[0]) for _ in range(5)]
    assert any((got != array + 1).any() for got in found)


def _results_read_late(library: str, array: Any) -> list[Any]:
    """Return what two streams of a caller read of results that they let go at once."""
    hc = nfuser.HostIrContainer("made")
    x, factor = hc.define_tensor([-1, -1]), hc.define_tensor([])
    hc.set_stream(hc.stream(0))
    hc.add_output(hc.binary("multiply", x, factor))
    evaluator = nfuser.HostIrEvaluator(hc.program())
    given = _array(library, array)
    one, two = (_array(library, np.full((), n, np.float32)) for n in (1, 2))
    for sent in (one, two):
        _host(sent)  # has arrived: the program's stream waits for nobody
    arrays: Any = arrays_of(*_home(given))
    first, second, caller = arrays.side(101), arrays.side(102), arrays.current()
    found: list[Any] = []
    for stream in (first, second):
        arrays.use(stream)
        arrays.join(caller)
    for _ in range(5):
        arrays.use(first)
        (made,) = evaluator.run([given, one])
        busy = given
        for _ in range(8):
            busy = busy @ given  # keeps this stream at work before it reads
        found.append(made + 0 * busy)
        del made
        arrays.use(second)
        evaluator.run([given, two])
    arrays.use(caller)
    for stream in (first, second):
        arrays.join(stream)
    return [_host(got) for got in found]


@LIBRARIES
def test_results_of_side_streams_may_go_on_the_callers(library: str) -> None:
    array = np.eye(4096, dtype=np.float32)
    for got in _results_read_late(library, array):
        np.testing.assert_array_equal(got, array)


def _keep(library: Any, array: Any) -> Any:
    del library
    return array


@LIBRARIES
def test_results_that_are_not_lent_would_be_seen(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cls in (TorchArrays, CupyArrays):
        monkeypatch.setattr(cls, "lend", _keep)
    array = np.eye(4096, dtype=np.float32)
    assert any((got != array).any() for got in _results_read_late(library, array))


@LIBRARIES
def test_programs_with_streams_run_on_the_streams_of_others(library: str) -> None:
    inner = _chain(0, 0)
    hc = nfuser.HostIrContainer("outer")
    x = hc.define_tensor([-1, -1, -1, -1])
    out = hc.allocate(x.shape, np.float32)
    caller = hc.get_stream()
    with hc.loop(x.shape[0]) as i:
        hc.set_stream(hc.stream(i))
        hc.synchronize(caller)
        made = hc.launch(inner, hc.row(x, i))
        hc.binary("add", made, hc.row(x, i), out=hc.alias_select(out, 0, i))
    hc.set_stream(caller)
    with hc.loop(4) as i:
        hc.synchronize(hc.stream(i))
    hc.add_output(out)
    evaluator = nfuser.HostIrEvaluator(hc.program())
    array = np.random.default_rng(2).normal(size=(9, 7, 41, 2500)).astype(np.float32)
    given = _array(library, array)
    plain = nfuser.HostIrEvaluator(_chain(None, None))
    rows = [_host(plain.run([given[k]])[0]) for k in range(9)]
    for _ in range(3):
        (got,) = evaluator.run([given])
        np.testing.assert_array_equal(_host(got), np.stack(rows) + array)


def _microseconds(run: Callable[[], Any]) -> float:
    """Return the least time that the device takes, whatever the host takes."""
    torch = pytest.importorskip("torch")
    found: list[float] = []
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(3_000_000)  # the host is done before the device begins
        begin.record()
        run()
        end.record()
        end.synchronize()
        found.append(1e3 * begin.elapsed_time(end))
    return min(found)


def test_independent_halves_of_the_chip_run_at_once() -> None:
    """Rows that a block each scans, on half of the multiprocessors."""
    torch = pytest.importorskip("torch")
    with nfuser.FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1])
        for _ in range(6):
            t = fd.ops.sin(t)
        fd.add_output(fd.ops.cumsum(t, 1))

    def evaluator(count: int) -> nfuser.HostIrEvaluator:
        hc = nfuser.HostIrContainer("halves")
        for _ in range(count):
            hc.add_output(hc.launch(fd.fusion, hc.define_tensor([-1, -1])))
        return nfuser.HostIrEvaluator(assign_streams(hc.program()))

    one, two = evaluator(1), evaluator(2)
    rows = torch.cuda.get_device_properties(0).multi_processor_count // 2
    x = torch.rand(rows, 120_000, device="cuda")
    want = one.run([x])[0]
    for got in two.run([x, x]):
        torch.testing.assert_close(got, want, rtol=0, atol=0)
    alone = _microseconds(lambda: one.run([x]))
    both = _microseconds(lambda: two.run([x, x]))
    print(f"halves: {alone:.0f} us alone, {both:.0f} us both")  # noqa: T201
    assert both < 1.4 * alone


@LIBRARIES
def test_results_are_ready_for_the_callers_stream(library: str) -> None:
    hc = nfuser.HostIrContainer("unsynchronized")
    x = hc.define_tensor([-1, -1])
    hc.set_stream(hc.stream(1))
    busy = x
    for _ in range(8):
        busy = hc.matmul(busy, x)
    hc.add_output(hc.binary("add", busy, 1.0))
    evaluator = nfuser.HostIrEvaluator(hc.program())
    array = np.eye(4096, dtype=np.float32)
    given = _array(library, array)
    # What a stream waits for is the program's to say, and this one waits for nothing:
    # CuPy's copy from the host may still be on its way.
    np.testing.assert_array_equal(_host(given), array)
    for _ in range(3):
        (got,) = evaluator.run([given])
        np.testing.assert_array_equal(_host(got + 1), array + 2)


def test_a_fault_leaves_the_stream_of_the_caller() -> None:
    torch = pytest.importorskip("torch")

    def fail(x: Any) -> Any:
        return torch.empty(1 << 50, device="cuda")

    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    work = hc.binary("add", x, 1.0)
    hc.set_stream(hc.stream(1))
    made = hc.launch(fail, work, like=[(x.shape, np.float32)])
    hc.add_output(made)
    evaluator = nfuser.HostIrEvaluator(hc.program())
    given = torch.ones(1000, 1000, device="cuda")
    mine = torch.cuda.Stream()
    with torch.cuda.stream(mine):
        before = torch.cuda.memory_allocated()
        with pytest.raises(HostError, match=r"(?i)out.?of.?memory"):
            evaluator.run([given])
        assert torch.cuda.current_stream() == mine
        assert torch.cuda.memory_allocated() == before


def test_a_fusion_runs_on_the_stream_that_is_set() -> None:
    torch = pytest.importorskip("torch")
    with nfuser.FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.sum(fd.ops.exp(t), 1))
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1, -1])
    out = hc.allocate((x.shape[0], x.shape[1]), np.float32)
    caller = hc.get_stream()
    with hc.loop(x.shape[0]) as i:
        hc.set_stream(hc.stream(i))
        hc.synchronize(caller)
        hc.launch(fd.fusion, hc.row(x, i), out=hc.alias_select(out, 0, i))
    hc.set_stream(caller)
    with hc.loop(4) as i:
        hc.synchronize(hc.stream(i))
    hc.add_output(out)
    evaluator = nfuser.HostIrEvaluator(hc.program())
    x_array = torch.randn(9, 500, 3000, device="cuda")
    (got,) = evaluator.run([x_array])
    torch.testing.assert_close(got, x_array.exp().sum(2))


def test_a_fusion_bound_to_streams_gives_the_same_bits() -> None:
    torch = pytest.importorskip("torch")
    with nfuser.FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.mul(fd.ops.exp(t), 0.5))
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    first = hc.launch(fd.fusion, x)
    second = hc.launch(fd.fusion, first)
    hc.add_output(second)
    program = hc.program()
    given = torch.randn(37, 100_000, device="cuda")
    want = nfuser.HostIrEvaluator(program).run([given])[0].cpu()
    looped = lower_streams(program, {first: 0, second: 0})
    for streams in (1, 4):
        evaluator = nfuser.HostIrEvaluator(looped, number_of_streams=streams)
        for _ in range(3):
            torch.testing.assert_close(
                evaluator.run([given])[0].cpu(), want, rtol=0, atol=0
            )


@LIBRARIES
def test_a_timeline_has_the_times_of_the_device(library: str) -> None:
    timeline = Timeline()
    given = _array(library, np.ones((4, 1000, 1000), np.float32))
    nfuser.HostIrEvaluator(_chain(0)).run([given], timeline=timeline)
    rows = range(5)  # the caller's stream, and four of the loop
    assert {e["tid"] for e in timeline.events} > set(rows)
    on_device = [e for e in timeline.events if e["tid"] in rows]
    assert sum("set" in e["name"] for e in on_device) == 4
    assert all(0 < e["dur"] < 1e5 for e in on_device)
    host = [e for e in timeline.events if e["tid"] not in rows]
    assert min(e["ts"] for e in on_device) > min(e["ts"] for e in host) - 1e3
