# SPDX-License-Identifier: Apache-2.0
"""What libraries refuse, or round in their own way, linked programs do as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import HostError

if TYPE_CHECKING:
    from nfuser import HostIrContainer


def _product(hc: HostIrContainer, x: Any) -> None:
    hc.add_output(hc.matmul(x, hc.slice(x, (0, 0), (x.shape[0] - 1, x.shape[1]))))


def _by_vector(hc: HostIrContainer, x: Any) -> None:
    hc.add_output(hc.matmul(x, hc.select(x, 1, 0)))


def _largest(hc: HostIrContainer, x: Any) -> None:
    hc.add_output(hc.reduce("max", x, 1))
    hc.add_output(hc.unary("negative", x))


@pytest.mark.parametrize(
    ("write", "shape"),
    [
        *((_product, (4, 4)), (_product, (1, 2)), (_product, (30, 30))),
        *((_by_vector, (2, 3)), (_by_vector, (0, 3)), (_largest, (0, 0))),
    ],
)
def test_what_the_library_refuses_is_refused_each_time(write: Any, shape: Any) -> None:
    hc = nfuser.HostIrContainer("refused")
    write(hc, hc.define_tensor([-1, -1]))
    evaluator = nfuser.HostIrEvaluator(hc.program())
    for _ in range(4):
        with pytest.raises(HostError, match="ValueError"):
            evaluator.run([np.ones(shape, np.float32)])


def test_long_integers_are_rounded_as_by_libraries() -> None:
    hc = nfuser.HostIrContainer("long")
    x, n = hc.define_tensor([-1]), hc.define_integer()
    hc.add_output(hc.binary("add", x, n))
    evaluator = nfuser.HostIrEvaluator(hc.program())
    for number in ((1 << 62) + (1 << 38) + 1, 3):
        wanted = np.float32(np.float64(number))
        for _ in range(4):
            (found,) = evaluator.run([np.zeros(1, np.float32), number])
            assert found.item() == wanted
