# SPDX-License-Identifier: Apache-2.0
"""Parts of complex numbers are assigned to, and updates touch an array first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import DTypeError, UnsupportedAttributeError
from tests.trace.test_assignment import agree

Z = np.arange(6.0) * (1 + 2j) - 3


def test_real_and_imaginary_parts_are_assigned() -> None:
    def parts(z: Any, x: Any) -> Any:
        w = z * 2
        w.real = w.imag
        z.imag *= 2
        z.real = 1
        z[1:].imag[::2] += x[0]
        z.imag = z.imag[::-1]
        return w

    agree(parts, Z, np.arange(6.0))


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_a_result_that_has_a_part_of_what_is_assigned_to_is_a_new_array(
    backend: str,
) -> None:
    def conjugated(z: Any) -> Any:
        z *= 2
        z.real[1:] = 3
        return z.conj()

    def turned(z: Any) -> Any:
        z.imag[1:] = 3
        return z * 1j, z.real + 0, z.conj()

    for function in (conjugated, turned):
        fused = nfuser.fuse(function, backend=backend)
        for number in range(3):
            one = np.arange(4.0) + 1j * number
            other = one.copy()
            wanted, found = function(one), fused(other)
            np.testing.assert_array_equal(other, one)
            np.testing.assert_array_equal(found, wanted)


def test_the_real_part_of_what_is_real_is_all_of_it() -> None:
    def reals(x: Any) -> None:
        x.real = x + 1
        x.real *= 2

    agree(reals, np.arange(4.0))


def test_what_is_real_has_no_imaginary_part_to_set() -> None:
    def imaginary(x: Any) -> None:
        x.imag = 1

    with pytest.raises(DTypeError, match="does not have imaginary part to set"):
        nfuser.fuse(imaginary)(np.ones(3))


def test_a_shape_that_is_set_says_what_to_write() -> None:
    def shaped(x: Any) -> Any:
        x.shape = (2, 3)
        return x

    with pytest.raises(UnsupportedAttributeError, match=r"write x = x.reshape\(shape"):
        nfuser.fuse(shaped)(np.ones(6))


def test_an_update_is_the_first_to_touch_an_array_of_numpys() -> None:
    def counted(i: Any) -> Any:
        n = np.zeros(4)
        n[i] += 1
        return n

    def masked(x: Any) -> Any:
        n = np.zeros(4)
        n[x > 1] += 1
        return n

    def one(i: Any) -> Any:
        n = np.ones((4, 2))
        n[i[0], 1] *= 3
        return n

    def in_rows(x: Any) -> Any:
        n = np.zeros((3, 4))
        for k in range(3):
            n[k, x > k] -= k + 1
        return n

    index = np.array([1, 1, 2])
    agree(counted, index)
    agree(one, index)
    agree(masked, np.arange(4.0))
    agree(in_rows, np.arange(4.0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_complex_numbers_are_compared_part_by_part(backend: str) -> None:
    def compared(z: Any, w: Any) -> Any:
        return (
            *(z * 2 > 4, z < w, z <= w, z >= w, z > 1, z != 1, z > 1j),
            *(
                z >= z.real,
                z.astype(np.complex64) < 2,
                np.less(z[0], w[1]),
                z[0, 1] > 0,
            ),
        )

    parts = [0.0, -0.0, 1.0, 2.5, np.nan, np.inf, -1.0]
    others = [0, 1, 1j, complex(1, np.nan)]
    z, w = np.meshgrid([complex(re, im) for re in parts for im in parts], others)
    w = w.astype(complex)
    w[:, ::3] = z[:, ::3]
    found = nfuser.fuse(compared, backend=backend)(z, w)
    for ours, theirs in zip(found, compared(z, w), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_complex_numbers_of_pythons_are_not_compared() -> None:
    def compared(s: Any) -> Any:
        return (s + 1j) > 2

    with pytest.raises(TypeError):
        nfuser.fuse(compared)(1.0)
