# SPDX-License-Identifier: Apache-2.0
"""Fusions are cut where one kernel cannot run them, and the reasons are kept."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.ir.expr import Argument, PartialSum, Pointwise, Reduce
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.schedule.registry import find_scheduler
from nfuser.compiler.segment import Rejection, Segmented, segment
from nfuser.compiler.segment.segmented import text
from tests.fusions import CASES
from tests.hand_built import settle, sizes_of, traced
from tests.oracle.fusion_meaning import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion

X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6)
SQUARE = X[:, :4].copy()


def _fusion(function: Callable[..., Any], *arrays: Any) -> Fusion:
    shapes = [np.shape(a) for a in arrays]
    return rewrite(settle(traced(function, *arrays), *shapes)).fusion


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


WHOLE: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "softmax": (_softmax, (X,)),
    "gelu": (lambda x, b: np.tanh(x + b) * x, (X, X[0])),
    "transposed": (lambda x: x + x.T, (SQUARE,)),
    "two statistics": (lambda x: (x.mean(1), x.var(1)), (X,)),
    "rows with the whole": (lambda x: (x.sum(1), x - x.sum(1, keepdims=True)), (X,)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_one_kernel_can_run_stays_whole(name: str) -> None:
    function, arrays = WHOLE[name]
    fusion = _fusion(function, *arrays)
    segmented = segment(fusion, find_scheduler)
    (piece,) = segmented.segments
    assert piece.fusion is fusion
    assert segmented.cuts == ()


CUT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "rows_and_columns": (lambda x: x.sum(0) + x.sum(1)[0], (SQUARE,)),
    "other_outputs": (lambda x, y: (x + 1, y + 1), (X, X[0])),
    "sum_of_sums": (lambda x: np.exp(x).sum(1).sum(), (X,)),
    "mirrored_rows": (lambda x: np.sin(x).sum(1)[::-1] * x[:, 0], (X,)),
    "softmax_then_columns": (lambda x: _softmax(x).sum(0), (X,)),
    "both_softmaxes": (lambda x: _softmax(x) + _softmax(x.T).T, (SQUARE,)),
    "sums_of_shares": (lambda x: (x / x.sum(1, keepdims=True)).cumsum(1), (X,)),
    "mirrored_scan": (lambda x: np.cumsum(x, 1)[:, ::-1] + x, (X,)),
    "layer": (lambda x, w, b: np.maximum(x @ w.T + b, 0), (X, X, X[:, 0])),
    "scores": (lambda x: _softmax(x @ x.T) @ x, (X,)),
    "also_read": (lambda x: (x.T @ (x + 1), x.T * 2), (X,)),
    "statistics_of_all": (lambda x: (x - x.mean()) / x.sum(0), (X,)),
}


@pytest.mark.parametrize("name", CUT)
def test_what_it_cannot_is_cut(name: str, golden: Callable[[str], None]) -> None:
    function, arrays = CUT[name]
    segmented = segment(_fusion(function, *arrays), find_scheduler)
    assert len(segmented.segments) > 1
    golden(re.sub(r"  # \S+:\d+$", "", text(segmented), flags=re.MULTILINE))


def _check_pieces(segmented: Segmented) -> None:
    """Pieces run in order, define what they store once, and have a scheduler.

    What one leaves for another has a reason to.
    """
    known = {a.result for a in segmented.fusion.arguments}
    explained = known | {cut.tensor for cut in segmented.cuts if cut.reasons}
    for piece in segmented.segments:
        verify_fusion(piece.fusion)
        assert set(piece.inputs) <= known & explained
        assert piece.inputs == tuple(a.result for a in piece.fusion.arguments)
        assert not known & set(piece.fusion.outputs)
        known |= set(piece.fusion.outputs)
        found = find_scheduler(piece.fusion)
        assert not isinstance(found, tuple)
        assert found.name == piece.scheduler.name
    assert set(segmented.fusion.outputs) <= known
    names = [piece.fusion.name for piece in segmented.segments]
    assert len(set(names)) == len(names)


def _run_pieces(segmented: Segmented, arrays: Sequence[Any]) -> list[Any]:
    """Run piece after piece with NumPy."""
    sizes = sizes_of(*(np.shape(a) for a in arrays))
    held = {a.result: arrays[a.slot] for a in segmented.fusion.arguments}
    for piece in segmented.segments:
        given = [held[t] for t in piece.inputs]
        outputs = Evaluator(given, sizes).run(piece.fusion)
        held |= dict(zip(piece.fusion.outputs, outputs, strict=True))
    return [held[t] for t in segmented.fusion.outputs]


@pytest.mark.parametrize("name", [*CUT, *WHOLE])
def test_the_pieces_mean_what_the_whole_meant(name: str) -> None:
    function, arrays = (CUT | WHOLE)[name]
    segmented = segment(_fusion(function, *arrays), find_scheduler)
    _check_pieces(segmented)
    expected: Any = function(*arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for got, want in zip(_run_pieces(segmented, arrays), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_named_fusions_are_cut_in_order(name: str) -> None:
    case = CASES[name]
    _check_pieces(segment(_fusion(case.function, *case.arguments()), find_scheduler))


def test_the_reasons_for_a_cut_are_data() -> None:
    segmented = segment(_fusion(lambda x: np.exp(x).sum(1).sum(), X), find_scheduler)
    (cut,) = segmented.cuts
    assert isinstance(segmented.fusion.definition[cut.tensor], Reduce)
    assert {type(r) for r in cut.reasons} == {Rejection}
    assert [r.scheduler for r in cut.reasons] == [
        "pointwise",
        "reduction",
        "scan",
        "horizontal",
    ]
    assert "it reduces other axes than the rest" in {r.reason for r in cut.reasons}
    assert str(cut.reasons[0]) == "pointwise: it reduces"


def _is_exp(exprs: Sequence[Expr]) -> bool:
    return any(isinstance(e, Pointwise) and e.op.name == "exp" for e in exprs)


def test_a_predicate_may_forbid_a_merge() -> None:
    fusion = _fusion(lambda x: np.exp(x * 2) + 1, X)
    segmented = segment(fusion, find_scheduler, lambda a, b: not _is_exp([*a, *b]))
    _check_pieces(segmented)
    assert len(segmented.segments) == 3
    reasons = {str(r) for cut in segmented.cuts for r in cut.reasons}
    assert reasons == {"should_merge: the caller keeps them apart"}
    (got,) = _run_pieces(segmented, [X])
    np.testing.assert_allclose(got, np.exp(X * 2) + 1, rtol=1e-5)
    together = segment(fusion, find_scheduler, lambda a, b: True)
    assert len(together.segments) == 1


def test_a_cut_that_would_close_a_cycle_is_not_merged() -> None:
    def function(x: Any) -> Any:
        y = np.exp(x)
        columns = np.sin(y.sum(0))
        return y * columns[:, None] + y.sum(1, keepdims=True)

    segmented = segment(_fusion(function, SQUARE), find_scheduler)
    _check_pieces(segmented)
    (got,) = _run_pieces(segmented, [SQUARE])
    np.testing.assert_allclose(got, function(SQUARE), rtol=1e-4)


def test_what_is_cheap_is_computed_again_instead_of_stored() -> None:
    segmented = segment(
        _fusion(lambda x: (x * 2).sum(0) + (x * 2).sum(1)[0], SQUARE), find_scheduler
    )
    stored = {t for piece in segmented.segments for t in piece.fusion.outputs}
    for tensor in stored - set(segmented.fusion.outputs):
        definition = segmented.fusion.definition[tensor]
        assert isinstance(definition, (Reduce, PartialSum))


def test_a_gradient_computes_again_what_sums_of_differences_have_read() -> None:
    def spread(x: Any) -> Any:
        down, along = x[1:] - x[:-1], x[:, 1:] - x[:, :-1]
        return (down * down).sum() + (along * along).sum()

    def both(t: Any, x: Any) -> Any:
        value, pull = nfuser.vjp(spread, x)
        return value, *pull(t)

    segmented = segment(_fusion(both, X[0, 0], X), find_scheduler)
    *sums, slope = segmented.segments
    alone = segment(_fusion(spread, X), find_scheduler).segments
    for piece, other in zip(sums, alone, strict=True):
        assert [t.ndim for t in piece.fusion.outputs] == [0]
        assert len(piece.fusion.exprs) == len(other.fusion.exprs)
    assert slope.scheduler.name == "pointwise"


def test_a_number_stays_a_number_in_every_piece() -> None:
    fusion = _fusion(lambda x, a: (x * a).sum(0) + (x * a).sum(1)[0], SQUARE, 2.0)
    for piece in segment(fusion, find_scheduler).segments:
        for expr in piece.fusion.exprs:
            if isinstance(expr, Argument) and not expr.result.ndim:
                assert expr.by_value


def test_an_operation_may_read_one_tensor_at_any_number_of_places() -> None:
    def join(x: Any) -> Any:
        return np.array([x[: i % 5].sum() for i in range(100)])

    np.testing.assert_array_equal(nfuser.fuse(join)(X[0]), join(X[0]))
