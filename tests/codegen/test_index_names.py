# SPDX-License-Identifier: Apache-2.0
"""Loops of a CPU kernel begin with what the indices in them have in common."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import nfuser


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
