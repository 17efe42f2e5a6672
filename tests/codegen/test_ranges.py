# SPDX-License-Identifier: Apache-2.0
"""Loops of kernels run as Python's, and take few instructions to say."""

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
import pytest

from nfuser.codegen.load import load_function
from nfuser.codegen.numba.compile_cpu import _lowered, compile_cpu
from nfuser.codegen.objects.load_object import load_object

SOURCE = """
def visited(start, stop, x):
    for i in range(start, stop):
        x[0] = x[0] * 10.0 + i
        for k in range(i):
            x[1] = x[1] + 1.0
            for n in range(k, i):
                x[2] = x[2] + n
"""
SIGNATURE = "void(int64, int64, CPointer(float64))"


def _in_python(start: int, stop: int) -> list[float]:
    found = np.zeros(3)
    load_function(SOURCE, "visited")[0](start, stop, found)
    return found.tolist()


def _as_kernel(address: int, start: int, stop: int) -> list[float]:
    numbers = (ctypes.c_double * 3)()
    integers = ctypes.c_int64, ctypes.c_int64
    pointers = (ctypes.c_void_p,) * 3
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *pointers[:2], *integers, pointers[2])
    results = (ctypes.c_int64 * 8)(), (ctypes.c_int64 * 8)()
    assert call(address)(*results, start, stop, numbers) == 0
    return list(numbers)


def test_loops_take_the_turns_that_python_takes() -> None:
    address, owner = load_object(compile_cpu(SOURCE, "visited", SIGNATURE))
    least, most = -(2**63), 2**63 - 1
    bounds = [(a, b) for a in range(-3, 5) for b in range(-3, 5)]
    ends = [(least, least), (least, least + 2), (most - 1, most), (most, most), (5, -7)]
    for start, stop in bounds + [e for e in ends if e[1] < 9]:
        assert _as_kernel(address, start, stop) == _in_python(start, stop)
    assert owner is not None


def test_a_loop_is_said_in_few_instructions() -> None:
    """Numba's own lowering takes 150 for such a loop, some to raise an error."""
    head = "def kernel(start, stop, x):\n"
    loop = "    for i{0} in range(stop):\n        x[0] = i{0}\n"
    lines: list[int] = []
    for count in (1, 2, 3):
        source = head + "".join(loop.format(k) for k in range(count))
        function, _ = load_function(source, "kernel")
        ((_, written),) = _lowered(function, SIGNATURE).library._written
        assert "picklebuf" not in written
        lines.append(written.count("\n"))
    assert max(lines[2] - lines[1], lines[1] - lines[0]) < 70


def test_what_users_compile_with_numba_has_ranges_of_any_step() -> None:
    compile_cpu(SOURCE, "visited", SIGNATURE)

    @numba.njit
    def down(n: int, step: int) -> Any:
        total = 0
        for i in range(n, 0, step):
            total = total * 10 + i
        for i in range(n):
            total += i
        return total, len(range(n))

    assert down(5, -2) == (541, 5)
    with pytest.raises(ValueError, match="must not be zero"):
        down(5, 0)
