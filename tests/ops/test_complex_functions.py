# SPDX-License-Identifier: Apache-2.0
"""Functions of complex numbers against NumPy's, part by part."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import FusionDefinition

if TYPE_CHECKING:
    from collections.abc import Callable

INVERSES: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
}
LOGARITHMS: dict[str, Callable[..., Any]] = {"log2": np.log2, "log10": np.log10}
OTHERS: dict[str, Callable[..., Any]] = {
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "silu": lambda z: z / (1 + np.exp(-z)),
}
KINDS = (np.complex64, np.complex128)


def _results(names: Any, z: Any, backend: str = "cpu") -> list[Any]:
    with FusionDefinition(backend=backend) as fd:
        x = fd.from_numpy(z)
        for name in names:
            fd.add_output(getattr(fd.ops, name)(x))
    return fd.execute([z])


def _points(kind: Any, count: int) -> Any:
    """Return numbers of all sizes, about the cuts' ends, and on the cuts."""
    rng = np.random.default_rng(0)
    x, y = 10.0 ** rng.uniform(-12, 12, (2, count)) * rng.choice([-1, 1], (2, count))
    plain = rng.normal(size=count) + 1j * rng.normal(size=count)
    parts = (plain, x + 1j * y, 1 + 1j * y, x + 0j, x - 0j, 1j * y, 1 + 1e-9 * x)
    return np.concatenate(parts).astype(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_both_parts_of_inverse_functions_are_right(kind: Any) -> None:
    z = _points(kind, 2000)
    eps = np.finfo(kind).eps
    for name, found in zip(INVERSES, _results(INVERSES, z), strict=True):
        assert found.dtype == kind
        with np.errstate(all="ignore"):
            want = INVERSES[name](z.astype(np.complex128))
        for got, part in ((found.real, want.real), (found.imag, want.imag)):
            np.testing.assert_allclose(got, part, 4 * eps, 0, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [INVERSES, LOGARITHMS])
def test_infinities_zeros_and_nan_give_what_numpy_gives(names: Any, kind: Any) -> None:
    limits = np.finfo(kind)
    values = [0.0, 1.0, 0.5, 2.0, np.inf, float(limits.max) / 2, float(limits.tiny)]
    signed = [*values, *(-v for v in values), np.nan]
    z = np.asarray([complex(a, b) for a, b in itertools.product(signed, signed)], kind)
    for name, found in zip(names, _results(names, z), strict=True):
        with np.errstate(all="ignore"):
            want = names[name](z)
        for got, part in ((found.real, want.real), (found.imag, want.imag)):
            # Subnormal results may vanish; the sign of a zero tells the side of a cut.
            np.testing.assert_allclose(got, part, 1e-5, float(limits.tiny))
            known = ~np.isnan(part)
            signs = np.signbit(got[known]), np.signbit(part[known])
            np.testing.assert_array_equal(*signs, err_msg=name)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_logarithms_roots_and_activations_take_complex_numbers(backend: str) -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=(2, 20)) + 1j * rng.normal(size=(2, 20))
    table = INVERSES | LOGARITHMS | OTHERS
    for name, found in zip(table, _results(table, z, backend), strict=True):
        np.testing.assert_allclose(found, table[name](z), 1e-13, err_msg=name)


def test_the_variance_of_complex_numbers_is_real() -> None:
    rng = np.random.default_rng(2)
    z = (rng.normal(size=(4, 50)) + 1j * rng.normal(size=(4, 50))).astype(np.complex64)
    with FusionDefinition() as fd:
        x = fd.from_numpy(z)
        for output in (*fd.ops.var_mean(x, [1], keepdim=True), fd.ops.var(x, 0)):
            fd.add_output(output)
    variance, mean, columns = fd.execute([z])
    assert variance.dtype == columns.dtype == np.float32
    assert mean.dtype == np.complex64
    np.testing.assert_allclose(variance, np.var(z, 1, ddof=1, keepdims=True), 1e-6)
    np.testing.assert_allclose(mean, np.mean(z, 1, keepdims=True), 1e-5)
    np.testing.assert_allclose(columns, np.var(z, 0, ddof=1), 1e-6)


def test_a_fused_function_has_them_too() -> None:
    @nfuser.fuse
    def f(z: Any) -> Any:
        return np.arccos(z) + np.arctanh(z) * np.log2(z), np.std(z)

    z = np.asarray([0.5 + 2j, -3 - 0j, 1e5j])
    found, spread = f(z)
    np.testing.assert_allclose(found, np.arccos(z) + np.arctanh(z) * np.log2(z), 1e-13)
    np.testing.assert_allclose(spread, np.std(z), 1e-13)
