# SPDX-License-Identifier: Apache-2.0
"""Sums that undo stretching: sizes tell which axes are summed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import ExpandDims, Reduce, Squeeze, SumTo
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_fusion
from tests.hand_built import settle, sizes_of
from tests.oracle.fusion_meaning import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.fusion import Fusion


def _undone() -> Fusion:
    """Sum what a vector was stretched to beside a cube, back to the vector's shape."""
    b = ops.Builder()
    x, y = b.argument(0, 3, DType.F64), b.argument(1, 2, DType.F64)
    return b.fusion([ops.sum_to(b, ops.add(b, x, y), y.shape)])


@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 3, 4), (3, 4)],
        [(2, 3, 4), (1, 4)],
        [(2, 3, 4), (1, 1)],
        [(1, 3, 4), (3, 4)],
        [(1, 1, 4), (3, 1)],
        [(1, 1, 1), (1, 1)],
        [(0, 3, 4), (1, 4)],
    ],
    ids=str,
)
def test_the_sum_has_the_shape_of_what_was_stretched(
    shapes: list[tuple[int, ...]],
) -> None:
    fusion = _undone()
    settled = settle(fusion, *shapes).fusion
    verify_fusion(settled)
    assert not any(isinstance(e, SumTo) for e in settled.exprs)
    arrays = [np.random.default_rng(0).random(shape) for shape in shapes]
    both = [Evaluator(arrays, sizes_of(*shapes)).run(f)[0] for f in (fusion, settled)]
    assert both[0].shape == both[1].shape == shapes[1]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-15)


def test_the_text_of_a_sum_before_and_after(
    golden: Callable[[str], None],
) -> None:
    fusion = _undone()
    golden(text(fusion) + text(settle(fusion, (2, 3, 4), (1, 4)).fusion))


def test_what_is_known_is_summed_at_once() -> None:
    b = ops.Builder()
    x = b.argument(0, 2, DType.F64)
    rows, columns = x.shape
    assert ops.sum_to(b, x, x.shape) is x
    assert ops.sum_to(b, x, (columns,)).shape == (columns,)
    assert ops.sum_to(b, x, (rows, sc.const(1))).shape == (rows, sc.const(1))
    kinds = {type(e) for e in b.exprs}
    assert {Reduce, ExpandDims} <= kinds
    assert not kinds & {SumTo, Squeeze}
