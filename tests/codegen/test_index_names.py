# SPDX-License-Identifier: Apache-2.0
"""Loops of a CPU kernel begin with what the indices in them have in common."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import nfuser
import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.codegen.printers.index_names import shared_parts
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.tensor import TensorView, axis
from nfuser.compiler.lower.kernel.kernel_ir import Buffer, If, Let, Load, Number, Var

_INPUT = Buffer(
    DType.F64, TensorView((axis(scalar_symbols.size(0, 0)),), DType.F64), "in"
)


def _stencil(x: Any) -> Any:
    return x[2:, 1:-1] + x[:-2, 1:-1] - x[1:-1, 2:] * x[1:-1, :-2]


def _source(function: Any, *arrays: Any) -> str:
    (kernel,) = nfuser.fuse(function).kernels(*arrays)
    return kernel.source


def test_a_row_begins_where_it_was_said_once() -> None:
    inside = _source(_stencil, np.ones((30, 4000))).split("for i")[1:]
    assert inside
    for loop in inside:
        places = re.findall(r"(?:load|store)\(T\d, ([^,)]*)", loop)
        assert places
        assert all(re.fullmatch(r"at(_\d+)? \+ i\d( \+ \d)?", p) for p in places)


def _difference(x: Any) -> Any:
    return x[:, 1:] - x[:, :-1]


def test_neighbours_share_a_base() -> None:
    last = _source(_difference, np.ones((30, 40))).split("for i")[-1]
    assert len(set(re.findall(r"load\(T0, (\w+) \+", last))) == 1


def _short(x: Any) -> Any:
    return x[:, :30] + x[:, 1:31]


def test_a_constant_length_is_not_asked_whether_it_is_long() -> None:
    source = _source(_short, np.ones((30, 40)))
    assert "range(30)" in source
    assert "select(" not in source


def _every_other(x: Any) -> Any:
    return x[:, ::2] * 2


def test_rows_that_only_these_sizes_join_are_not_divided_into() -> None:
    _, *loops = _source(_every_other, np.ones((100, 2000))).split("for i")
    assert loops
    assert not any("div(" in loop or "rem(" in loop for loop in loops)


def _joined(a: Any, b: Any) -> Any:
    m = 0.5 * (b[:, 1:] + b[:, :-1])
    m = np.concatenate([m, b[:, -1:]], axis=1)
    return (np.roll(a, 1, 0) - a) * m + a * np.roll(a, -1, 1) * np.roll(b, -1, 1)


def test_what_several_elements_are_guarded_by_is_asked_once() -> None:
    _, *loops = _source(_joined, np.ones((30, 4000)), np.ones((30, 4000))).split(
        "for i"
    )
    assert loops
    for loop in loops:
        asked = re.findall(r"[^=(]*\w+ < \w+[^)\n]*", loop)
        assert asked
        assert len(set(asked)) == len(asked)


def test_what_only_a_shared_part_is_computed_from_has_no_name() -> None:
    i, n = (
        scalar_symbols.loop_index(0, scalar_symbols.size(0, 0)),
        scalar_symbols.size(0, 1),
    )
    condition = scalar_functions.less(i * n + 1, n)
    reads = [Let(Var(DType.F64), Load(_INPUT, x)) for x in (i, i + n)]
    guarded = tuple(If(condition, (read,)) for read in reads)
    assert shared_parts(guarded, ()) == {condition}


def test_a_variable_that_changes_is_read_where_it_is() -> None:
    found, i = Var(DType.I64), scalar_symbols.loop_index(0, scalar_symbols.size(0, 0))
    place = (
        scalar_symbols.datum(found, (), scalar_symbols.size(0, 0), inside=True) + i * 8
    )
    set_it = Let(found, Number(0, DType.I64))
    read = tuple(Let(Var(DType.F64), Load(_INPUT, place)) for _ in range(2))
    assert shared_parts((set_it, *read), ()) == {place}
    assert not shared_parts(
        (set_it, *read, If(scalar_functions.less(i, 5), (set_it,))), ()
    )
    assert not shared_parts((*read, set_it), (found,))
