# SPDX-License-Identifier: Apache-2.0
"""Outputs that are given lie apart: one that is written over another is refused."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(8.0)


def _bound(one: Any, other: Any) -> None:
    nfuser.fuse(lambda x: (x + 1, x * 2)).bind(X, out=(one, other))()


def _program(one: Any, other: Any) -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1], dtype=nfuser.DataType.Double)
    hc.add_output(hc.unary("negative", x))
    hc.add_output(hc.unary("absolute", x))
    nfuser.HostIrEvaluator(hc.program()).run([X], [one, other])


@pytest.mark.parametrize("run", [_bound, _program])
def test_outputs_that_share_an_element_are_refused(
    run: Callable[[Any, Any], None],
) -> None:
    z = np.zeros(32)
    for one, other in ((z[:8], z[4:12]), (z[:8], z[7:15]), (z[:16:2], z[8:16])):
        with pytest.raises(ArgumentError, match="give each result another array"):
            run(one, other)
    assert not z.any()


@pytest.mark.parametrize("run", [_bound, _program])
def test_outputs_may_interleave(run: Callable[[Any, Any], None]) -> None:
    z = np.zeros(32)
    run(z[:16:2], z[1:16:2])
    run(z[16:24], z[24:])
    assert np.count_nonzero(z) >= 28
