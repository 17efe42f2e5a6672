# SPDX-License-Identifier: Apache-2.0
"""The rewrites together: meaning, order, and the runner between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from nfuser import config
from nfuser.base.debug import timing
from nfuser.base.debug.passes import run_passes
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Reduce
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.compiler.rewrite.passes import PASSES, rewrite
from nfuser.compiler.rewrite.types.casts import simplify_casts
from nfuser.compiler.rewrite.types.compute_types import widen_halves
from nfuser.errors import VerifyError
from tests.fusions import CASES
from tests.hand_built import hand_softmax, settle, traced

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_bf16_softmax_after_all_rewrites(golden: Callable[[str], None]) -> None:
    golden(text(rewrite(settle(hand_softmax(DType.BF16), (4, 8))).fusion))


@pytest.mark.parametrize("name", CASES)
def test_a_second_time_changes_nothing(name: str) -> None:
    case = CASES[name]
    arguments = case.arguments()
    fusion = traced(case.function, *arguments)
    once = rewrite(settle(fusion, *(np.shape(a) for a in arguments)))
    assert text(rewrite(once).fusion) == text(once.fusion)


def test_casts_are_simplified_after_they_are_made() -> None:
    fusion = settle(hand_softmax(DType.BF16), (4, 8)).fusion
    late = simplify_casts(widen_halves(fusion))
    early = widen_halves(simplify_casts(fusion))
    assert PASSES.index(widen_halves) < PASSES.index(simplify_casts)
    assert len(late.exprs) <= len(early.exprs)


def _keep(fusion: Fusion) -> Fusion:
    return fusion


def _break(fusion: Fusion) -> Fusion:
    exprs = [e for e in fusion.exprs if not isinstance(e, Reduce)]
    return Fusion(fusion.name, exprs, fusion.outputs)


def _mend(fusion: Fusion) -> Fusion:
    return hand_softmax()


def _run(*passes: Callable[[Fusion], Fusion]) -> tuple[Fusion, list[str]]:
    dumped: list[str] = []
    made = run_passes(
        "test",
        hand_softmax(),
        passes,
        verify=verify_fusion,
        dump=lambda name, _: dumped.append(name),
    )
    return made, dumped


def test_the_runner_names_what_changed() -> None:
    timing.clear()
    _, dumped = _run(_keep, _mend)
    assert dumped == ["test._mend"]
    assert set(timing.table()) == {"test._keep", "test._mend"}


def test_a_pass_that_breaks_the_program_is_caught_at_once() -> None:
    with config.override(verify=2), pytest.raises(VerifyError, match="definition"):
        _run(_break, _mend)
    with config.override(verify=1):
        assert verify_fusion(_run(_break, _mend)[0]) is None
    with config.override(verify=1), pytest.raises(VerifyError, match="definition"):
        _run(_mend, _break)
    with config.override(verify=0):
        assert not _run(_break)[0].reductions


def test_the_pass_limit_stops_early() -> None:
    with config.override(pass_limit=1):
        assert _run(_mend, _break)[1] == ["test._mend"]
