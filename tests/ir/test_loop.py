# SPDX-License-Identifier: Apache-2.0
"""A loop has a body of its own, which is printed, compared and verified."""

# Carried values have no static type.
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nfuser import lax
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.identity import structure
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.errors import VerifyError
from tests.hand_built import traced

X = np.ones((3, 4))


def steps(x: Any, n: Any, scale: float = 0.5) -> Any:
    def step(i: Any, s: Any) -> Any:
        return s * scale + x[i]

    return lax.fori_loop(0, n, step, x[0])


def fusion(scale: float = 0.5) -> Fusion:
    return traced(lambda x, n: steps(x, n, scale), X, 3)


def test_a_loop_is_printed_with_its_body() -> None:
    printed = [line.partition("  #")[0] for line in text(fusion()).splitlines()]
    assert printed == [
        "fusion lambda(T0: f64[? n0, ? n1]) -> T3",
        "  T1: f64[b 1, ? n1] = slice(T0, starts=(0, 0), steps=(1, 1))",
        "  T2: f64[? n1] = squeeze(T1, axes=(0,))",
        "  T3: f64[? n1] = loop(carry=(T2), read=(T0), trips=max(0, n2))",
        "    fusion lambda_body(T4: f64[? n1], T5: f64[? n0, ? n1], T6: i64[]) -> T11",
        "      T7: f64[] = 0.5",
        "      T8: f64[? n1] = multiply(T4, T7)",
        "      T9: i64[] = copy(T6)",
        "      T10: f64[? n1] = take(T5, T9, axis=0)",
        "      T11: f64[? n1] = add(T8, T10)",
    ]


def test_loops_that_say_the_same_are_the_same() -> None:
    assert structure(fusion()) == structure(fusion())
    assert structure(fusion()) != structure(fusion(0.25))
    assert structure(pickle.loads(pickle.dumps(fusion()))) == structure(fusion())


def test_every_expression_has_those_of_bodies_before_their_loops() -> None:
    found = fusion()
    (loop,) = found.loops
    every = list(found.every)
    at = every.index(loop)
    assert every[at - len(loop.body.exprs) : at] == list(loop.body.exprs)
    assert len(every) == len(found.exprs) + len(loop.body.exprs)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"operands": ()}, "an argument for each operand"),
        ({"carried": 9}, "an output for each result"),
        ({"trips": None}, "no end"),
        ({"flag": 0}, "a carried truth value"),
    ],
)
def test_what_is_no_loop_is_named(change: dict[str, Any], problem: str) -> None:
    found = fusion()
    (loop,) = found.loops
    wrong = replace(loop, **change)
    exprs = [wrong if e is loop else e for e in found.exprs]
    with pytest.raises(VerifyError, match=problem):
        verify_fusion(Fusion(found.name, exprs, found.outputs[:0]))
