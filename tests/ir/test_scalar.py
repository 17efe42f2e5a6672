# SPDX-License-Identifier: Apache-2.0
"""Scalars fold, normalise and intern without changing what they stand for."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import operator
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfuser.compiler.ir.scalars.exact_division as exact_division
import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar_walk import (
    evaluate,
    evaluate_all,
    loops_in,
    prepared_multiplier,
    prepared_shift,
    substitute,
    symbols,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar

SIZES: list[Scalar] = [scalar_symbols.size(0, k) for k in range(3)]
N, M, K = SIZES
LOOPS: list[LoopIndex] = [
    scalar_symbols.loop_index(0, N),
    scalar_symbols.loop_index(1, N * M),
    scalar_symbols.loop_index(2, 6),
    scalar_symbols.loop_index(3, M),
]
# A tree is an int, a symbol, or (operator, tree, ...): what a scalar is built from.
Tree = Any
Names = dict["Scalar", str]
BUILD: dict[str, Callable[..., Scalar]] = {
    "+": sc.add,
    "-": lambda a, b: sc.as_scalar(a) - b,
    "*": sc.multiply,
    "//": sc.floor_divide,
    "%": sc.modulo,
    "min": scalar_functions.minimum,
    "max": scalar_functions.maximum,
    "<": scalar_functions.less,
    "==": scalar_functions.equal,
    "select": lambda c, a, b: scalar_functions.select(sc.as_scalar(c), a, b),
}
COMPUTE: dict[str, Callable[..., int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
    "<": lambda a, b: int(a < b),
    "==": lambda a, b: int(a == b),
    "select": lambda c, a, b: a if c else b,
}

divisors = st.one_of(
    st.integers(1, 9),
    st.sampled_from(SIZES),
    st.tuples(st.just("*"), st.sampled_from(SIZES), st.sampled_from([2, 3, *SIZES])),
)


def _grown(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.tuples(st.sampled_from("+-*"), inner, inner),
        st.tuples(st.sampled_from(["//", "%"]), inner, divisors),
        st.tuples(st.sampled_from(["min", "max", "<", "=="]), inner, inner),
        st.tuples(st.just("select"), inner, inner, inner),
        # What delinearised indices look like, to be put together again.
        st.builds(_split_and_joined, inner, divisors),
    )


def _split_and_joined(x: Tree, divisor: Tree) -> Tree:
    return ("+", ("*", ("//", x, divisor), divisor), ("%", x, divisor))


leaves = st.one_of(st.integers(-4, 12), st.sampled_from([*SIZES, *LOOPS]))
trees = st.recursive(leaves, _grown, max_leaves=10)


@st.composite
def valuations(draw: st.DrawFn) -> dict[Scalar, int]:
    values: dict[Scalar, int] = {n: draw(st.integers(1, 7)) for n in SIZES}
    for loop in LOOPS:
        values[loop] = draw(st.integers(0, evaluate(loop.extent, values) - 1))
    return values


def _built(tree: Tree) -> Scalar:
    if isinstance(tree, tuple):
        name, *operands = tree  # pyright: ignore[reportUnknownVariableType]
        return BUILD[name](*map(_built, operands))
    return sc.as_scalar(tree)


def _computed(tree: Tree, values: Mapping[Scalar, int]) -> int:
    if isinstance(tree, tuple):
        name, *operands = tree  # pyright: ignore[reportUnknownVariableType]
        return COMPUTE[name](*(_computed(t, values) for t in operands))  # pyright: ignore[reportUnknownVariableType]
    return tree if isinstance(tree, int) else values[tree]


@settings(max_examples=400)
@given(tree=trees, values=valuations())
def test_the_normal_form_has_the_value_of_what_was_written(
    tree: Tree, values: dict[Scalar, int]
) -> None:
    assert evaluate(_built(tree), values) == _computed(tree, values)


@settings(max_examples=200)
@given(tree=trees, values=valuations())
def test_the_printed_form_is_python_with_the_same_value(
    tree: Tree, values: dict[Scalar, int]
) -> None:
    names: Names = {s: f"v{k}" for k, s in enumerate([*SIZES, *LOOPS])}
    spelled = text(_built(tree), names.get)
    scope: dict[str, Any] = {name: values[s] for s, name in names.items()}
    scope["select"] = COMPUTE["select"]
    assert eval(spelled, scope) == _computed(tree, values)


@settings(max_examples=200)
@given(tree=trees, values=valuations())
def test_substituting_numbers_folds_to_the_value(
    tree: Tree, values: dict[Scalar, int]
) -> None:
    built = _built(tree)
    numbers = {s: sc.const(v) for s, v in values.items()}
    assert substitute([built], numbers) == [sc.const(evaluate(built, values))]


@settings(max_examples=200)
@given(tree=trees)
def test_the_same_building_gives_the_same_object(tree: Tree) -> None:
    built = _built(tree)
    assert _built(tree) is built
    assert substitute([built], {}) == [built]


@settings(max_examples=200)
@given(a=trees, b=trees, c=trees)
def test_sums_and_products_do_not_depend_on_their_order(
    a: Tree, b: Tree, c: Tree
) -> None:
    x, y, z = map(_built, (a, b, c))
    assert x + y is y + x
    assert x * y is y * x
    assert x * 0 + z * 1 is z


@given(order=st.permutations(range(3)), which=st.integers(0, 2))
def test_a_delinearised_index_is_put_together_again(
    order: list[int], which: int
) -> None:
    i = scalar_symbols.loop_index(0, N * M * K)
    parts = [(i // (M * K)) * (M * K), ((i // K) % M) * K, i % K]
    total: Scalar = sc.const(0)
    for k in order:
        total = total + parts[k]
    assert total is i
    without = total - parts[which]
    assert without + parts[which] is i


def test_a_linear_index_comes_apart_again() -> None:
    inner, outer = scalar_symbols.loop_index(0, M), scalar_symbols.loop_index(1, N)
    flat = outer * M + inner
    assert flat // M is outer
    assert flat % M is inner
    assert (flat * 4 + scalar_symbols.loop_index(2, 4)) // (M * 4) is outer


def test_nested_divisions_are_one() -> None:
    i = scalar_symbols.loop_index(0, N)
    assert (i // 3) // 5 is i // 15
    assert (i // M) // K is i // (M * K)


def test_what_the_form_shows_is_folded() -> None:
    i = scalar_symbols.loop_index(0, N)
    assert scalar_functions.less(i, N) is sc.const(1)
    assert scalar_functions.less(i + 1, N) is not sc.const(1)
    assert sc.lies_below(i * 4 + scalar_symbols.loop_index(1, 4), N * 4)
    assert not sc.lies_below(i - 1, N)
    assert scalar_functions.minimum(N + 1, N) is N
    assert scalar_functions.maximum(N + 1, N) is N + 1
    assert scalar_functions.equal(N + 1, N) is sc.const(0)
    assert scalar_functions.select(scalar_functions.less(i, N), i, 0) is i
    assert scalar_functions.select(scalar_functions.equal(N, M), i, i) is i


def test_scalars_print_as_a_person_would_write_them() -> None:
    names: Names = {N: "n", M: "m", (i := scalar_symbols.loop_index(0, N)): "i"}
    assert text(i * M * 4 + i - 3, names.get) == "m * i * 4 + i - 3"
    assert text((N - 1) // M, names.get) == "(n - 1) // m"
    assert text(scalar_functions.minimum(N, M), names.get) == "min(n, m)"
    assert text(-N, names.get) == "-n"


@pytest.mark.parametrize("divisor", [1, 2, 3, 5, 7, 28, 641, 2**16 + 1, 2**31 - 1])
def test_a_division_is_a_multiplication_at_the_edges(divisor: int) -> None:
    top = (2**31 - 1) // divisor * divisor
    for n in (0, 1, divisor - 1, divisor, divisor + 1, top - 1, top, 2**31 - 1):
        if n < 2**31:
            assert _fast(n, divisor) == n // divisor


@settings(max_examples=500)
@given(n=st.integers(0, 2**31 - 1), divisor=st.integers(1, 2**31 - 1))
def test_a_division_is_a_multiplication(n: int, divisor: int) -> None:
    assert _fast(n, divisor) == n // divisor
    assert _fast(n, divisor % 5000 + 1) == n // (divisor % 5000 + 1)


def _fast(n: int, divisor: int) -> int:
    values: dict[Scalar, int] = {N: divisor}
    factor, shift = evaluate_all(
        [exact_division.multiplier(N), exact_division.shift(N)], values
    )
    assert (factor, shift) == (prepared_multiplier(divisor), prepared_shift(divisor))
    assert factor < 2**32
    assert 2 * n < 2**32
    return ((2 * n * factor) >> 32) >> shift


def test_symbols_are_listed_once_in_order_of_use() -> None:
    i = scalar_symbols.loop_index(0, N)
    assert symbols([i * M + K // M, K]) == [M, i, K]
    assert loops_in((i + 1) * i + N) == [i]


def test_a_deep_scalar_needs_no_recursion() -> None:
    x: Scalar = N
    for k in range(3000):
        x = (
            scalar_functions.maximum(x // 2, k)
            if k % 2
            else scalar_functions.minimum(x * 3, M)
        )
    assert evaluate(x, {N: 5, M: 9}) == evaluate(substitute([x], {})[0], {N: 5, M: 9})
    names: Names = {N: "n", M: "m"}
    assert len(text(x, names.get)) > 3000


def test_what_was_computed_before_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    i = scalar_symbols.loop_index(0, N)

    def index() -> Scalar:
        return ((i * M + 3 - K) // M + i * 4) * K

    before = index()
    monkeypatch.setattr(sc, "from_terms", None)
    assert index() is before


@pytest.mark.parametrize("combine", [sc.add, sc.multiply, sc.floor_divide])
def test_an_equal_number_of_another_kind_is_not_found(
    combine: Callable[[Any, Any], Scalar],
) -> None:
    assert combine(N, True) is combine(N, 1)
    with pytest.raises(TypeError):
        combine(N, 1.0)


def test_the_order_of_terms_is_alike_in_every_process() -> None:
    code = (
        "from nfuser.compiler.ir.scalars import symbols;"
        "from nfuser.compiler.ir.text import Names;"
        "n = [symbols.size(0, k) for k in range(4)];"
        "x = (n[0] // n[1]) * n[2] + n[3] // n[2] + n[0] % n[3] * 5 + n[1];"
        "print(Names().scalar(x))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
