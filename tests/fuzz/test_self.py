# SPDX-License-Identifier: Apache-2.0
"""The generator, the oracle and the judge, tested on NumPy and on broken NumPy."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.fuzz import features, flow_programs, short_programs, write_programs
from tests.fuzz.arrays import FLOAT_VALUES, LAYOUTS, build
from tests.fuzz.check import check
from tests.fuzz.drive import Task, run_one
from tests.fuzz.generate import generate
from tests.fuzz.program import Call, Input, Program, Step, compiled, script
from tests.fuzz.shape_programs import generate_shapes
from tests.fuzz.shrink import shrink
from tests.oracle import emulate
from tests.oracle.emulate import Emulated

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 300


@pytest.fixture(scope="module")
def programs() -> list[Program]:
    return [generate(0, index, 2_000) for index in range(COUNT)]


def test_numpy_is_never_wrong(programs: list[Program]) -> None:
    outcomes = [check(program, "emulate") for program in programs]
    assert [o.problem for o in outcomes if o.problem] == []
    skipped = sum(o.skipped for o in outcomes)
    assert 0 < skipped < 0.01 * sum(o.elements for o in outcomes)


def test_programs_cover_the_operations_and_dtypes(programs: list[Program]) -> None:
    sources = "".join(program.source() for program in programs)
    for name in ("exp", "where", "sum", "argmax", "softmax", "astype", "//", ">>"):
        assert name in sources, name
    dtypes = {x.dtype for program in programs for x in program.inputs}
    assert len(dtypes) == 15
    assert {len(x.dims) for program in programs for x in program.inputs} == set(
        range(6)
    )
    assert any(program.scalars for program in programs)


@pytest.mark.parametrize(("backend", "programs"), [("cpu", 12), ("interpret", 6)])
def test_chains_of_movements_are_right(backend: str, programs: int) -> None:
    task = Task(11, backend, 0, programs, shapes=True)
    reports = [run_one(task, index).report for index in range(programs)]
    assert [report for report in reports if report] == []


@pytest.mark.parametrize(("backend", "programs"), [("cpu", 6), ("interpret", 15)])
def test_loops_and_branches_are_right(backend: str, programs: int) -> None:
    tally = write_programs.Tally()
    for seed in range(40, 40 + programs):
        text, _, rank = flow_programs.generate(seed)
        write_programs.compare(text, seed, rank, backend, tally, flow_programs.SHAPES)
    assert tally.agreed > sum(tally.refused.values())


@pytest.mark.parametrize(("backend", "programs"), [("cpu", 8), ("interpret", 25)])
def test_short_programs_are_right(backend: str, programs: int) -> None:
    tally: Counter[str] = Counter()
    for seed in range(programs):
        short_programs.compare(seed, backend, tally)
    assert tally["returned"] > tally["refused"]


def test_programs_have_what_the_manual_promises() -> None:
    found = features.counted(2_000)
    assert [name for name, count in found.items() if not count] == []


def test_the_same_seed_makes_the_same_program() -> None:
    assert generate(3, 4).source() == generate(3, 4).source()
    assert generate(3, 4).source() != generate(3, 5).source()


def _unary(name: str, change: Callable[[Any], Any]) -> Any:
    def apply(x: Emulated) -> Emulated:
        good = emulate.ufunc(name, x)
        if good.data.dtype.kind != "f":
            return good
        return Emulated(change(good.data), good.dtype)

    return apply


def _instead(name: str) -> Any:
    def apply(*args: Any) -> Emulated:
        return emulate.ufunc(name, *args)

    return apply


def _half_up(x: Any) -> Emulated:
    return emulate.ufunc("floor", x + 0.5)


def _halved(x: Any, y: Any) -> Emulated:
    return emulate.ufunc("floor_divide", x, 2)


def _truncated(x: Emulated, dtype: Any) -> Emulated:
    good = emulate.astype(x, dtype)
    if good.dtype.name != "bfloat16" or x.data.dtype != np.float32:
        return good
    bits = x.data.view(np.uint32) & np.uint32(0xFFFF0000)
    return Emulated(bits.view(np.float32), good.dtype)


def _last(x: Emulated, axis: int | None = None, keepdims: bool = False) -> Emulated:
    if axis is None:
        return emulate.fold("argmax", x, axis=axis, keepdims=keepdims)
    turned = Emulated(np.flip(x.data, axis), x.dtype)
    back = emulate.fold("argmax", turned, axis=axis, keepdims=keepdims)
    return Emulated(x.shape[axis] - 1 - back.data, back.dtype)


def _hasty_softmax(x: Any, axis: Any = -1) -> Any:
    powers = np.exp(x)
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _short(name: str) -> Any:
    def apply(x: Emulated, *args: Any, **kwargs: Any) -> Emulated:
        good = emulate.fold(name, x, *args, **kwargs)
        if good.data.dtype != np.float32:
            return good
        return Emulated(good.data * np.float32(1 + 2e-5), good.dtype)

    return apply


BROKEN: dict[str, Any] = {
    "exp": _unary("exp", lambda y: y * (1 + y.dtype.type(2.0**-18))),
    "tanh": _unary("tanh", lambda y: y + y * np.finfo(y.dtype).eps * 32),
    "sqrt": _unary("sqrt", lambda y: np.where(np.isnan(y), 0, y)),
    "floor": _instead("trunc"),
    "rint": _half_up,
    "maximum": _instead("fmax"),
    "fmin": _instead("minimum"),
    "remainder": _instead("fmod"),
    "right_shift": _halved,
    "less": _instead("less_equal"),
    "sign": _instead("positive"),
    "logical_xor": _instead("logical_or"),
    "sum": _short("sum"),
    "mean": _short("mean"),
    "argmax": _last,
    "softmax": _hasty_softmax,
    "astype": _truncated,
}
# What few random programs show is shown by these, as long as they stay as they are.
SHOWN = {"maximum": 1529, "fmin": 562}
SPELLED = {"remainder": "%", "right_shift": ">>", "less": " < ", "sum": "sum("}


@cache
def _another(index: int) -> Program:
    return generate(2, index, 2_000)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_function_is_found(
    name: str, programs: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(emulate.FUNCTIONS, name, BROKEN[name])
    spelled = SPELLED.get(name, name)
    indices = [*range(10 * COUNT)]
    more = map(_another, [*indices[SHOWN.get(name, 0) :], *indices])
    using = (p for p in chain(programs, more) if spelled in p.source())
    assert any(check(program, "emulate").problem for program in using)


@pytest.fixture(scope="module")
def chains() -> list[Program]:
    return [generate_shapes(0, index, 2_000) for index in range(COUNT)]


def test_numpy_is_never_wrong_about_movements(chains: list[Program]) -> None:
    outcomes = [check(program, "emulate") for program in chains]
    assert [o.problem for o in outcomes if o.problem] == []


def test_chains_cover_the_movements_and_change_sizes(chains: list[Program]) -> None:
    sources = "".join(program.source() for program in chains)
    for name in ("reshape", "concatenate", "stack", "roll", "pad", "tile", "repeat"):
        assert f"{name}(" in sources, name
    for name in ("take(", "take_along_axis", "broadcast_to", ":-1", "-1)", "[..., "):
        assert name in sources, name
    again = [p for p in chains if len(set(map(p.calls.index, p.calls))) < len(p.calls)]
    assert len(again) > COUNT // 2
    assert any(isinstance(n, str) for p in chains for n in p.calls[0].scalars.values())


def _seldom_wraps(x: Emulated, shift: Any, axis: int | None = None) -> Emulated:
    good = emulate.VIEWS["roll"](x.data, shift, axis)
    return Emulated(x.data if np.size(shift) == 1 and shift == 1 else good, x.dtype)


def _in_order(x: Emulated, *shape: Any) -> Emulated:
    return Emulated(x.data.reshape(*shape, order="F"), x.dtype)


@pytest.mark.parametrize(
    ("name", "broken"), [("roll", _seldom_wraps), ("reshape", _in_order)]
)
def test_a_broken_movement_is_found(
    name: str, broken: Any, chains: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(emulate.FUNCTIONS, name, broken)
    using = (p for p in chains if f"{name}(" in p.source())
    assert any(check(program, "emulate").problem for program in using)


def test_a_repeated_call_that_differs_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = count()

    def drifting(x: Emulated) -> Emulated:
        off = next(seen) % 2 * np.finfo("f4").eps
        return Emulated(x.data * x.data * (1 + off), x.dtype)

    monkeypatch.setitem(emulate.FUNCTIONS, "square", drifting)
    steps = (Step("t0", "np.square({0})", ("x0",)),)
    call = Call({"n0": 8}, {})
    x = Input("x0", "float32", ("n0",), "normal")
    again = Program((x,), (), steps, ("t0",), (call, call))
    assert "when repeated differs" in (check(again, "emulate").problem or "")


def test_sizes_are_sums_of_products() -> None:
    call = Call({"n0": 3, "n1": 4}, {"s0": "n0*n1", "s1": -1})
    assert [call.size(d) for d in ("1", "n1", "2*n0+n1", "n0*n1")] == [1, 4, 10, 12]
    assert [call.number(name) for name in ("s0", "s1")] == [12, -1]


def _example() -> Program:
    x = Input("x0", "float32", ("n0", "n1"), "special", "permuted", 5)
    y = Input("x1", "float32", ("m0", "n1"), "normal", "reversed", 6)
    steps = (
        Step("t0", "{0} + {1}", ("x0", "x1")),
        Step("t1", "np.maximum({0}, {1})", ("x1", "x0")),
        Step("t2", "{0} * {1}", ("t0", "t1")),
        Step("t3", "np.sum({0}, axis=0)", ("t2",)),
    )
    sizes = {"n0": 33, "n1": 16, "m0": 1, "m1": 1}
    calls = (Call({**sizes, "n0": 2}, {}), Call(sizes, {}))
    return Program((x, y), (), steps, ("t3", "t1"), calls)


def test_shrinking_keeps_what_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(emulate.FUNCTIONS, "maximum", BROKEN["maximum"])
    small = shrink(_example(), "emulate")
    assert [step.text for step in small.steps] == ["np.maximum({0}, {1})"]
    assert {x.layout for x in small.inputs} == {"contiguous"}
    assert len(small.calls) == 1
    assert check(small, "emulate").problem


def test_a_refusal_must_be_shared() -> None:
    program = _example()
    steps = (*program.steps, Step("t4", "{0} & {0}", ("t3",)))
    refused = replace(program, steps=steps, outputs=("t4",))
    assert check(refused, "emulate").problem is None


def test_the_script_names_everything_it_needs() -> None:
    text = script(_example(), "cpu")
    compile(text, "script", "exec")
    assert "build('float32', (33, 16), 'special', 'permuted', 1005)" in text
    assert compiled(_example().source(), "<example>", None).__name__ == "program"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("values", FLOAT_VALUES)
def test_layouts_hold_the_same_values_whatever_their_strides(
    layout: str, values: str
) -> None:
    made = build("float32", (3, 4, 5), values, layout, 7)
    again = build("float32", (3, 4, 5), values, layout, 7)
    plain = build("float32", (3, 4, 5), values, "contiguous", 7)
    np.testing.assert_array_equal(made, again)
    assert made.strides == again.strides
    if layout != "stretched":
        np.testing.assert_array_equal(made, plain)
    if layout in ("contiguous", "offset", "fortran"):
        assert made.flags.c_contiguous == (layout != "fortran")
