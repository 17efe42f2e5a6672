# SPDX-License-Identifier: Apache-2.0
"""Every complex tensor becomes a pair of real ones."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import ReduceOp
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.compiler.rewrite.types.split_complex import split_complex
from nfuser.errors import VerifyError
from tests.hand_built import Hand, hand_softmax, settled, sizes_of
from tests.oracle.fusion_meaning import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_product_with_a_constant(golden: Callable[[str], None]) -> None:
    hand = Hand()
    z = hand.argument(1, DType.C64)
    w = hand.point("multiply", z, hand.constant(2 - 1j, DType.C64))
    total = hand.reduce(ReduceOp.SUM, w, 0)
    golden(text(split_complex(hand.fusion(w, total))))


def test_a_comparison_a_cast_and_a_view(golden: Callable[[str], None]) -> None:
    hand = Hand()
    z, x = hand.argument(2, DType.C128), hand.argument(2, DType.F64)
    turned = hand.permute(z, 1, 0)
    same = hand.point("equal", turned, hand.cast(x, DType.C128))
    golden(text(split_complex(hand.fusion(same))))


CASES: dict[str, Callable[..., Any]] = {
    "products": lambda a, b: (a * b - a, -a, a / b),
    "parts": lambda a, b: (a.real * b.imag, np.conj(a)),
    "magnitudes": lambda a, b: (np.abs(a), np.sqrt(b), np.exp(a)),
    "compared": lambda a, b: (a == b, a != b, np.where(a == b, a, b)),
    "reduced": lambda a, b: (a.sum(0), b.mean(1), (a * b).sum()),
    "views": lambda a, b: (a.T[1:, ::-1], b[None, :, 0]),
    "matrices": lambda a, b: (a @ b.T, a.real @ b.imag.T * 1j),
    "mixed": lambda a, b: (a * 2.0 + b.real, a + 1j),
}


@pytest.mark.parametrize("name", CASES)
def test_the_pair_means_what_the_complex_number_meant(name: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (
        (rng.standard_normal((3, 4)) + 1j * rng.standard_normal((3, 4)))
        .astype(np.complex64)
        .copy()
        for _ in range(2)
    )
    b[0] = a[0]
    before = settled(CASES[name], a, b)
    after = split_complex(before)
    verify_fusion(after)
    assert not any(t.dtype.is_complex for t in after.definition)
    sizes = sizes_of(a.shape, b.shape)
    expected: list[Any] = Evaluator([a, b], sizes).run(before)
    parts = iter(Evaluator([a, b], sizes).run(after))
    for array in expected:
        if array.dtype.kind == "c":
            np.testing.assert_allclose(next(parts), array.real, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(next(parts), array.imag, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_allclose(next(parts), array, rtol=1e-5, atol=1e-6)
    assert next(parts, None) is None


def test_a_maximum_of_complex_numbers_is_refused() -> None:
    hand = Hand()
    z = hand.argument(1, DType.C64)
    with pytest.raises(VerifyError, match="no complex form of max"):
        split_complex(hand.fusion(hand.reduce(ReduceOp.MAX, z, 0)))


def test_a_function_that_the_verbs_should_have_written_out_is_refused() -> None:
    hand = Hand()
    z = hand.argument(1, DType.C64)
    with pytest.raises(VerifyError, match="no complex form of exp"):
        split_complex(hand.fusion(hand.point("exp", z)))


def test_the_same_object_comes_back_without_complex_numbers() -> None:
    fusion = hand_softmax()
    assert split_complex(fusion) is fusion
