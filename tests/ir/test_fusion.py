# SPDX-License-Identifier: Apache-2.0
"""Look-ups in a fusion, walks over it, and the way passes rebuild it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import TYPE_CHECKING, Any, get_args

import pytest

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    Argument,
    Constant,
    Expr,
    Pointwise,
    Reduce,
    ReduceOp,
    sources,
)
from nfuser.compiler.ir.fusion import (
    Fusion,
    Replacement,
    live_exprs,
    rebuild,
    with_sources,
)
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ir.tensor import IterType, tensor
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.compiler.ir.walk import toposort
from tests.hand_built import Hand, hand_softmax

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.tensor import TensorView


def test_rebuilding_without_a_change_gives_the_same_object() -> None:
    fusion = hand_softmax()
    assert rebuild(fusion, lambda expr: None) is fusion


def test_an_expression_gives_way_to_its_source(
    golden: Callable[[str], None],
) -> None:
    def without_exp(expr: Expr) -> TensorView | None:
        is_exp = isinstance(expr, Pointwise) and expr.op.name == "exp"
        return sources(expr)[0] if is_exp else None

    fusion = rebuild(hand_softmax(), without_exp)
    verify_fusion(fusion)
    golden(text(fusion))


def test_an_expression_is_replaced_by_several(golden: Callable[[str], None]) -> None:
    def by_squares(expr: Expr) -> Replacement | None:
        if not (isinstance(expr, Reduce) and expr.op is ReduceOp.SUM):
            return None
        square = tensor(expr.source.shape, expr.source.dtype)
        total = tensor(expr.result.shape, expr.result.dtype)
        multiply = Pointwise(POINT_OPS["multiply"], (expr.source, expr.source), square)
        reduce = Reduce(ReduceOp.SUM, square, (total,), expr.axes)
        return Replacement((multiply, reduce), (total,))

    fusion = rebuild(hand_softmax(), by_squares)
    verify_fusion(fusion)
    golden(text(fusion))


def test_an_output_may_be_replaced() -> None:
    hand = Hand()
    x = hand.argument(1)
    y = hand.point("negative", x)
    fusion = rebuild(
        hand.fusion(y, x), lambda expr: x if isinstance(expr, Pointwise) else None
    )
    assert fusion.outputs == (x, x)
    assert len(fusion.exprs) == 1


def test_users_and_definitions_are_found() -> None:
    fusion = hand_softmax()
    x, divide = fusion.arguments[0].result, fusion.exprs[-1]
    assert [type(e) for e in fusion.users[x]] == [Reduce, Pointwise]
    assert fusion.definition[fusion.outputs[0]] is divide
    assert fusion.users[fusion.outputs[0]] == ()
    assert [r.op for r in fusion.reductions] == [ReduceOp.MAX, ReduceOp.SUM]


def test_a_tensor_that_is_read_twice_by_one_expression_has_it_as_one_user() -> None:
    hand = Hand()
    x = hand.argument(1)
    fusion = hand.fusion(hand.point("multiply", x, x))
    assert len(fusion.users[x]) == 1


def test_arguments_come_in_the_order_of_their_slots() -> None:
    x, y = tensor((), DType.F32), tensor((), DType.F32)
    fusion = Fusion("f", [Argument(1, x), Argument(0, y)], [x])
    assert [a.result for a in fusion.arguments] == [y, x]


def test_live_expressions_are_those_above_an_output() -> None:
    hand = Hand()
    x, y = hand.argument(1), hand.argument(1)
    hand.point("exp", y)
    kept = hand.point("negative", hand.point("sin", x))
    fusion = hand.fusion(kept)
    live = live_exprs([kept], fusion.definition)
    assert [e.op.name for e in live if isinstance(e, Pointwise)] == ["sin", "negative"]
    assert fusion.definition[y] not in live


def test_unchanged_sources_give_the_same_expression() -> None:
    fusion = hand_softmax()
    for expr in fusion.exprs:
        assert with_sources(expr, list(sources(expr))) is expr
    exp = next(e for e in fusion.exprs if isinstance(e, Pointwise))
    x = fusion.arguments[0].result
    assert sources(with_sources(exp, [x, x])) == (x, x)


def test_a_walk_visits_once_children_first_in_a_fixed_order() -> None:
    graph = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}
    assert toposort(["a"], graph.__getitem__) == ["d", "b", "c", "a"]
    assert toposort(["c", "b"], graph.__getitem__) == ["d", "c", "b"]
    depth = 50_000
    chain = toposort([depth], lambda n: [n - 1] if n else [])
    assert chain == list(range(depth + 1))


def test_nodes_are_frozen_and_are_only_equal_to_themselves() -> None:
    one, other = (tensor((2,), DType.F32) for _ in range(2))
    assert one != other
    assert Constant(1, one) != Constant(1, one)
    with pytest.raises(FrozenInstanceError):
        one.dtype = DType.F64  # pyright: ignore[reportAttributeAccessIssue]


def test_extents_decide_what_is_known_of_an_axis() -> None:
    hand = Hand()
    shape = (1, 4, hand.argument(1).shape[0])
    kinds = [axis.iter_type for axis in tensor(shape, DType.F32).axes]
    assert kinds == [IterType.BROADCAST, IterType.ITERATION, IterType.SYMBOLIC]


def test_every_kind_of_expression_says_what_it_reads() -> None:
    made: Any
    for kind in get_args(Expr):
        made = object.__new__(kind)
        held: dict[str, object] = {}
        for field in fields(kind):
            several = "tuple[TensorView" in str(field.type)
            held[field.name] = (object(),) if several else object()
            object.__setattr__(made, field.name, held[field.name])
        results = {"result", "results"}
        tensors = {f.name for f in fields(kind) if "TensorView" in str(f.type)}
        read: list[object] = []
        for field in fields(kind):
            if field.name in tensors - results:
                found: Any = held[field.name]
                read += found if isinstance(found, tuple) else [found]
        assert list(sources(made)) == read, kind
