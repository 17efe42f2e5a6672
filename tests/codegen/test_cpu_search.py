# SPDX-License-Identifier: Apache-2.0
"""The first element that is like another one, as the CPU's kernels look for it."""

# Numba carries few types.
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nfuser.codegen.primitives import cpu
from tests.cpu_harness import compile_kernel

LENGTHS = (0, 1, 5, 31, 32, 33, 63, 64, 65, 127, 128, 200)
BEHIND = 70  # elements that are not to be looked at
NUMBERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
HALVES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def _searches(name: str, storage: str, wanted: str, value: str) -> Any:
    search = getattr(cpu, name)
    read = cpu.load_bool if value == "bool" else cpu.load
    store = cpu.store

    def kernel(n, x, like, out):
        store(out, 0, search(x, 3, n, read(like, 0)))

    loop = compile_kernel(kernel, storage, wanted, "int64")

    def find(x: Any, like: Any, count: int) -> int:
        out = np.full(1, -1)
        loop(count, x, like, out)
        return int(out[0])

    return find


def _check(find: Any, one: Any, other: Any, like: Any) -> None:
    """Look for ``one`` among each number of ``other``, with more of it behind."""
    for count in LENGTHS:
        for place in {0, count // 2, count - 1, count} - {-1}:
            x = np.full(3 + count + BEHIND, other)
            x[:3], x[3 + count :] = one, one
            x[3 + place :] = one
            assert find(x, like, count) == place


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_of_every_type_are_found(dtype: str) -> None:
    name = str(np.dtype(dtype))
    find = _searches("first_like", name, name, name)
    one, other = np.array([7, 3], dtype)
    _check(find, one, other, np.array([one]))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("like", [0.0, -0.0, np.inf, -np.inf, np.nan])
def test_zeros_are_equal_and_so_is_what_is_no_number(dtype: str, like: float) -> None:
    name = str(np.dtype(dtype))
    find = _searches("first_like", name, name, name)
    for one in (like, -like) if like == 0 or like != like else (like,):
        for other in {1.0, np.inf, -np.inf} - {like}:
            pair = np.array([one, other], dtype)
            _check(find, pair[0], pair[1], np.array([like], dtype))
    if like == like:  # NaN is like no number
        pair = np.array([like, np.nan], dtype)
        _check(find, pair[0], pair[1], np.array([like], dtype))


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("like", [0.0, -0.0, 1.5, -(2.0**-20), np.inf, np.nan])
def test_halves_are_found_by_their_bits(kind: str, like: float) -> None:
    find = _searches(f"first_like_{kind}", "uint16", "float32", "float32")
    wanted = np.array([like]).astype(HALVES[kind])
    for other in (1.0, -1.0, np.nan):
        if other != other and like != like:
            continue
        single = np.float32(other).astype(HALVES[kind]).view(np.uint16)
        ones = [wanted[0], -wanted[0]] if like == 0 or like != like else [wanted[0]]
        for one in ones:
            _check(find, one.view(np.uint16), single, wanted.astype(np.float32))


@pytest.mark.parametrize("like", [False, True])
def test_any_byte_but_zero_is_true(like: bool) -> None:
    find = _searches("first_like_bool", "uint8", "bool", "bool")
    trues = np.array([1, 2, 255], np.uint8)
    for true in trues:
        one, other = (true, np.uint8(0)) if like else (np.uint8(0), true)
        _check(find, one, other, np.array([like]))
