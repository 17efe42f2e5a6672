# SPDX-License-Identifier: Apache-2.0
"""Complex functions and powers at zeros, infinities and what is not a number."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import nfuser

NAMES = "exp exp2 expm1 sinh cosh tanh sin cos tan sqrt log log1p reciprocal rint"
FUNCTIONS = NAMES.split()
EDGES = [0.0, 1.0, 30.0, 800.0, np.inf, np.nan]
BACKENDS = ["cpu", "interpret"]


def _edges(kind: Any) -> Any:
    signed = [*EDGES, *(-x for x in EDGES[:-1])]
    pairs = itertools.product(signed, signed)
    return np.array([complex(*pair) for pair in pairs], kind)


def _same(found: Any, expected: Any, name: object, tolerance: float = 1e-6) -> None:
    """Compare both parts, and the signs of zeros where both parts are numbers."""
    known = ~np.isnan(expected.real) & ~np.isnan(expected.imag)
    for part in ("real", "imag"):
        one, other = getattr(found, part), getattr(expected, part)
        np.testing.assert_allclose(one, other, tolerance, err_msg=str(name))
        signs = np.signbit(one[known]), np.signbit(other[known])
        np.testing.assert_array_equal(*signs, err_msg=str(name))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_functions_have_the_limits_of_numpy(kind: Any, backend: str) -> None:
    def function(z: Any) -> Any:
        return tuple(getattr(np, name)(z) for name in FUNCTIONS)

    z = _edges(kind)
    with np.errstate(all="ignore"):
        found = nfuser.fuse(function, backend=backend)(z)
        for name, one, other in zip(FUNCTIONS, found, function(z), strict=True):
            _same(one, other, name)


def test_a_part_that_is_no_number_is_not_lost_far_from_zero() -> None:
    z = np.array([complex(-30, np.nan), complex(-800, np.nan), complex(np.inf, 0)])
    tanh, exp, cosh = nfuser.fuse(lambda z: (np.tanh(z), np.exp(z), np.cosh(z)))(z)
    assert np.isnan([tanh[0].real, tanh[0].imag, exp[1].real, exp[1].imag]).all()
    assert (cosh[2].real, cosh[2].imag) == (np.inf, 0.0)


@pytest.mark.parametrize("number", [-3, -2, -1, 0, 0.5, 1, 2, 3, 5, 1j, -1j, 1 + 1j])
def test_zero_has_the_powers_of_numpy(number: complex) -> None:
    zeros = np.zeros(2, complex)
    with np.errstate(all="ignore"):
        expected = zeros**number
        np.testing.assert_array_equal(nfuser.fuse(lambda z: z**number)(zeros), expected)
        given = nfuser.fuse(lambda z, n: z**n)(zeros, np.array([number] * 2))
        np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("given", ["constant", "argument", "array"])
def test_whole_powers_are_products(given: str) -> None:
    z, exact = np.array([-3 + 0j, 2j, 1 + 1j]), np.array([-27 + 0j, -8j, -2 + 2j])
    for kind in (np.complex64, np.complex128):
        if given == "constant":
            found = nfuser.fuse(lambda z: z**3)(z.astype(kind))
        else:
            number = 3 if given == "argument" else np.full(3, 3, kind)
            found = nfuser.fuse(lambda z, n: z**n)(z.astype(kind), number)
        assert found.dtype == kind
        np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("kind", [int, complex, np.int64])
@pytest.mark.parametrize("number", [-5, -1, 1, 2, 4, 99])
def test_a_part_that_overflows_leaves_the_other_what_numpys_is(
    number: int, kind: Any
) -> None:
    pairs = [*itertools.product((0.0, 1.0, 1e200, np.inf, np.nan), (0.0, -2.0, 3.0))]
    pairs += [pair[::-1] for pair in pairs]
    z, n = np.array([complex(*pair) for pair in pairs]), kind(number)
    with np.errstate(all="ignore"):
        expected = z**n
        given = nfuser.fuse(lambda z, n: z**n)(z, n)
        constant = nfuser.fuse(lambda z: z**n)(z)
    for found in (given, constant):
        for part in ("real", "imag"):
            one, other = getattr(found, part), getattr(expected, part)
            np.testing.assert_allclose(one, other, 1e-12, err_msg=str(n))


@pytest.mark.parametrize("number", [-7, -2, 4, 17, 99])
def test_whole_powers_are_as_right_as_those_of_numpy(number: int) -> None:
    rng = np.random.default_rng(0)
    z = np.exp(2j * np.pi * rng.uniform(size=500)) * rng.uniform(0.9, 1.1, 500)
    single = z.astype(np.complex64)
    exact = single.astype(complex) ** number
    found = nfuser.fuse(lambda z, n: (z**n, z**number))(single, number)
    bound = 2 * np.max(np.abs(single**number - exact) / np.abs(exact))
    for one in found:
        assert np.max(np.abs(one - exact) / np.abs(exact)) <= bound


@pytest.mark.parametrize("decimals", [0, 2, -1])
def test_both_parts_are_rounded(decimals: int) -> None:
    z = np.array([1.25 - 13.5j, -0.125 + 2.5j, 25 + 0.005j])
    found = nfuser.fuse(lambda z: (np.round(z, decimals), z.round(decimals)))(z)
    for one in found:
        np.testing.assert_array_equal(one, np.round(z, decimals))


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_differences_from_one_do_not_cancel(kind: Any) -> None:
    z = np.array([1e-9 + 1e-8j, -1e-7j, 3e-6 - 1e-12j], kind)
    near, gone = nfuser.fuse(lambda z: (np.log1p(z), np.expm1(z)))(z)
    wide = z.astype(np.clongdouble)
    series = wide - wide**2 / 2 + wide**3 / 3, wide + wide**2 / 2 + wide**3 / 6
    for one, other in zip((near, gone), series, strict=True):
        np.testing.assert_allclose(one, other, 4 * np.finfo(kind).eps)
