# SPDX-License-Identifier: Apache-2.0
"""Operations have verbs under their names."""

from __future__ import annotations

import pytest

import nfuser.compiler.ops as ops
import nfuser.numpy as xp
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ops.verbs import elementwise_verbs

# What other verbs and passes write, and what has another name there.
_INNER = {
    *("log_positive", "multiply_add", "philox16", "philox32", "philox64", "cast"),
    *("bit_and", "bit_or", "bit_xor", "select", "complex"),
}
_PUBLIC = [n for n in POINT_OPS if n not in _INNER and not n.endswith("_near")]


@pytest.mark.parametrize("name", _PUBLIC)
def test_each_row_has_a_verb_that_is_found_by_its_name(name: str) -> None:
    assert hasattr(ops, name), (
        f"write the verb {name}; of floats into compiler/ops/elementwise/float_rows.py"
    )


def test_verbs_of_operands_alone_are_in_the_namespace() -> None:
    inner = {"complex_of", "erfcinv", "erfinv", "lgamma", "truth"}
    verbs = {**elementwise_verbs(1), **elementwise_verbs(2)}
    assert set(verbs) - inner - set(xp.__all__) == set()
