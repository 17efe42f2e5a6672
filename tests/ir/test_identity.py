# SPDX-License-Identifier: Apache-2.0
"""Fusions that say the same have equal structures and keys, and only those."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, get_args

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.numpy as xp
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir import identity
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Constant, ReduceOp, results
from nfuser.compiler.ir.fusion import Fusion, Replacement, rebuild
from nfuser.compiler.ir.identity import Likeness, structure
from nfuser.compiler.ir.point_op import POINT_OPS, PointOp
from nfuser.compiler.ir.scalars.scalar import Scalar
from nfuser.compiler.ir.tensor import (
    IterDomain,
    IterType,
    SourceLine,
    TensorView,
    tensor,
)
from nfuser.compiler.trace import call_of, trace_function
from nfuser.errors import NfuserError
from tests.fuzz.generate import generate
from tests.hand_built import Hand, hand_softmax, traced

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from nfuser.compiler.ir.expr import Expr

SCALARS: tuple[type, ...] = get_args(Scalar)


def likeness(fusion: Fusion) -> Hashable:
    """Return the key of a fusion, as another reader than any other reads it."""
    return Likeness().key(fusion)


_SAID = pytest.mark.parametrize("said", [structure, likeness])


def _fuzzed(index: int) -> tuple[Fusion, Fusion] | None:
    """Return a random program traced twice, from two texts of its own."""
    program = generate(5, index, 2_000)
    arguments = program.arguments(program.calls[0])
    with np.errstate(all="ignore"):
        try:
            first, second = (
                trace_function(program.function(xp), call_of(arguments)).fusion
                for _ in range(2)
            )
        except (NfuserError, ValueError, TypeError, OverflowError):
            return None  # a program that is to raise
    return first, second


@_SAID
@given(index=st.integers(0, 10_000))
@settings(max_examples=150)
def test_what_is_built_twice_is_equal_and_a_change_is_not(
    said: Callable[[Fusion], Hashable], index: int
) -> None:
    pair = _fuzzed(index)
    if pair is None:
        return
    first, second = pair
    assert said(first) == said(second)
    assert hash(said(first)) == hash(said(second))
    for changed in _changes(first):
        assert said(changed) != said(first)


def test_most_random_programs_can_be_compared() -> None:
    assert sum(_fuzzed(index) is not None for index in range(40)) > 30


def _changes(fusion: Fusion) -> Iterator[Fusion]:
    """Give ``fusion`` with one thing of one expression changed, for every thing."""
    for expr in fusion.exprs:
        for new in _changed_exprs(expr):
            yield _with(fusion, expr, new)


def _with(fusion: Fusion, old: Expr, new: Expr) -> Fusion:
    position = fusion.exprs.index(old)
    count = iter(range(len(fusion.exprs)))

    def change(seen: Expr) -> Replacement | None:
        if next(count) != position:
            return None
        own = {f.name: getattr(seen, f.name) for f in fields(seen)}
        own |= {
            f.name: getattr(new, f.name)
            for f in fields(new)
            if getattr(new, f.name) is not getattr(old, f.name)
        }
        made = type(seen)(**own)
        return Replacement((made,), results(made))

    return rebuild(fusion, change)


def _changed_exprs(expr: Any) -> Iterator[Any]:
    for field in fields(expr):
        value = getattr(expr, field.name)
        if field.name in ("result", "results"):
            listed = results(expr)
            for new in _changed_tensors(listed[0]):
                several = (new, *listed[1:])
                whole = several if field.name == "results" else new
                yield replace(expr, **{field.name: whole})
            continue
        new = _changed(value)
        if new is not None:
            yield replace(expr, **{field.name: new})


def _changed_tensors(old: TensorView) -> Iterator[TensorView]:
    other = DType.F64 if old.dtype is not DType.F64 else DType.F32
    yield replace(old, dtype=other)
    if old.axes:
        axis = old.axes[0]
        kinds = [k for k in IterType if k is not axis.iter_type]
        yield replace(old, axes=(replace(axis, iter_type=kinds[0]), *old.axes[1:]))
        longer = replace(axis, extent=axis.extent + 1)
        yield replace(old, axes=(longer, *old.axes[1:]))


def _changed(value: Any) -> Any:
    match value:
        case PointOp():
            ops = [o for o in POINT_OPS.values() if o.arity == value.arity]
            other = next((o for o in ops if o is not value), None)
            return other or replace(value, gives="bool")
        case ReduceOp():
            return next(o for o in ReduceOp if o is not value)
        case bool():
            return not value
        case int() | float():
            return value + 1 if np.isfinite(value) and value + 1 != value else 0.5
        case tuple() if value and isinstance(value[0], int):
            return (value[0] + 1, *value[1:])
        case _ if isinstance(value, SCALARS):
            return value + 1
        case _:
            return None


@_SAID
def test_the_name_and_the_lines_do_not_take_part(
    said: Callable[[Fusion], Hashable],
) -> None:
    first, line = hand_softmax(), SourceLine("x.py", 7, "y = x")

    def change(expr: Any) -> Replacement:
        moved = tuple(replace(t, source=line) for t in results(expr))
        several = {f.name for f in fields(expr)} >= {"results"}
        new = {"results": moved} if several else {"result": moved[-1]}
        return Replacement((replace(expr, **new),), moved)

    second = rebuild(Fusion("other", first.exprs, first.outputs), change)
    assert second.outputs[0].source is line
    assert said(first) == said(second)


@_SAID
@pytest.mark.parametrize("pair", [(0.0, -0.0), (1, True), (1, 1.0), (2, 3)], ids=repr)
def test_constants_are_alike_only_bit_for_bit(
    said: Callable[[Fusion], Hashable], pair: tuple[Any, Any]
) -> None:
    first, second = (_constant(value) for value in pair)
    assert said(first) != said(second)
    assert said(first) == said(_constant(pair[0]))


def _constant(value: complex) -> Fusion:
    made = tensor((), DType.F64)
    return Fusion("constant", [Constant(value, made)], [made])


@_SAID
def test_a_constant_that_is_nan_equals_itself(
    said: Callable[[Fusion], Hashable],
) -> None:
    assert said(_constant(float("nan"))) == said(_constant(float("nan")))


@_SAID
def test_outputs_and_their_order_take_part(said: Callable[[Fusion], Hashable]) -> None:
    hand = Hand()
    x = hand.argument(1)
    a, b = hand.point("exp", x), hand.point("sin", x)
    found = {said(Fusion("f", hand.exprs, t)) for t in ((a, b), (b, a), (a,))}
    assert len(found) == 3


@_SAID
def test_which_operand_is_which_takes_part(
    said: Callable[[Fusion], Hashable],
) -> None:
    assert said(_difference(0, 1)) != said(_difference(1, 0))
    assert said(_difference(0, 1)) == said(_difference(0, 1))


def _difference(first: int, second: int) -> Fusion:
    hand = Hand()
    operands = [hand.argument(0), hand.argument(0)]
    return hand.fusion(hand.point("subtract", operands[first], operands[second]))


@node
class _Rotate:
    source: TensorView
    result: TensorView
    steps: dict[str, int] | tuple[int, ...]
    by: Scalar


def test_every_field_of_a_class_it_does_not_know_takes_part() -> None:
    def rotated(steps: tuple[int, ...], by: Scalar) -> Fusion:
        hand = Hand()
        x = hand.argument(1)
        made = tensor(x.shape, x.dtype)
        expr: Any = _Rotate(x, made, steps, by)
        return Fusion("f", [*hand.exprs, expr], [made])

    n = scalar_symbols.size(0, 0)
    found = [rotated((1,), n), rotated((2,), n), rotated((1,), n + 1)]
    assert len({structure(f) for f in found}) == 3
    assert structure(rotated((1,), n)) == structure(found[0])
    assert n + 1 in structure(found[2]).scalars
    with pytest.raises(TypeError, match="dict cannot be part of an expression"):
        structure(rotated({"a": 1}, n))  # pyright: ignore[reportArgumentType]


def test_tensors_are_told_apart_by_all_that_they_say() -> None:
    """A field that is added has to be one of those by which their kinds are known."""
    assert [f.name for f in fields(TensorView)] == ["axes", "dtype", "source"]
    assert [f.name for f in fields(IterDomain)] == ["extent", "iter_type"]


def test_it_is_worked_out_once() -> None:
    fusion = traced(np.exp, np.ones(3))
    assert structure(fusion) is structure(fusion)


def test_keys_of_one_program_read_each_expression_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = [0]
    reading: Any = vars(identity)["_Reader"]
    contents = reading.contents

    def counted(self: Any, item: Any) -> Any:
        read[0] += 1
        return contents(self, item)

    monkeypatch.setattr(reading, "contents", counted)
    hand = Hand()
    x = hand.argument(1)
    for _ in range(50):
        x = hand.point("sin", x)
    reader = Likeness()
    parts = [
        Fusion("part", hand.exprs[:k], [results(hand.exprs[k - 1])[0]])
        for k in range(1, len(hand.exprs))
    ]
    assert len({reader.key(part) for part in parts}) == len(parts)
    assert read[0] < 8 * len(hand.exprs)
