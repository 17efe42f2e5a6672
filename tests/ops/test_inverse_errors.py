# SPDX-License-Identifier: Apache-2.0
"""The inverses of erf and erfc, one number at a time, against 40 digits."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from scipy import special

from nfuser import DataType, FusionDefinition
from nfuser.compiler.ops.elementwise.inverse_errors import erfcinv, erfinv
from tests.accuracy import errors, exact, samples

if TYPE_CHECKING:
    from collections.abc import Callable

_NEAR_ONE = [1 - 2.0**-k for k in range(1, 54)]
_SMALL = [2.0**-k for k in range(0, 1075, 7)]


@pytest.mark.parametrize("function", [erfinv, erfcinv])
def test_numbers_are_near(function: Callable[[float], float]) -> None:
    drawn = samples(((-0.5, 0.5), (-1, 1), (0, 2)), np.float64, 300)
    x = np.concatenate([drawn, np.array(_NEAR_ONE + _SMALL)])
    found = np.array([function(float(v)) for v in x])
    assert errors(found, exact(function.__name__, x)).max() <= 4


def test_edges() -> None:
    assert (erfinv(1), erfinv(-1)) == (math.inf, -math.inf)
    assert (erfcinv(0), erfcinv(2)) == (math.inf, -math.inf)
    assert math.copysign(1, erfinv(-0.0)) == -1
    for outside in (1.5, -math.inf, math.nan):
        assert math.isnan(erfinv(outside))
    for outside in (-0.5, 2.5, math.inf, math.nan):
        assert math.isnan(erfcinv(outside))


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("dtype", [DataType.Half, DataType.BFloat16])
def test_16_bit_floats_compute_in_32(dtype: DataType, backend: str) -> None:
    kind: Any = np.float16 if dtype is DataType.Half else ml_dtypes.bfloat16
    x = np.linspace(-0.95, 0.95, 40).astype(kind)
    with FusionDefinition(backend=backend) as fd:
        t = fd.define_tensor(shape=[-1], dtype=dtype)
        fd.add_output(fd.ops.erfinv(t))
        fd.add_output(fd.ops.erfcinv(fd.ops.abs(t)))
    straight, complement = fd.execute([x])
    wide = x.astype(np.float32)
    assert straight.dtype == kind
    pairs = (straight, special.erfinv(wide)), (complement, special.erfcinv(abs(wide)))
    step = float(ml_dtypes.finfo(kind).eps)
    for found, wanted in pairs:
        np.testing.assert_allclose(found.astype(np.float32), wanted, step)
