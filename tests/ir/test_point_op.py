# SPDX-License-Identifier: Apache-2.0
"""Operations are rows of one table, in every process."""

from __future__ import annotations

import pickle

from nfuser.compiler.ir.point_op import POINT_OPS, copy_in


def test_a_pickled_row_is_the_row_again() -> None:
    for row in POINT_OPS.values():
        assert pickle.loads(pickle.dumps(row)) is row


def test_a_copy_in_an_order_of_its_own_keeps_it() -> None:
    turned = copy_in((1, 0))
    assert pickle.loads(pickle.dumps(turned)) == turned
