# SPDX-License-Identifier: Apache-2.0
"""What is a sum of arrays, whose derivative reads none of its terms."""

from __future__ import annotations

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ops import Builder
from nfuser.compiler.ops.elementwise.random_words import random_words
from nfuser.compiler.transforms.partition import sums_of_arrays


def test_a_term_may_be_weighted_by_what_is_drawn_of_a_key_in_memory() -> None:
    b = Builder()
    x, y = (b.argument(k, 2, DType.F32) for k in range(2))
    key = b.argument(2, 0, DType.I64)
    words = random_words(b, x.shape, key, 0, 32)
    kept = b.point("less", words, b.convert(1 << 31, words.dtype))
    dropped = b.point("select", kept, x, b.constant(0.0, DType.F32))
    total = b.point("add", b.point("multiply", dropped, b.constant(2.0, DType.F32)), y)
    assert {dropped, total} <= sums_of_arrays(b.exprs)


def test_an_array_of_integers_is_no_weight() -> None:
    b = Builder()
    x, y = (b.argument(k, 1, DType.F32) for k in range(2))
    counts = b.cast(b.argument(2, 1, DType.I64), DType.F32)
    total = b.point("add", b.point("multiply", x, counts), y)
    assert total not in sums_of_arrays(b.exprs)


def test_a_float_in_memory_is_no_weight() -> None:
    b = Builder()
    x, scale = b.argument(0, 1, DType.F32), b.argument(1, 0, DType.F32)
    assert b.point("multiply", x, scale) not in sums_of_arrays(b.exprs)


def test_what_an_array_chooses_is_no_sum() -> None:
    b = Builder()
    x, y = (b.argument(k, 1, DType.F32) for k in range(2))
    chosen = b.point("select", b.argument(2, 1, DType.BOOL), x, y)
    assert chosen not in sums_of_arrays(b.exprs)
