# SPDX-License-Identifier: Apache-2.0
"""Answers settle a fusion: constants for 0 and 1, one symbol for each extent."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfuser
import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.concretize import answer, concretize, questions
from nfuser.compiler.concretize.extents import Extents
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Expand, Reduce, ReduceOp, Squeeze
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.tensor import IterType
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.errors import ShapeError
from tests.fusions import CASES
from tests.hand_built import Hand, hand_softmax, settle, settled, sizes_of, traced
from tests.oracle.fusion_meaning import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.fusion import Fusion


def _add() -> Fusion:
    """Sum of a matrix and a vector, either of which may stretch."""
    hand = Hand()
    x, b = hand.argument(2), hand.argument(1)
    n, m = x.shape
    width = scalar_functions.select(scalar_functions.equal(m, 1), b.shape[0], m)
    return hand.fusion(hand.point("add", x, b, shape=(n, width)), name="add")


@pytest.mark.parametrize(
    "shapes", [[(4, 5), (5,)], [(4, 1), (5,)], [(1, 5), (1,)], [(0, 5), (5,)]], ids=str
)
def test_a_sum_of_a_matrix_and_a_vector(
    golden: Callable[[str], None], shapes: list[tuple[int, ...]]
) -> None:
    golden(text(settle(_add(), *shapes).fusion))


def test_a_softmax_of_one_column(golden: Callable[[str], None]) -> None:
    golden(text(settle(hand_softmax(), (4, 1)).fusion))


def test_reductions_of_one_element(golden: Callable[[str], None]) -> None:
    hand = Hand()
    x = hand.argument(2)
    mean, spread = hand.moments(x, 1)
    top = hand.reduce(ReduceOp.ARGMAX, x, 1)
    total = hand.reduce(ReduceOp.SUM, x, 0, 1)
    fusion = settle(hand.fusion(mean, spread, top, total), (6, 1)).fusion
    verify_fusion(fusion)
    golden(text(fusion))


def test_every_axis_is_known_afterwards() -> None:
    for shape in [(4, 5), (1, 5), (4, 1), (0, 1)]:
        fusion = settle(hand_softmax(), shape).fusion
        for tensor in fusion.definition:
            for axis in tensor.axes:
                assert axis.is_broadcast == (axis.extent is sc.const(1))
                assert axis.iter_type is not IterType.SYMBOLIC


def test_extents_that_must_be_equal_are_one_symbol() -> None:
    hand = Hand()
    x, y, z = (hand.argument(1) for _ in range(3))
    total = hand.point("add", hand.point("add", x, y), z)
    concrete = settle(hand.fusion(total), (4,), (4,), (4,))
    extents = {t.shape for t in concrete.fusion.definition}
    assert extents == {(scalar_symbols.size(0, 0),)}


def test_equality_reaches_what_is_computed_of_an_extent() -> None:
    hand = Hand()
    x, y = hand.argument(1), hand.argument(1)
    both = hand.point("add", x, y)
    n, m = x.shape[0], y.shape[0]
    half = hand.slice(x, (0,), (2,), ((n + 1) // 2,))
    other = hand.slice(y, (0,), (2,), ((m + 1) // 2,))
    fusion = settle(hand.fusion(both, half, other), (7,), (7,)).fusion
    _, first, second = fusion.outputs
    assert first.shape == second.shape


def test_equal_answers_for_all_sizes_of_a_class() -> None:
    fusion = hand_softmax()
    asked = questions(fusion)
    given = [answer(fusion, asked, sizes_of(s)) for s in [(2, 3), (999, 2), (5, 10**9)]]
    assert given[0] == given[1] == given[2]
    assert len({hash(g) for g in given}) == 1
    others = [answer(fusion, asked, sizes_of(s)) for s in [(1, 3), (3, 1), (0, 3)]]
    assert len({*given, *others}) == 4


def test_each_extent_is_asked_for_once_and_constants_are_not() -> None:
    hand = Hand()
    x = hand.argument(2)
    y = hand.shaped(4, 1, *x.shape)
    asked = questions(hand.fusion(hand.point("add", x, y)))
    assert asked.extents == x.shape


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"add: operands could not be broadcast") as e:
        settle(_add(), (4, 5), (6,))
    text = str(e.value)
    assert "(4,5) (6,)" in text
    assert "axis -1 has sizes 5 and 6" in text


def test_the_missing_axis_is_named() -> None:
    with pytest.raises(ShapeError, match=r"write x\[:, None\] for \(4,\)"):
        settle(_add(), (4, 5), (4,))


def test_a_stretch_that_shrinks_is_refused() -> None:
    hand = Hand()
    x = hand.argument(1)
    fusion = hand.fusion(hand.expand(x, 3, 1))
    settle(fusion, (1,))
    with pytest.raises(
        ShapeError, match=r"broadcast_to: .* \(2,\) does not stretch to \(3,1\)"
    ):
        settle(fusion, (2,))


def test_a_squeeze_of_a_longer_axis_is_refused() -> None:
    hand = Hand()
    x = hand.argument(2)
    fusion = hand.fusion(hand.squeeze(x, 1))
    settle(fusion, (3, 1))
    with pytest.raises(ShapeError, match="axis 1 must be 1, but is 2"):
        settle(fusion, (3, 2))


@pytest.mark.parametrize("op", ReduceOp)
def test_an_empty_reduction_needs_an_identity(op: ReduceOp) -> None:
    hand = Hand()
    x = hand.argument(2)
    if op is ReduceOp.MOMENTS:
        fusion = hand.fusion(*hand.moments(x, 1))
    else:
        fusion = hand.fusion(hand.reduce(op, x, 1))
    settle(fusion, (0, 0))
    if op.value.removeprefix("arg").removeprefix("f") in ("max", "min"):
        with pytest.raises(ShapeError, match="no identity"):
            settle(fusion, (3, 0))
    else:
        settle(fusion, (3, 0))


def test_no_reduction_runs_over_an_axis_of_one() -> None:
    for op in ReduceOp:
        if op is ReduceOp.MOMENTS:
            continue
        hand = Hand()
        x = hand.argument(3)
        fusion = settle(hand.fusion(hand.reduce(op, x, 0, 2)), (1, 3, 4)).fusion
        assert [r.axes for r in fusion.reductions] == [(1,)]
        kinds = [type(e) for e in settle(fusion, (1, 3, 1)).fusion.exprs]
        assert Reduce not in kinds
        assert Squeeze in kinds or Expand in kinds


SIZES = st.sampled_from([0, 1, 2, 5])


@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@settings(max_examples=150)
@given(
    sizes=st.lists(SIZES, min_size=3, max_size=3),
    ones=st.lists(st.booleans(), min_size=6, max_size=6),
    seed=st.integers(0, 100),
)
def test_the_meaning_stays_for_any_axes_of_none_and_one(
    sizes: list[int], ones: list[bool], seed: int
) -> None:
    def function(a: Any, b: Any, c: Any) -> Any:
        y = a * b + c
        column = y.sum(axis=1, keepdims=True)
        return y, column / (1 + b), y.var(axis=(0, 2)), np.sum(y - column)

    rng = np.random.default_rng(seed)
    given = [_stretchable(sizes, ones[k::2], rng) for k in (0, 1)]
    given.append(rng.standard_normal(sizes[1:]).astype(np.float32))
    arrays = [np.ascontiguousarray(a) for a in given]
    before = traced(function, *(np.ones((4,) * a.ndim, np.float32) for a in arrays))
    shapes = [a.shape for a in arrays]
    after = settle(before, *shapes).fusion
    verify_fusion(after)
    with np.errstate(all="ignore"):
        expected = function(*arrays)
    for got, want in zip(
        Evaluator(arrays, sizes_of(*shapes)).run(after), expected, strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
        assert got.dtype == want.dtype


def _stretchable(
    sizes: Sequence[int], ones: Sequence[bool], rng: np.random.Generator
) -> Any:
    shape = [1 if one else n for n, one in zip(sizes, ones, strict=True)]
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", CASES)
def test_named_fusions_mean_the_same_at_other_sizes(name: str) -> None:
    case = CASES[name]
    fusion = traced(case.function, *case.arguments())
    arguments = case.arguments(seed=5, scale=2)
    shapes = [np.shape(a) for a in arguments]
    values = sizes_of(*shapes)
    values |= {
        scalar_symbols.scalar_input(k): a
        for k, a in enumerate(arguments)
        if type(a) is int
    }
    asked = questions(fusion)
    concrete = concretize(fusion, asked, answer(fusion, asked, values))
    before = Evaluator(arguments, values).run(fusion)
    after = Evaluator(arguments, values).run(concrete.fusion)
    for got, want in zip(after, before, strict=True):
        np.testing.assert_array_equal(got, want)


def test_dtypes_and_lines_are_kept() -> None:
    fusion = traced(CASES["softmax_bf16"].function, *CASES["softmax_bf16"].arguments())
    after = settle(fusion, (12, 64)).fusion
    assert after.outputs[0].dtype is DType.BF16
    assert after.outputs[0].source == fusion.outputs[0].source
    assert after.name == fusion.name


def test_slices_that_meet_make_sizes_equal() -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        return (x[1:] - y[:-1])[:, 1:] * z[:-1, 2:]

    x = np.ones((5, 6))
    found = settled(f, x, x, np.ones((5, 7)))
    rows = {a.result.shape[0] for a in found.arguments}
    columns = {a.result.shape[1] for a in found.arguments}
    assert len(rows) == 1
    assert len(columns) == 2  # one differs from the others by a number


def test_extents_that_met_before_are_not_compared_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = [0]
    settle_scalars = Extents.settled

    def counted(*given: Any) -> Any:
        asked[0] += 1
        return settle_scalars(*given)

    monkeypatch.setattr(Extents, "settled", counted)

    def asked_by(steps: int) -> int:
        def function(x: Any, y: Any) -> Any:
            for k in range(steps):
                x = x * y + k
            return x

        asked[0] = 0
        settled(function, np.ones((4, 5)), np.ones((4, 5)))
        return asked[0]

    one, many = asked_by(1), asked_by(30)
    assert many - one < 3 * 29  # of each step, once for each of its two results


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("dtype", ["f8", "f2", "c16"])
def test_a_sum_of_one_negative_zero_is_zero(backend: str, dtype: str) -> None:
    program = lambda x: (x.sum(axis=0), x.mean(), x.sum(axis=1, keepdims=True))  # noqa: E731
    for shape in ((1, 3), (3, 1), (1, 1)):
        x = -np.zeros(shape, dtype)
        for wanted, found in zip(
            program(x), nfuser.fuse(program, backend=backend)(x), strict=True
        ):
            assert np.array_equal(np.signbit(wanted.real), np.signbit(found.real))
