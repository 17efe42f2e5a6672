# SPDX-License-Identifier: Apache-2.0
"""Loops whose turns run side by side in the loops inside them."""

from __future__ import annotations

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Call,
    Element,
    For,
    IndexValue,
    Let,
    LoopCounter,
    Memory,
    SetElement,
    Var,
)
from nfuser.compiler.lower.kernel.loop_edits import jammed

SUMS = Array(DType.F64, 8, Memory.LOCAL)


def _loop(loops: LoopCounter, first: Let) -> For:
    """Return a loop that sets a variable, and adds it to each of eight sums."""
    rows, columns = loops.make(sc.const(5)), loops.make(sc.const(8))
    total = Call("add", (Element(SUMS, columns), first.var), DType.F64)
    add = For(columns, columns.extent, (SetElement(SUMS, columns, total),))
    return For(rows, rows.extent, (first, add))


def test_what_each_turn_sets_is_a_variable_of_its_own() -> None:
    loops, var = LoopCounter(0), Var(DType.F64)
    loop = _loop(loops, Let(var, IndexValue(sc.const(3), DType.F64)))
    together, rest = jammed(loop, 2, loops)
    assert isinstance(together, For)
    first, second, adds = together.body
    assert isinstance(first, Let)
    assert isinstance(second, Let)
    assert isinstance(adds, For)
    assert first.var is not second.var
    sums = [s.value for s in adds.body if isinstance(s, SetElement)]
    added = [x.operands[1] for x in sums if isinstance(x, Call)]
    assert added == [first.var, second.var]
    assert isinstance(rest, For)
    assert rest.stop is sc.const(1)


def test_what_goes_on_from_turn_to_turn_stays_in_turns() -> None:
    loops, var = LoopCounter(0), Var(DType.F64)
    one = IndexValue(sc.const(1), DType.F64)
    loop = _loop(loops, Let(var, Call("add", (var, one), DType.F64)))
    assert jammed(loop, 2, loops) == (loop,)
