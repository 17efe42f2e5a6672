# SPDX-License-Identifier: Apache-2.0
"""Pieces as numbers: what is read back is what was written."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.concretize import answer, concretize, questions
from nfuser.compiler.ir.identity import structure
from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.schedule.registry import LIBRARY, SCHEDULERS, find_scheduler
from nfuser.compiler.segment import Segmented, segment
from nfuser.compiler.segment.kept import from_numbers, to_numbers
from nfuser.compiler.segment.segmented import text
from nfuser.compiler.trace import call_of, trace_function

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars import scalar

NAMES = {s.name: s for s in (*SCHEDULERS, LIBRARY)}


def _one(x: Any) -> Any:
    return np.exp(x) * 2


def _several(x: Any) -> Any:
    y = np.cumsum(x, axis=0) @ x.T
    return np.sort(y, axis=1) - y.mean(axis=0), x[:, 1:] * 3, y.sum()


def _complex(x: Any) -> Any:
    z = x * 1j + x
    return z.sum(axis=0) + z, np.abs(z).cumsum(axis=1)


def _shifts(x: Any) -> Any:
    for axis in (0, 1, 0, 1):
        x = x + np.roll(x, 1, axis) * x.sum(axis, keepdims=True)
    return x


def _cut(function: Any) -> Segmented:
    x = np.ones((6, 8))
    trace = trace_function(function, call_of([x]))
    asked = questions(trace.fusion)
    sizes: dict[scalar.Scalar, int] = {
        scalar_symbols.size(0, 0): 6,
        scalar_symbols.size(0, 1): 8,
    }
    answers = answer(trace.fusion, asked, sizes)
    concrete = concretize(trace.fusion, asked, answers)
    return segment(rewrite(concrete).fusion, find_scheduler)


@pytest.mark.parametrize("function", [_one, _several, _complex, _shifts])
def test_pieces_come_back_as_they_were(function: Any) -> None:
    first, second = _cut(function), _cut(function)
    kept = pickle.loads(pickle.dumps(to_numbers(first)))
    found = from_numbers(second.fusion, kept, NAMES)
    assert text(found) == text(second)
    pairs = list(zip(found.segments, second.segments, strict=True))
    assert all(structure(a.fusion) == structure(b.fusion) for a, b in pairs)
    assert all(a.inputs == b.inputs for a, b in pairs)
    assert all(a.scheduler is b.scheduler for a, b in pairs)
