# SPDX-License-Identifier: Apache-2.0
"""Programs whose form was seen before run in one go, as they first ran in pieces."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false

from __future__ import annotations

import weakref
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.execution.runtime.host.link as link_module
from nfuser.base.debug.timeline import Timeline
from nfuser.errors import HostError, ShapeError
from nfuser.execution.device.describe.descriptor import CPU, Library, describe
from nfuser.execution.device.native.shared import is_as_expected
from nfuser.execution.host.call.program import text
from nfuser.execution.host.run.arrays import Arrays
from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
from nfuser.execution.runtime.host.link import MOST_STATEMENTS, link
from nfuser.execution.runtime.host.places import Linking
from nfuser.execution.runtime.place import find_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser import HostIrContainer
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.execution.runtime.place import Place

X = np.arange(24, dtype=np.float32).reshape(4, 6) / 7


def _scaled(number: float = 1.5) -> Fusion:
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.mul(x, number))
    return fd.fusion


def _row_sums() -> Fusion:
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.sum(fd.ops.exp(x), 1))
        fd.add_output(fd.ops.add(x, 1))
    return fd.fusion


def _with_numbers() -> Fusion:
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1])
        a, n = fd.define_scalar(nfuser.DataType.Double), fd.define_scalar()
        fd.add_output(fd.ops.add(fd.ops.mul(x, a), n))
    return fd.fusion


SCALED, SUMS, NUMBERS = _scaled(), _row_sums(), _with_numbers()


def _chain(hc: HostIrContainer, x: Any) -> None:
    for _ in range(4):
        x = hc.launch(SCALED, x)
    sums, more = hc.launch(SUMS, x)
    hc.add_output(sums)
    hc.add_output(hc.launch(SCALED, more))


def _views(hc: HostIrContainer, x: Any) -> None:
    turned = hc.permute(x, (1, 0))
    part = hc.slice(turned, (1, 0), (5, 4), (2, 1))
    rows, columns = x.shape
    hc.add_output(hc.launch(SCALED, part))
    hc.add_output(hc.launch(SCALED, hc.reshape(x, (rows * columns, 1))))


def _buffers(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate((2, *x.shape), np.float32)
    hc.launch(SCALED, x, out=hc.alias_select(out, 0, 1))
    hc.launch(SCALED, hc.select(out, 0, 1), out=hc.alias_select(out, 0, 0))
    hc.add_output(out)


def _strided_buffers(hc: HostIrContainer, x: Any) -> None:
    rows, columns = x.shape
    out = hc.allocate((columns, 2, rows), np.float32)
    for k in range(2):
        half = hc.permute(hc.alias_select(out, 1, k), (1, 0))
        hc.launch(SCALED, x, out=half)
    hc.add_output(out)


def _products(hc: HostIrContainer, x: Any) -> None:
    y = hc.launch(SCALED, x)
    z = hc.launch(SCALED, hc.permute(x, (1, 0)))
    hc.add_output(hc.launch(SCALED, hc.matmul(y, z)))


def _numbers(hc: HostIrContainer, x: Any) -> None:
    n = hc.define_integer()
    hc.add_output(hc.launch(NUMBERS, x, 0.25, n * 2))
    hc.add_output(hc.launch(NUMBERS, x, 3, 4))


def _given_back(hc: HostIrContainer, x: Any) -> None:
    hc.add_output(x)
    hc.add_output(hc.launch(SCALED, x))


def _row(hc: HostIrContainer, x: Any, index: Any) -> Any:
    return hc.slice(x, (index, 0), (index + 1, x.shape[1]))


def _loops(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate((x.shape[0], 2, 1, x.shape[1]), np.float32)
    with hc.loop(x.shape[0]) as i:
        row = hc.launch(SCALED, _row(hc, x, i))
        with hc.loop(1, -1, -1) as j:
            place = hc.alias_select(hc.alias_select(out, 0, i), 0, j)
            hc.launch(NUMBERS, row, 0.5, i * 2 + j, out=place)
    hc.add_output(out)


def _steps(hc: HostIrContainer, x: Any) -> None:
    """Let each iteration read what the one before has written."""
    out = hc.allocate((x.shape[0] + 1, *x.shape), np.float32)
    hc.launch(SCALED, x, out=hc.alias_select(out, 0, 0))
    made = hc.allocate(x.shape, np.float32)
    with hc.loop(x.shape[0]) as i:
        hc.launch(NUMBERS, hc.select(out, 0, i), -0.0, 1, out=made)
        hc.launch(NUMBERS, made, 0.0, 1, out=hc.alias_select(out, 0, i + 1))
    hc.add_output(made)
    with hc.loop(0):
        hc.launch(SCALED, x, out=made)


def _branches(hc: HostIrContainer, x: Any) -> None:
    n = hc.define_integer()
    out = hc.allocate(x.shape, np.float32)
    for number in (n - 5, n):
        with hc.when(number):
            hc.launch(SCALED, x, out=out)
        with hc.otherwise():
            hc.launch(NUMBERS, x, 2, n, out=out)
    hc.add_output(hc.launch(SCALED, out))


def _streams(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate(x.shape, np.float32)
    first = hc.get_stream()
    with hc.loop(x.shape[0]) as i:
        hc.set_stream(hc.stream(i))
        hc.synchronize(first)
        hc.launch(SCALED, _row(hc, x, i), out=_row(hc, out, i))
        event = hc.record()
        hc.set_stream(first)
        hc.wait(event)
    hc.add_output(hc.launch(SCALED, out))


def _in_place(hc: HostIrContainer, x: Any) -> None:
    y = hc.launch(SCALED, x)
    for _ in range(3):
        hc.launch(SCALED, y, out=y)
        hc.binary("add", y, y, out=y)
    hc.add_output(y)


def _in_place_of_a_view(hc: HostIrContainer, x: Any) -> None:
    y = hc.launch(SCALED, x)
    row = _row(hc, y, 0)
    hc.launch(SCALED, y, out=y)
    hc.add_output(hc.launch(SCALED, row))
    hc.add_output(y)


def _sums(hc: HostIrContainer, x: Any) -> None:
    """Add up rows, and numbers that depend on an index."""
    total = hc.binary("multiply", _row(hc, hc.launch(SCALED, x), 0), 0.0)
    with hc.loop(x.shape[0]) as i:
        more = hc.binary("subtract", hc.launch(SCALED, _row(hc, x, i)), i * 3)
        hc.binary("add", total, more, out=total)
    hc.add_output(hc.unary("negative", total))


def _copies(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate((x.shape[1], 2, x.shape[0]), np.float32)
    for k in range(2):
        hc.set(x, out=hc.permute(hc.alias_select(out, 1, k), (1, 0)))
    hc.add_output(hc.set(out))
    hc.add_output(out)


def _library(hc: HostIrContainer, x: Any) -> None:
    """Leave to the library what has bits of its own."""
    n = hc.define_integer()
    out = hc.allocate((2, *x.shape), np.float32)
    made = hc.unary("sin", hc.launch(SCALED, x))
    hc.binary("divide", made, 3, out=hc.alias_select(out, 0, 0))
    hc.unary("exp", made, out=hc.alias_select(out, 0, 1))
    hc.binary("arctan2", made, hc.binary("add", n, made), out=made)
    half = hc.unary("rint", hc.binary("multiply", made, 10))
    places = hc.reduce("sum", hc.binary("greater", half, 0), 0)  # integers
    hc.add_output(hc.binary("arctan2", places, hc.select(made, 0, 0)))
    hc.add_output(hc.reduce("sum", out, (0, 2)))
    hc.add_output(hc.reduce("max", hc.select(out, 2, 1), 0))
    hc.add_output(hc.matmul(hc.select(out, 0, 1), hc.permute(made, (1, 0))))
    hc.add_output(out)


def _places(hc: HostIrContainer, x: Any) -> None:
    """Write into parts of what is read."""
    total = hc.launch(SCALED, x)
    with hc.loop(x.shape[0]) as i:
        row = _row(hc, total, i)
        hc.binary("add", row, _row(hc, total, 0), out=row)
        hc.unary("sin", row, out=row)
        hc.launch(SCALED, total, out=total)
    hc.add_output(total)


PROGRAMS = [
    *(_chain, _views, _strided_buffers, _products, _numbers, _given_back),
    *(
        _buffers,
        _loops,
        _steps,
        _branches,
        _streams,
        _in_place,
        _in_place_of_a_view,
        _sums,
        _copies,
    ),
    *(_library, _places),
]


def _program(write: Callable[[HostIrContainer, Any], None]) -> nfuser.HostProgram:
    hc = nfuser.HostIrContainer("linked")
    write(hc, hc.define_tensor([-1, -1]))
    return hc.program()


def _inputs(program: nfuser.HostProgram, x: Any) -> list[Any]:
    return [x, *[5] * (len(program.inputs) - 1)]


def _assert_same(found: list[Any], wanted: list[Any]) -> None:
    for made, expected in zip(found, wanted, strict=True):
        assert type(made) is type(expected)
        made, expected = np.asarray(made), np.asarray(expected)
        assert made.strides == expected.strides
        np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("library", ["numpy", "torch", "interpret"])
@pytest.mark.parametrize("write", PROGRAMS, ids=lambda f: f.__name__)
def test_the_bits_are_those_of_single_statements(
    write: Any, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _program(write)
    backend = "interpret" if library == "interpret" else None
    evaluator = nfuser.HostIrEvaluator(program, backend=backend)
    given = X, X * 2, X[:, ::-1], X.T.copy(), X
    if library == "torch":
        torch = pytest.importorskip("torch")
        given = tuple(torch.from_numpy(x.copy()) for x in given)
    with monkeypatch.context() as patch:
        patch.setattr(link_module, "MOST_STATEMENTS", 0)
        pieces = nfuser.HostIrEvaluator(program, backend=backend)
        wanted = [pieces.run(_inputs(program, x)) for x in given]
        assert {*pieces._calls._linked.values()} <= {None}
    for x, expected in zip(given, wanted, strict=True):
        for _ in range(3):
            _assert_same(evaluator.run(_inputs(program, x)), expected)
    linked = evaluator._calls._linked.values()
    assert linked
    assert None not in linked
    if library != "interpret" and is_as_expected():
        assert len(evaluator._calls._native) == len(linked)


def _into_an_input(hc: HostIrContainer, x: Any) -> None:
    hc.add_output(hc.launch(SCALED, x))
    hc.launch(SCALED, x, out=x)
    hc.binary("add", x, x, out=x)
    row = _row(hc, x, 0)
    hc.binary("subtract", row, _row(hc, x, 1), out=row)
    hc.add_output(x)


def _scaled_there(x: Any) -> list[Any]:
    made = x * np.float32(1.5)
    there = made + made
    there[0] -= there[1]
    return [made, there]


def _sine(x: Any) -> Any:
    return np.sin(x) if isinstance(x, np.ndarray) else x.sin()


def _callable(hc: HostIrContainer, x: Any) -> None:
    made = hc.launch(_sine, hc.launch(SCALED, x), like=[(x.shape, np.float32)])
    hc.add_output(hc.launch(SCALED, made))


def _callable_into_a_part(hc: HostIrContainer, x: Any) -> None:
    out = hc.allocate((2, *x.shape), np.float32)
    for k in range(2):
        part = hc.alias_select(out, 0, k)
        hc.launch(_sine, x, out=part, like=[(x.shape, np.float32)])
    hc.add_output(out)


def _view_of_an_output(hc: HostIrContainer, x: Any) -> None:
    hc.add_output(hc.permute(hc.launch(SCALED, x), (1, 0)))


def _flat_copy(hc: HostIrContainer, x: Any) -> None:
    turned = hc.permute(hc.launch(SCALED, x), (1, 0))
    hc.add_output(hc.reshape(turned, (x.shape[0] * x.shape[1],)))


def _complex(hc: HostIrContainer, x: Any) -> None:
    y = hc.binary("multiply", x, 1 + 2j)
    hc.add_output(hc.matmul(hc.binary("add", y, x), hc.permute(y, (1, 0))))


def _of_complex(x: Any) -> list[Any]:
    y = x * np.complex64(1 + 2j)
    return [(y + x) @ y.T]


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize(
    ("write", "meaning"),
    [
        (_into_an_input, _scaled_there),
        (_callable, lambda x: [np.sin(x * np.float32(1.5)) * np.float32(1.5)]),
        (_callable_into_a_part, lambda x: [np.stack([np.sin(x)] * 2)]),
        (_view_of_an_output, lambda x: [(x * np.float32(1.5)).T]),
        (_flat_copy, lambda x: [(x * np.float32(1.5)).T.reshape(-1)]),
        (_complex, _of_complex),
    ],
    ids=lambda f: f.__name__,
)
def test_what_is_not_for_kernels_alone_is_kept_as_well(
    write: Any, meaning: Any, library: str
) -> None:
    evaluator = nfuser.HostIrEvaluator(_program(write))
    for shift in (0, 0, 1, 0):
        given = X + np.float32(shift)
        wanted = meaning(given)
        if library == "torch":
            given = pytest.importorskip("torch").from_numpy(given)
        found = evaluator.run([given])
        for made, expected in zip(found, wanted, strict=True):
            assert type(made) is type(given)
            np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-5)
    (linked,) = evaluator._calls._linked.values()
    assert linked is not None


def test_integers_of_numpy_are_kept_like_others() -> None:
    hc = nfuser.HostIrContainer()
    x, n = hc.define_tensor([-1, -1]), hc.define_integer()
    hc.add_output(hc.binary("add", hc.select(x, 0, n), n))
    evaluator = nfuser.HostIrEvaluator(hc.program())
    for number in (np.int64(2), 2, np.uint8(2), 2, np.int32(2)):
        np.testing.assert_array_equal(evaluator.run([X, number])[0], X[2] + 2)
    (linked,) = evaluator._calls._linked.values()
    assert linked is not None


def test_a_long_line_runs_in_pieces() -> None:
    hc = nfuser.HostIrContainer("long")
    x = hc.define_tensor([-1, -1])
    total = hc.set(x)
    with hc.loop(MOST_STATEMENTS):
        part = hc.launch(SCALED, total)
        hc.binary("subtract", part, total, out=total)
    hc.add_output(total)
    with hc.loop(10 * MOST_STATEMENTS):
        pass
    evaluator = nfuser.HostIrEvaluator(hc.program())
    wanted = X.copy()
    for _ in range(MOST_STATEMENTS):
        wanted = wanted * np.float32(1.5) - wanted
    for _ in range(3):
        np.testing.assert_array_equal(evaluator.run([X])[0], wanted)
    assert evaluator._calls._linked.values() == [None]
    timeline = Timeline()
    np.testing.assert_array_equal(evaluator.run([X], timeline=timeline)[0], wanted)
    assert timeline.peak_bytes <= 3 * X.nbytes


def test_an_empty_loop_of_many_turns_is_long() -> None:
    hc = nfuser.HostIrContainer("empty")
    x = hc.define_tensor([-1, -1])
    hc.add_output(hc.launch(SCALED, x))
    with hc.loop(2 * MOST_STATEMENTS):
        pass
    evaluator = nfuser.HostIrEvaluator(hc.program())
    for _ in range(3):
        evaluator.run([X])
    assert evaluator._calls._linked.values() == [None]


def test_outputs_that_are_given_are_part_of_the_form() -> None:
    evaluator = nfuser.HostIrEvaluator(_program(_chain))
    wanted = evaluator.run([X])
    for _ in range(2):
        for out in (np.zeros_like(X), np.zeros((4, 12), "f4")[:, ::2], X.T.copy().T):
            (sums, made) = evaluator.run([X], [None, out])
            assert made is out
            np.testing.assert_array_equal(out, wanted[1])
            np.testing.assert_array_equal(sums, wanted[0])
    assert len(evaluator._calls._linked.values()) == 4


def test_kernels_write_where_the_program_says(golden: Callable[[str], None]) -> None:
    program = _program(_strided_buffers)
    x = program.inputs[0].value
    caches: dict[Fusion, FusionExecutorCache] = {}
    sizes: dict[Any, int] = {
        scalar_symbols.size(0, 0): 4,
        scalar_symbols.size(0, 1): 6,
    }

    def place() -> Place:
        return find_place(Library.NUMPY, CPU, "interpret", has_arrays=True)

    def plan(_: Any, fusion: Fusion, *given: Any) -> Any:
        cache = caches.setdefault(fusion, FusionExecutorCache(fusion))
        return cache.plan_like(place(), *given)

    def refuse(*_: Any) -> Any:
        raise AssertionError

    linking = Linking(Library.NUMPY, CPU, place, plan, refuse, refuse)
    inputs: Any = {x: describe(X, "x")}
    golden(text(link(program, linking, inputs, sizes)))


def test_each_call_has_results_of_its_own() -> None:
    evaluator = nfuser.HostIrEvaluator(_program(_chain))
    results = [evaluator.run([X]) for _ in range(4)]
    arrays = [array for found in results for array in found]
    spans = sorted((a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    gone = weakref.ref(arrays.pop())
    results.clear()
    assert gone() is None


def test_other_forms_and_bad_inputs_after_native_calls() -> None:
    evaluator = nfuser.HostIrEvaluator(_program(_numbers))
    for n in (3, 3, 3, 4, 4, 4):
        (found, _) = evaluator.run([X, n])
        np.testing.assert_allclose(found, X * np.float32(0.25) + 2 * n, rtol=1e-6)
    with pytest.raises(ShapeError, match="expected 2 axes"):
        evaluator.run([X[0], 3])
    with pytest.raises(nfuser.NfuserError, match="expected 0 or more"):
        evaluator.run([X, -1])
    with pytest.raises(nfuser.NfuserError, match="expected 2 inputs"):
        evaluator.run([X])
    np.testing.assert_array_equal(
        evaluator.run({"T0": X, "n1": 3})[0], evaluator.run([X, 3])[0]
    )


def test_a_fault_names_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = nfuser.HostIrEvaluator(_program(_chain))
    for _ in range(3):
        evaluator.run([X])

    def fail(*_: Any) -> Any:
        message = "no memory"
        raise MemoryError(message)

    calls = evaluator._calls
    calls._native = (fail,)  # pyright: ignore[reportAttributeAccessIssue]
    (wanted, _), _ = evaluator.run([X]), calls.clear()
    np.testing.assert_array_equal(evaluator.run([X])[0], wanted)
    calls.clear()
    monkeypatch.setattr(FusionExecutorCache, "plan_like", fail)
    with pytest.raises(HostError, match=r"`T3: .*` failed: MemoryError: no memory"):
        evaluator.run([X])


def test_kernels_of_a_loop_write_slices_in_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hc = nfuser.HostIrContainer("slices")
    x = hc.define_tensor([-1, -1, -1])
    out = hc.allocate((x.shape[0], x.shape[2], x.shape[1]), np.float32)
    with hc.loop(x.shape[0]) as i:
        target = hc.permute(hc.alias_select(out, 0, i), (1, 0))
        hc.launch(SCALED, hc.row(x, i), out=target)
    hc.add_output(out)
    copied: list[Any] = []
    copy = Arrays.copy
    monkeypatch.setattr(Arrays, "copy", lambda *a: copied.append(a) or copy(*a))
    stack = np.stack([X, X + 1, X * 2])
    (found,) = nfuser.HostIrEvaluator(hc.program()).run([stack])
    np.testing.assert_array_equal(found, stack.transpose(0, 2, 1) * np.float32(1.5))
    assert not copied


def test_outputs_that_kernels_cannot_write_are_made() -> None:
    cache = FusionExecutorCache(SUMS)
    whole = np.zeros((2, 8, 6), np.float32)
    sums, more = cache.run([X])
    x = whole[0, :4]
    x[:] = X
    for out in (
        whole[1, :4],
        whole[1, ::2],
        whole[1, 4:, ::-1],
        np.zeros((4, 6), "f4"),
    ):
        (other, made) = cache.run([X], [None, out])
        assert made is out
        np.testing.assert_array_equal(out, more)
        np.testing.assert_array_equal(other, sums)
    for shared in (whole[0, 1:5], np.broadcast_to(np.float32(0), (4, 6))):
        (_, made) = cache.run([x], [None, shared])
        assert made is not shared
        np.testing.assert_array_equal(made, more)
    with pytest.raises(ShapeError, match="output 0: expected f32 of shape"):
        cache.run([X], [np.zeros(5, np.float32)])
    assert cache.cache_info().hits > 0
