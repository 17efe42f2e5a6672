# SPDX-License-Identifier: Apache-2.0
"""The named fusions on the device, with the arrays of each library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from tests import oracle
from tests.fusions import CASES
from tests.fuzz.arrays import is_array
from tests.fuzz.backends import from_torch, to_torch

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.gpu

# One of each kind: bfloat16 exists in torch and JAX alone.
SUBSET = ("gelu_bias", "softmax", "rms_norm_residual", "mixed_axes", "integers")


def _torch() -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    pytest.importorskip("torch")
    return to_torch, from_torch


def _cupy() -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    cupy = pytest.importorskip("cupy")
    return cupy.asarray, cupy.asnumpy


def _numba() -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    cuda = pytest.importorskip("numba.cuda")
    return cuda.to_device, lambda x: x.copy_to_host()


def _jax() -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray, np.asarray


LIBRARIES = {"torch": _torch, "cupy": _cupy, "numba": _numba, "jax": _jax}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("case", SUBSET)
def test_a_library_gets_its_own_arrays_back(case: str, library: str) -> None:
    to_device, from_device = LIBRARIES[library]()
    arguments = CASES[case].arguments()
    given = [to_device(a) if is_array(a) else a for a in arguments]
    result = nfuser.fuse(CASES[case].function, dialect="numpy")(*given)
    outputs = oracle.listed(result)
    expected = oracle.evaluate(CASES[case].function, *arguments)
    for found, value in zip(outputs, expected, strict=True):
        assert (
            type(found).__module__.split(".")[0]
            == type(given[0]).__module__.split(".")[0]
        )
        host = np.asarray(from_device(found))
        assert oracle.judge(host, value).problem is None
