# SPDX-License-Identifier: Apache-2.0
"""The passes that kernels need give the PTX that all of Numba's passes give."""

# numba-cuda carries no types.
# pyright: reportMissingImports=false, reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.codegen.load import load_function
from nfuser.codegen.numba.abridge_cuda import abridge
from nfuser.codegen.numba.compile_cuda import _ENTRY, _canonical, _guarded, compile_cuda

if TYPE_CHECKING:
    from collections.abc import Callable

cuda: Any = pytest.importorskip("numba.cuda")


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


CASES: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: -x * 2 + x // 3 - x % 5,
    "truths": lambda x: np.where((x > 0) ^ (x < 1) | ~(x == 2), x, np.nan),
    "halves": lambda x: x.astype(np.float16) * 2,
    "complex": lambda x: (x + 1j * x) * (x - 1j),
    "rows": _softmax,
    "columns": lambda x: x - x.mean(axis=0),
    "places": lambda x: x.argmax(axis=1),
    "moves": lambda x: np.concatenate([x.T, np.roll(x, 1).T], axis=1),
    "sums so far": lambda x: np.cumsum(x, axis=1),
}


@pytest.mark.parametrize("name", CASES)
def test_the_ptx_is_the_same(name: str) -> None:
    x = np.ones((64, 48), np.float32)
    for kernel in nfuser.fuse(CASES[name], backend="interpret").kernels(x):
        own = compile_cuda(kernel.source, kernel.name, kernel.signature, (9, 0)).ptx
        function, keywords = load_function(kernel.source, kernel.name, abridge)
        numbas, _ = cuda.compile(
            function,
            cuda.core.sigutils.normalize_signature(kernel.signature)[0],
            cc=(9, 0),
            device=False,
            abi="numba",
            launch_bounds=keywords.get("launch_bounds"),
        )
        mangled = _ENTRY.search(numbas)
        assert mangled is not None
        text = numbas.replace(mangled.group(1), kernel.name)
        assert own == _guarded(_canonical(text))
