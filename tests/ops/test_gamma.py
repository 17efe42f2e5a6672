# SPDX-License-Identifier: Apache-2.0
"""The logarithm of the gamma function against more digits."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

from nfuser import FusionDefinition


def _lgamma(x: Any, backend: str = "cpu") -> Any:
    with FusionDefinition(backend=backend) as fd:
        fd.add_output(fd.ops.lgamma(fd.from_numpy(x)))
    return fd.execute([x])[0]


def _exact(x: Any) -> Any:
    """Return what more digits give: the C library has few about its zeros."""
    with mpmath.workdps(30):
        return np.asarray([float(mpmath.re(mpmath.loggamma(n))) for n in x.tolist()])


def _positive(kind: Any) -> Any:
    rng = np.random.default_rng(0)
    near = 1e-6 * rng.normal(size=100)
    sizes = 10.0 ** rng.uniform(-30, 30, 200)
    parts = (rng.uniform(0, 12, 1000), sizes, 1 + near, 2 + near, [1.0, 2.0, 3.0, 10.0])
    return np.concatenate(parts).astype(kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_it_is_right_for_positive_numbers_also_about_both_zeros(kind: Any) -> None:
    x = _positive(kind)
    found = _lgamma(x)
    assert found.dtype == kind
    np.testing.assert_allclose(found, _exact(x), 6 * np.finfo(kind).eps)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_negative_numbers_are_reflected(kind: Any) -> None:
    rng = np.random.default_rng(1)
    parts = -rng.uniform(0, 20, 500), -(10.0 ** rng.uniform(-30, 0, 100))
    x = np.concatenate(parts).astype(kind)
    eps = np.finfo(kind).eps
    np.testing.assert_allclose(_lgamma(x), _exact(x), 16 * eps, 16 * eps)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_poles_and_infinities_are_infinite(backend: str) -> None:
    x = np.asarray([0.0, -0.0, -1.0, -2.0, -170.0, np.inf, -np.inf])
    assert np.all(_lgamma(x, backend) == np.inf)
    assert np.isnan(_lgamma(np.asarray([np.nan]), backend)).all()


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_16_bit_floats_compute_in_32(kind: Any) -> None:
    x = np.linspace(0.1, 30, 50).astype(kind)
    found = _lgamma(x)
    wanted = _lgamma(x.astype(np.float32)).astype(kind)
    np.testing.assert_array_equal(found.view(np.uint16), wanted.view(np.uint16))
