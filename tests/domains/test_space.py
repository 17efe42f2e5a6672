# SPDX-License-Identifier: Apache-2.0
"""One space of loops for all that a kernel computes, or the reason against it."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser.compiler.domains.space as module
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.space import Mismatch, Space, find_space, reads
from nfuser.compiler.ir.expr import ReduceOp
from nfuser.compiler.ir.text import Names
from tests.hand_built import Hand, hand_softmax, settle, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.fusion import Fusion

X = np.ones((4, 6), np.float32)
CUBE = np.ones((3, 4, 5), np.float32)


def _space(fusion: Fusion) -> Space:
    found = find_space(fusion)
    assert isinstance(found, Space), found
    return found


def _described(fusion: Fusion) -> str:
    names, space = Names(), _space(fusion)
    shown = ", ".join(names.typed(a.result) for a in fusion.arguments)
    lines = [f"arguments {shown}"]
    for kind, loops in (("kept", space.kept), ("reduced", space.reduced)):
        spelled = (f"{names.scalar(x)} < {names.scalar(x.extent)}" for x in loops)
        lines.append(f"{kind}: {', '.join(spelled)}")
    for reduce, level in space.levels.items():
        at = ", ".join(map(names.scalar, space.source_point(reduce)))
        to = ", ".join(map(names.scalar, space.points[reduce.result]))
        lines.append(f"level {level}: {reduce.op.value} of [{at}] gives [{to}]")
    for output in fusion.outputs:
        at = ", ".join(map(names.scalar, space.points[output]))
        lines.append(f"output [{at}]")
    return "\n".join(lines) + "\n"


SHARED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "softmax": (
        lambda x: (e := np.exp(x - x.max(1, keepdims=True))) / e.sum(1, keepdims=True),
        (X,),
    ),
    "statistics": (lambda x: (x.mean((0, 2)), x.var((0, 2)), x.max((0, 2))), (CUBE,)),
    "stretched": (lambda x, b: x[:, None] * b, (X[:, 0], X[0])),
    "turned": (lambda x: (x.T * 2, x + 1), (X,)),
    "rows and all": (lambda x: (x.sum(1), x - x.sum(1, keepdims=True)), (X,)),
    "one element": (lambda x: x.sum(), (X,)),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_space(name: str, golden: Callable[[str], None]) -> None:
    function, arguments = SHARED[name]
    golden(_described(settled(function, *arguments)))


REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "rows and columns": (
        lambda x: (x.sum(0), x.sum(1)),
        (X,),
        "it reduces other axes than the rest",
    ),
    "other outputs": (
        lambda x, y: (x + 1, y + 1),
        (X, X[0]),
        "it runs over other axes than the rest",
    ),
    "transposed with itself": (
        lambda x: (x + x.T, x + 1),
        (X[:, :4],),
        "an axis meets itself transposed",
    ),
    "reduced twice": (
        lambda x: x.sum(1).sum(0),
        (X,),
        "it reduces other axes than the rest",
    ),
    "mirrored sum": (
        lambda x: x.sum(1)[::-1] * 2,
        (X,),
        "a reduction is read at another index",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_two_kernels_is_refused_with_the_tensor(name: str) -> None:
    function, arguments, reason = REFUSED[name]
    fusion = settled(function, *arguments)
    found = find_space(fusion)
    assert isinstance(found, Mismatch)
    assert found.reason == reason
    assert found.tensor in fusion.definition


def test_a_single_output_may_meet_itself_transposed() -> None:
    fusion = settled(lambda x: x + x.T, X[:, :4])
    space = _space(fusion)
    (output,) = fusion.outputs
    argument = fusion.arguments[0].result
    points = [
        p for t, p in reads(fusion, [(output, space.points[output])]) if t is argument
    ]
    i, j = space.kept
    assert [p.index for p in points] == [(i, j), (j, i)]


def test_each_point_is_read_once() -> None:
    hand = Hand()
    x = hand.argument(1)
    for _ in range(20):
        y = hand.point("add", x, x)
        x = y
    fusion = settle(hand.fusion(x), (8,)).fusion
    space = _space(fusion)
    assert (
        len(list(reads(fusion, [(fusion.outputs[0], space.points[fusion.outputs[0]])])))
        == 21
    )


def test_levels_count_reductions_that_depend_on_each_other() -> None:
    hand = Hand()
    x = hand.argument(2)
    total, top = hand.reduce(ReduceOp.SUM, x, 1), hand.reduce(ReduceOp.MAX, x, 1)
    away = hand.point("subtract", x, hand.expand_dims(hand.point("add", total, top), 1))
    spread = hand.reduce(ReduceOp.SUM, hand.point("multiply", away, away), 1)
    fusion = settle(hand.fusion(spread), (4, 6)).fusion
    assert list(_space(fusion).levels.values()) == [0, 0, 1]


def test_an_axis_of_one_has_no_loop() -> None:
    space = _space(settle(hand_softmax(), (1, 6)).fusion)
    assert space.kept == ()
    assert [x.extent for x in space.reduced] == [scalar_symbols.size(0, 1)]


OTHER_SIZES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (lambda x, y: (x + 1, y + 1), (X, X[0])),
    (lambda x: (x * 2, x[1:] * x[:-1]), (X,)),
    (lambda x: (x.T * 2, x + x, x[:, 2:]), (X,)),
    (lambda x: (np.pad(x, 1), np.concatenate([x, x])), (X,)),
]


@pytest.mark.parametrize(("function", "arguments"), OTHER_SIZES)
def test_results_of_other_sizes_are_refused_before_axes_are_joined(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fusion = settled(function, *arguments)
    with monkeypatch.context() as patch:
        patch.setattr(module, "Classes", None)  # nobody asks for it
        soon = find_space(fusion)
    monkeypatch.setattr(module, "_of_other_sizes", lambda fusion: None)
    same = type(fusion)(fusion.name, fusion.exprs, fusion.outputs)
    assert isinstance(soon, Mismatch)
    assert find_space(same) == soon


def test_results_in_which_an_axis_meets_itself_share_a_space() -> None:
    fusion = settled(lambda x: (x[:, None] - x, x[:, None] * x), X[0])
    assert [len(_space(fusion).points[t].index) for t in fusion.outputs] == [2, 2]
    assert len(set(_space(fusion).points.values())) == 1
