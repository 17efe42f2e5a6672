# SPDX-License-Identifier: Apache-2.0
"""A kernel that is dropped leaves nothing behind: processes run for weeks."""

# Functions of arrays whose types only a trace knows.
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ctypes
import gc
import linecache
from itertools import count

import numpy as np
import pytest

import nfuser
from nfuser import config
from nfuser.codegen.load import load_function

KERNELS = 12
_numbers = count(1)


class _Allocated(ctypes.Structure):
    """What ``mallinfo2`` of the C library says."""

    _fields_ = [(f"size_{number}", ctypes.c_size_t) for number in range(10)]


def _bytes_in_use() -> int:
    """Return the bytes that are allocated and not freed, small and large."""
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        pytest.skip("the C library does not tell what is in use")
    ask.restype = _Allocated
    found = ask()
    return int(found.size_7 + found.size_4)


def _make_and_drop() -> None:
    for number in range(KERNELS):
        shift = 10_000 * next(_numbers) + number
        nfuser.fuse(lambda x, shift=shift: x * (1 + shift / 7) + shift)(np.ones(64))


def test_compiled_kernels_that_are_dropped_leave_nothing() -> None:
    with config.override(cache_size=4, cache_dir=None):
        _make_and_drop()
        gc.collect()
        objects, used = len(gc.get_objects()), _bytes_in_use()
        _make_and_drop()
        gc.collect()
        assert _bytes_in_use() - used < 16_000 * KERNELS
        assert len(gc.get_objects()) - objects < 20 * KERNELS


def test_the_lines_of_a_kernel_are_known_as_long_as_its_function() -> None:
    text = "def twice(x):\n    return x + x\n"
    function, _ = load_function(text, "twice")
    name = function.__code__.co_filename
    assert linecache.getlines(name) == text.splitlines(keepends=True)
    del function
    gc.collect()
    assert name not in linecache.cache
