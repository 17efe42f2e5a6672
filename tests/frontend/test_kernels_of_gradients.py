# SPDX-License-Identifier: Apache-2.0
"""Ways there and back are few kernels: one each, and two where columns are summed."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from asv_bench.compare.gradient import derived
from asv_bench.compare.workloads.gradients import GRADIENTS

ITEMS = {item.name: item for item in GRADIENTS}
MOST = {  # kernels there, and back
    "softmax": (1, 1),
    "SwiGLU": (1, 1),
    "RoPE": (1, 1),
    "cross entropy": (2, 1),  # the mean of all rows comes after the rows
    "layer norm": (1, 2),
    "RMS norm": (1, 2),
    "add + RMS norm": (1, 2),
    "batch norm": (1, 1),
    "gelu(x + b)": (1, 2),
}
DTYPES: dict[str, Any] = {"bfloat16": ml_dtypes.bfloat16}


def _count(function: Any, backend: str, arrays: list[Any]) -> int:
    fused = nfuser.fuse(function, dialect="numpy", backend=backend)
    found = re.search(r"in (\d+) kernel", str(fused.explain(*arrays)))
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("name", MOST)
def test_kernels_are_few(name: str, backend: str) -> None:
    item = ITEMS[name]
    dtype = "float32" if backend == "cpu" else "bfloat16"
    sizes = (2, 4, 64, 32) if name == "RoPE" else (256, 128)
    specs = item.inputs(dtype, *sizes)
    arrays = [np.zeros(s.shape, DTYPES.get(s.dtype, s.dtype)) for s in specs]
    shape = {"array": specs[0].shape, "number": ()}[item.value]
    cotangent = np.zeros(shape, arrays[0].dtype)
    there = _count(item.function, backend, arrays)
    back = _count(derived(item, with_value=False), backend, [cotangent, *arrays])
    assert (there, back) <= MOST[name]
    assert back <= MOST[name][1]
