# SPDX-License-Identifier: Apache-2.0
"""Kernels that stand for operations of the library give its bits."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.execution.host.ir.rules as rules
from nfuser.compiler.dtypes import DType
from nfuser.execution.runtime.host.exact_operations import EXACT, as_launch

DTYPES = (
    *(DType.F16, DType.BF16, DType.F32, DType.F64, DType.BOOL),
    *(DType.I8, DType.U16, DType.I32, DType.I64),
)
NUMBERS = (True, 0, 3, -1, 300, 0.1, -0.0, float("nan"), float("inf"), 2j)


def _values(dtype: DType, count: int) -> Any:
    """Return numbers that are easily got wrong, and some more."""
    dice = np.random.default_rng(count)
    if dtype.is_bool:
        return dice.integers(0, 2, count).astype(bool)
    if dtype.is_float:
        kind = dtype.numpy
        odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-7, -6e4, 1e30, 3.0]
        drawn = dice.normal(0, 100, count)
        drawn[: len(odd)] = odd
        with np.errstate(over="ignore"):
            return dice.permutation(drawn).astype(kind)
    info = np.iinfo(dtype.numpy.name)
    drawn = dice.integers(info.min, info.max, count, dtype.numpy, endpoint=True)
    drawn[:4] = info.min, info.max, 0, 1
    return dice.permutation(drawn)


def _assert_same_floats(made: Any, wanted: Any) -> None:
    """Raise unless all is equal but the signs of what is no number."""
    np.testing.assert_array_equal(made, wanted)
    signs = np.signbit(made) == np.signbit(wanted)
    assert np.all(signs | np.isnan(wanted))


def _check(hc: nfuser.HostIrContainer, given: list[Any], backend: Any) -> bool:
    """Raise unless kernels give what the library gives, which the first call asks."""
    evaluator = nfuser.HostIrEvaluator(hc.program(), backend=backend)
    with np.errstate(all="ignore"):
        wanted, *found = [evaluator.run(given)[0] for _ in range(4)]
    for made in found:
        assert made.dtype == wanted.dtype
        assert made.strides == wanted.strides
        if made.dtype.kind in "fV":
            _assert_same_floats(made.astype(np.float64), wanted.astype(np.float64))
            continue
        np.testing.assert_array_equal(made, wanted)
    (linked,) = evaluator._calls._linked.values()
    return linked is not None and bool(linked.program.launches)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions_of_tensors(dtype: DType) -> None:
    linked = 0
    for name in sorted(EXACT):
        for other in (None,) if _has_one(name) else (dtype, DType.F32, DType.I16):
            hc = nfuser.HostIrContainer()
            x = hc.define_tensor([-1, -1], dtype)
            given = [_values(dtype, 60).reshape(4, 15)]
            try:
                if other is None:
                    hc.add_output(hc.unary(name, x))
                else:
                    given.append(_values(other, 15))
                    y = hc.define_tensor([-1], other)
                    hc.add_output(hc.binary(name, x, y))
            except nfuser.NfuserError:
                continue  # NumPy has none for such dtypes
            linked += _check(hc, given, "interpret")
    assert linked > 20


def _has_one(name: str) -> bool:
    return getattr(np, name).nin == 1


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_functions_of_numbers(number: Any) -> None:
    linked = 0
    for dtype in (DType.F16, DType.F32, DType.I8, DType.I64):
        for name in ("add", "multiply", "less", "not_equal", "bitwise_and"):
            for turned in (False, True):
                hc = nfuser.HostIrContainer()
                x = hc.define_tensor([-1], dtype)
                pair = (number, x) if turned else (x, number)
                try:
                    hc.add_output(hc.binary(name, *pair))
                    linked += _check(hc, [_values(dtype, 20)], "interpret")
                except (nfuser.NfuserError, OverflowError):
                    continue  # NumPy refuses it, too
    assert linked > 10 or isinstance(number, complex)


def test_what_the_library_does_itself() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1], np.int8)
    z = hc.define_tensor([-1], np.complex64)
    n = hc.define_integer()
    hc.add_output(hc.unary("exp", x))
    hc.add_output(hc.binary("multiply", z, 2.0))
    hc.add_output(hc.binary("add", x, n))  # which may not fit into 8 bits
    hc.add_output(hc.binary("true_divide", x, 3))
    program: Any = hc.program()
    assert [as_launch(stmt) for stmt in program.body] == [None] * 4
    assert all(rules.function(name, 1 + (not _has_one(name))) for name in EXACT)
