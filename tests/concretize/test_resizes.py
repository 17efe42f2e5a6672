# SPDX-License-Identifier: Apache-2.0
"""Reshapes and resizes settled under both policies: what is baked, what stays."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.numpy as xp
from nfuser.compiler.concretize import answer, concretize, questions, whats_new
from nfuser.compiler.concretize.answers import BROADCAST, ITERATION, TRIVIAL
from nfuser.compiler.ir.expr import Concatenate, Expand, Pad, Reshape, Slice, results
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.ir.scalars.scalar_walk import symbols
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.errors import ShapeError
from tests.hand_built import Hand, settle, traced

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.concretize import Answers, Concrete, ResizePolicy
    from nfuser.compiler.ir.fusion import Fusion

POLICIES: tuple[ResizePolicy, ...] = ("static", "dynamic")
MOVES = (Slice, Pad, Concatenate, Reshape)


def _x(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def _values(*arguments: Any) -> dict[Any, int]:
    values: dict[Any, int] = {}
    for slot, argument in enumerate(arguments):
        if isinstance(argument, int):
            values[scalar_symbols.scalar_input(slot)] = argument
        for axis, n in enumerate(np.shape(argument)):
            values[scalar_symbols.size(slot, axis)] = n
    return values


def _answers(fusion: Fusion, policy: ResizePolicy, *arguments: Any) -> Answers:
    values = _values(*arguments)
    return answer(fusion, questions(fusion), values, static=policy == "static")


def _settled(fusion: Fusion, policy: ResizePolicy, *arguments: Any) -> Concrete:
    answers = _answers(fusion, policy, *arguments)
    concrete = concretize(fusion, questions(fusion), answers)
    verify_fusion(concrete.fusion)
    return concrete


def _padded(t0: Any, t1: Any, *w: int) -> Any:
    a, b, c, d, e, f, g, h = w
    return t1 * xp.pad(t0, ((0, 0), (a, b), (c, d), (e, f), (g, h)))


WIDTHS = (-1, -1, 1, 1, 0, -4, 0, -1)
T0, T1 = _x(7, 3, 2, 5, 6), _x(7, 8, 4, 3, 5)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_pad_of_run_time_widths(
    golden: Callable[[str], None], policy: ResizePolicy
) -> None:
    fusion = traced(_padded, T0, T1, *WIDTHS)
    concrete = _settled(fusion, policy, T0, T1, *WIDTHS).fusion
    golden(text(concrete))
    (pad,) = (e for e in concrete.exprs if isinstance(e, Pad))
    old, new = pad.source.shape, pad.result.shape
    first, second = (a.result for a in concrete.arguments if not a.by_value)
    assert [a.is_broadcast for a in pad.result.axes] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert not any(
        isinstance(x, Const) for x in (*second.shape, first.shape[0], new[0])
    )
    assert concrete.outputs[0].shape[1:] == second.shape[1:]
    if policy == "static":
        numbers = [sc.const(n) for n in (3, 2, 5, 6)]
        assert list(old[1:]) == numbers
        assert list(new[1:]) == [sc.const(n) for n in (1, 4, 1, 5)]
        assert list(pad.lefts) == [sc.const(n) for n in (0, -1, 1, 0, 0)]
    else:
        assert not any(isinstance(x, Const) for x in (*old, *pad.lefts[1:]))
        assert not isinstance(new[2], Const)
        assert not isinstance(new[4], Const)


def test_answers_of_the_policies_are_never_equal_where_something_is_resized() -> None:
    fusion = traced(_padded, T0, T1, *WIDTHS)
    static, dynamic = (_answers(fusion, p, T0, T1, *WIDTHS) for p in POLICIES)
    assert static.resized == (TRIVIAL, (3, -1, -1), (2, 1, 1), (5, 0, -4), (6, 0, -1))
    assert dynamic.resized == (TRIVIAL, BROADCAST, ITERATION, BROADCAST, ITERATION)
    assert static != dynamic


def test_static_extents_are_of_resized_axes_alone() -> None:
    function = lambda x: x[:, 1:] * 2  # noqa: E731
    fusion = traced(function, _x(4, 9))
    given = [_answers(fusion, "static", _x(n, m)) for n, m in ((4, 9), (6, 9), (4, 8))]
    assert given[0] == given[1] != given[2]
    dynamic = {_answers(fusion, "dynamic", _x(n, m)) for n, m in ((4, 9), (4, 8))}
    assert len(dynamic) == 1


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("function", "arguments", "others"),
    [
        pytest.param(
            lambda x, n: xp.pad(x, ((n, n), (0, 0))) + 1,
            (_x(4, 5), 0),
            (_x(6, 3), 0),
            id="pad",
        ),
        pytest.param(
            lambda x, y: np.concatenate([x, y]) + 1,
            (_x(4, 5), _x(0, 5)),
            (_x(7, 3), _x(0, 3)),
            id="concatenate",
        ),
        pytest.param(
            lambda x, b: x.reshape(b, -1) + 1,
            (_x(4, 5), 4),
            (_x(6, 3), 6),
            id="reshape",
        ),
        pytest.param(lambda x, n: x[n:] + 1, (_x(4, 5), 0), (_x(9, 3), 0), id="slice"),
    ],
)
def test_what_changes_nothing_is_removed_and_bakes_nothing(
    policy: ResizePolicy,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    others: tuple[Any, ...],
) -> None:
    fusion = traced(function, *arguments)
    concrete = _settled(fusion, policy, *arguments)
    assert not any(isinstance(e, MOVES) for e in concrete.fusion.exprs)
    (output,) = concrete.fusion.outputs
    assert output.shape == (scalar_symbols.size(0, 0), scalar_symbols.size(0, 1))
    assert _answers(fusion, policy, *others) == concrete.answers


def test_an_empty_part_is_left_out_of_a_concatenation() -> None:
    fusion = traced(lambda x, y, z: np.concatenate([x, y, z]), _x(4), _x(4), _x(4))
    concrete = _settled(fusion, "static", _x(4), _x(0), _x(3)).fusion
    (joined,) = (e for e in concrete.exprs if isinstance(e, Concatenate))
    assert len(joined.parts) == 2


def test_a_pad_that_reads_nothing_is_its_fill() -> None:
    function = lambda x, n: xp.pad(x, ((n, 1),)) + 1  # noqa: E731
    fusion = traced(function, _x(4), 2)
    for shape, width in ((0, 2), (2, -2)):
        concrete = _settled(fusion, "static", _x(shape), width).fusion
        assert not any(isinstance(e, Pad) for e in concrete.exprs)
        assert any(isinstance(e, Expand) for e in concrete.exprs)


@pytest.mark.parametrize("policy", POLICIES)
def test_expanded_axes_stay_expanded_through_slices(
    golden: Callable[[str], None], policy: ResizePolicy
) -> None:
    function = lambda x: np.broadcast_to(x[:, None], (*x.shape, 6))[1:, 2:4] * 2  # noqa: E731
    concrete = _settled(traced(function, _x(5)), policy, _x(5)).fusion
    golden(text(concrete))


@pytest.mark.parametrize(
    "shapes", [((2, 3), (1, 3)), ((0, 3), (0, 3)), ((2, 1), (2, 4))], ids=str
)
def test_a_sliced_axis_found_to_be_none_or_one_stretches(
    golden: Callable[[str], None], shapes: tuple[tuple[int, ...], ...]
) -> None:
    def function(x: Any, y: Any) -> Any:
        return (x[:, :] + y).sum(axis=0)

    fusion = traced(function, _x(4, 4), _x(4, 4))
    golden(text(_settled(fusion, "dynamic", *(_x(*s) for s in shapes)).fusion))


def test_the_axis_of_a_squeeze_must_be_one() -> None:
    hand = Hand()
    fusion = hand.fusion(hand.squeeze(hand.argument(2), 1))
    with pytest.raises(ShapeError, match="must be 1, but is 3"):
        settle(fusion, (3, 3))


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        pytest.param((12, 5), (3, 4, 5), id="split"),
        pytest.param((12, 5), (12, 1, 5), id="broadcast"),
        pytest.param((12, 1), (3, 4, 1), id="squeeze and broadcast"),
        pytest.param((4, 6), (3, 8, 1), id="merge and split"),
        pytest.param((0, 5), (0, 2, 3), id="empty"),
    ],
)
def test_forms_of_a_reshape(
    golden: Callable[[str], None], shape: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    fusion = traced(lambda x, a, b, c: x.reshape(a, b, c) + 1, _x(6, 4), 2, 3, 4)
    golden(text(_settled(fusion, "dynamic", _x(*shape), *sizes).fusion))


def test_split_factors_stay_symbols_under_both_policies() -> None:
    fusion = traced(lambda x, b: x.reshape(b, -1, x.shape[1]), _x(6, 4), 2)
    for policy in POLICIES:
        given = {
            _answers(fusion, policy, _x(b * t, 4), b) for b in (2, 3) for t in (2, 9)
        }
        assert len(given) == 1
        concrete = _settled(fusion, policy, _x(6, 4), 2).fusion
        (reshape,) = (e for e in concrete.exprs if isinstance(e, Reshape))
        assert results(reshape)[0].shape[0] is scalar_symbols.scalar_input(1)
        assert scalar_symbols.scalar_input(1) in symbols(reshape.result.shape[1:2])


def test_run_time_widths_are_asked_for_where_no_extent_shows_them() -> None:
    fusion = traced(lambda t, a: t + xp.pad(t, ((a, -a),)), _x(8), 2)
    asked = questions(fusion)
    width = scalar_symbols.scalar_input(1)
    assert width not in symbols(asked.extents)
    assert width in symbols(asked.scalars)


def test_what_is_new_is_said_in_words() -> None:
    def function(x: Any, b: Any) -> Any:
        return x[1:].reshape(b, -1), x[:, 1:]

    fusion = traced(function, _x(7, 4), 2)
    asked = questions(fusion)
    known = _answers(fusion, "static", _x(7, 4), 2)

    def new(*arguments: Any) -> str:
        return whats_new(fusion, asked, _answers(fusion, "static", *arguments), [known])

    assert "the size of argument 0 along axis 1 is 1" in new(_x(7, 1), 2)
    assert "pairs other axes: 0 -> 0, 1 -> 1" in new(_x(7, 4), 6)
    resized = new(_x(7, 5), 2)
    assert "axis 1 of the source of slice at" in resized
    assert "has size 5 and gains -1 and 0, which is compiled in" in resized
    assert new(_x(7, 4), 2) == ""
    assert whats_new(fusion, asked, known, []) == ""


def test_exact_sizes_leave_no_symbol() -> None:
    function = lambda x, b: (x[1:] * 2, x.reshape(b, -1) + 1)  # noqa: E731
    fusion = traced(function, _x(6, 4), 2)
    asked = questions(fusion)

    def settled(*arguments: Any) -> Answers:
        values = _values(*arguments)
        return answer(fusion, asked, values, static=True, exact=True)

    given = [settled(_x(n, 4), b) for n, b in ((6, 2), (6, 2), (6, 3), (8, 2))]
    assert given[0] == given[1]
    assert len(set(given)) == 3
    concrete = concretize(fusion, asked, given[0]).fusion
    assert all(isinstance(n, Const) for t in concrete.definition for n in t.shape)
    assert "compiled in: " in whats_new(fusion, asked, given[2], [given[0]])
