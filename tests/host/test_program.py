# SPDX-License-Identifier: Apache-2.0
"""Programs are printed, verified statement by statement, and honour aliases."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import nfuser
import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.config as config
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.tensor import tensor
from nfuser.errors import ArgumentError, DTypeError, ShapeError, VerifyError
from nfuser.execution.host.ir.verify import verify

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.execution.host.ir.statements import Statement

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def _all_statements() -> nfuser.HostProgram:
    with nfuser.FusionDefinition() as fd:
        given = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.mul(given, 2.0))
    hc = nfuser.HostIrContainer("everything")
    x = hc.define_tensor([-1, 4], name="x")
    n = hc.define_integer("n")
    twice = hc.launch(fd, x)
    total = hc.allocate(x.shape, np.float32)
    hc.set(twice, out=total)
    caller = hc.get_stream()
    hc.set_stream(hc.stream(n))
    hc.synchronize(caller)
    event = hc.record()
    hc.set_stream(caller)
    hc.wait(event)
    with hc.loop(1, n, 2) as i:
        hc.binary("add", hc.alias_select(total, 0, i), i, out=hc.row(total, i))
    with hc.when(scalar_functions.less(n, 2)):
        hc.unary("negative", total, out=total)
    with hc.otherwise():
        hc.binary("multiply", total, total, out=total)
    side = hc.permute(hc.slice(total, (0, 0), (2, 4), (1, 2)), (1, 0))
    hc.add_output(hc.matmul(x, hc.reshape(side, (4, 1))))
    hc.add_output(hc.reduce("sum", total, (0, 1)))
    hc.free(twice)
    return hc.program()


def test_every_statement_has_a_line(golden: Callable[[str], None]) -> None:
    golden(re.sub(r"  # \S+:\d+$", "", str(_all_statements()), flags=re.MULTILINE))


def test_inputs_are_bound_by_name_or_position() -> None:
    evaluator = nfuser.HostIrEvaluator(_all_statements())
    first = evaluator.run([X, 3])
    second = evaluator.run({"n": 3, "x": X})
    total = X * 2
    total[1] += 1
    total *= total
    want = X @ total[:2, ::2].T.reshape(4, 1)
    for product, folded in (first, second):
        np.testing.assert_allclose(product, want)
        assert folded == total.sum()
    with pytest.raises(ArgumentError, match="expected inputs"):
        evaluator.run({"x": X})
    with pytest.raises(ShapeError, match=r"input x .*expected shape \(3, 4\)"):
        evaluator.run([X[:, :2], 3])
    with pytest.raises(DTypeError, match=r"input x .*expected f32, found f64"):
        evaluator.run([X.astype(np.float64), 3])


def test_lines_of_the_user_are_kept() -> None:
    program = _all_statements()
    assert {str(s.line).rpartition("/")[2][:15] for s in st.walk(program.body)} == {
        "test_program.py"
    }


def test_programs_are_dumped(capsys: pytest.CaptureFixture[str]) -> None:
    with config.override(dump=frozenset({"host"})):
        program = _all_statements()
        with nfuser.FusionDefinition(backend="interpret") as fd:
            fd.add_output(fd.ops.relu(fd.define_tensor(shape=[-1, -1])))
        fd.execute([X])
    written, called = capsys.readouterr().err.split("--- nfuser host\n")[1:]
    assert written == str(program)
    assert "out0 = allocate f32[3, 4]" in called


# -- aliases -----------------------------------------------------------------


def test_an_alias_is_followed_to_the_end() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    memory = hc.allocate(x.shape, np.float32)
    first = hc.binary("add", x, 1.0)
    second = hc.binary("multiply", first, 2.0)
    hc.alias(first, memory)
    hc.alias(second, first)
    hc.add_output(second)
    hc.add_output(memory)
    one, other = nfuser.HostIrEvaluator(hc.program()).run([X])
    assert one is other
    np.testing.assert_array_equal(one, (X + 1) * 2)


def test_an_output_may_take_the_memory_of_an_input() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    hc.add_output(hc.binary("add", x, 1.0), alias_input=x)
    array = X.copy()
    (got,) = nfuser.HostIrEvaluator(hc.program()).run([array])
    assert got is array
    np.testing.assert_array_equal(array, X + 1)


def test_inputs_cannot_be_aliased_and_cycles_are_refused() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    a, b = hc.set(x), hc.set(x)
    with pytest.raises(ArgumentError, match="Inputs cannot be aliased"):
        hc.alias(x, a)
    hc.alias(a, b)
    with pytest.raises(ArgumentError, match="cycle"):
        hc.alias(b, a)
    with pytest.raises(DTypeError, match="f64 cannot use the memory of f32"):
        hc.alias(hc.allocate(x.shape, np.float64), b)


# -- the verifier ------------------------------------------------------------


def _changed(
    change: Callable[[list[Statement]], list[Statement]],
) -> nfuser.HostProgram:
    hc = nfuser.HostIrContainer("broken")
    x = hc.define_tensor([-1, -1])
    y = hc.set(x)
    hc.unary("exp", y, out=y)
    program = hc.program()
    return replace(program, body=tuple(change(list(program.body))))


F32 = nfuser.DataType.Float.value
STRAY = tensor([3, 4], F32)
INDEX = scalar_symbols.loop_index(9, 3)
BROKEN: dict[str, tuple[str, Callable[[list[Statement]], list[Statement]]]] = {
    "order": ("nothing has given yet", lambda s: s[::-1]),
    "freed": (
        "reads what was freed",
        lambda s: [s[0], st.Free(st.writes(s[0])[0]), s[1]],
    ),
    "twice": (
        "reads what was freed",
        lambda s: [*s, *[st.Free(st.writes(s[0])[0])] * 2],
    ),
    "stream": (
        "no statement got this stream",
        lambda s: [*s, st.SetStream(st.HostStream())],
    ),
    "event": ("nothing recorded this event", lambda s: [*s, st.Wait(st.Event())]),
    "index": (
        "the index of a loop that it is not in",
        lambda s: [*s, st.SelectOp(st.writes(s[0])[0], 0, INDEX, STRAY)],
    ),
    "size": (
        "no input's",
        lambda s: [*s, st.Allocate(tensor([scalar_symbols.size(5, 0)], F32))],
    ),
    "axes": (
        "the result has another shape",
        lambda s: [*s, st.PermuteOp(st.writes(s[0])[0], (1, 0), tensor([3], F32))],
    ),
    "dtype": (
        "expected a result of bool, found f32",
        lambda s: [*s, st.UnaryOp("isnan", st.writes(s[0])[0], st.writes(s[0])[0])],
    ),
    "input": (
        "the caller owns",
        lambda s: [*s, st.Free(st.reads(s[0])[0])],
    ),
    "again": (
        "it has memory already",
        lambda s: [*s, st.Allocate(st.writes(s[0])[0])],
    ),
    "step": (
        "a step that is not 0",
        lambda s: [*s, st.ForLoop(INDEX, sc.const(0), sc.const(3), 0, ())],
    ),
    "name": (
        "lapse is no elementwise function",
        lambda s: [*s, st.UnaryOp("lapse", st.writes(s[0])[0], STRAY)],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_program_is_refused_with_its_statement(name: str) -> None:
    message, change = BROKEN[name]
    with pytest.raises(VerifyError, match=message) as caught:
        verify(_changed(change))
    assert "\n  " in str(caught.value)


def test_the_builder_refuses_what_does_not_fit() -> None:
    hc = nfuser.HostIrContainer()
    x, y = hc.define_tensor([2, 3]), hc.define_tensor([4, 3])
    with pytest.raises(ShapeError, match=r"add: operands of shapes \[2, 3\] and"):
        hc.binary("add", x, y)
    with pytest.raises(ShapeError, match="matmul"):
        hc.matmul(x, y)
    with pytest.raises(ShapeError, match="another shape"):
        hc.set(x, out=y)
    with pytest.raises(ArgumentError, match="none of the reductions"):
        hc.reduce("median", x, 0)
    with pytest.raises(DTypeError, match="negative: NumPy does not take bool"):
        hc.unary("negative", hc.unary("isnan", x))
    with nfuser.FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.neg(t))
    with pytest.raises(ShapeError, match="operand 0 of definition: expected 2 axes"):
        hc.launch(fd, hc.row(x, 0))
    with pytest.raises(DTypeError, match="operand 0 of definition: expected f32"):
        hc.launch(fd, hc.binary("add", x, np.pi * 1j))
    with pytest.raises(ArgumentError, match="operand 0 of definition: expected a ten"):
        hc.launch(fd, 2.0)
    with pytest.raises(ShapeError, match="a -1 has to be spelled out"):
        hc.reshape(x, (-1, 2))
    with pytest.raises(TypeError, match="float"):
        hc.loop(2.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match="an input is called T0 already"):
        hc.define_tensor([2], name="T0")
    with pytest.raises(ArgumentError, match="add: expected a tensor or Python's numb"):
        hc.binary("add", x, np.float32(2))  # pyright: ignore[reportArgumentType]


def test_inputs_without_a_name_take_one_that_is_free() -> None:
    hc = nfuser.HostIrContainer()
    hc.define_tensor([2], name="T1")
    hc.define_tensor([2])
    hc.define_integer("n3")
    hc.define_integer()
    hc.add_output(hc.set(hc.define_tensor([2])))
    assert [x.name for x in hc.program().inputs] == ["T1", "T2", "n3", "n4", "T3"]


def test_conditions_and_counts_may_be_plain_numbers() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1])
    out = hc.set(x)
    for condition in (True, 0):
        with hc.when(condition):
            hc.binary("add", out, 1.0, out=out)
        with hc.otherwise():
            hc.binary("add", out, 10.0, out=out)
        with pytest.raises(ArgumentError, match="otherwise follows when"):
            hc.otherwise().__enter__()
    with hc.loop(np.int64(3)):  # pyright: ignore[reportArgumentType]
        hc.binary("add", out, 100.0, out=out)
    hc.add_output(out)
    (got,) = nfuser.HostIrEvaluator(hc.program()).run([np.zeros(2, np.float32)])
    np.testing.assert_array_equal(got, [311, 311])
