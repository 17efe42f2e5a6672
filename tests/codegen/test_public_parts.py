# SPDX-License-Identifier: Apache-2.0
"""Kernels compile by Numba's public functions, asked for or in place of the others."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.codegen.numba.which_parts as which_parts
from nfuser import config
from nfuser.codegen.numba import kernel_lowering
from nfuser.codegen.numba.compile_cpu import compile_cpu
from nfuser.codegen.numba.compile_cuda import compile_cuda
from nfuser.errors import CompileError

if TYPE_CHECKING:
    from pathlib import Path

X = np.random.default_rng(0).random((40, 7))
PROGRAMS: dict[str, Any] = {
    "elements": lambda x: np.where(x > 0.5, np.sin(x), np.exp(x) ** 2),
    "rows": lambda x: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True),
    "columns": lambda x: (x.sum(0), x.argmax(0), np.cumsum(x, 0)),
    "moves": lambda x: np.concatenate([x[1:], x[::-1]]).T + 1,
    "16 bits": lambda x: (x.astype("f2") * 2 + 1).astype("f8"),
    "integers": lambda x: (x * 100).astype("i4") // 7 % 5,
}
ADD = """\
from nfuser.codegen.primitives.cuda import load, store
from numba import cuda


@cuda.jit(launch_bounds=128)
def add(out, x):
    i = cuda.grid(1)
    store(out, i, load(x, i) + load(x, i))
"""


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away a name that nfuser uses, and Numba's own functions do not."""
    monkeypatch.setattr(which_parts, "_changed", [])
    monkeypatch.delattr(kernel_lowering, "FunctionDescriptor")


@pytest.mark.parametrize("function", PROGRAMS.values(), ids=PROGRAMS)
def test_public_parts_give_the_same(
    function: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = nfuser.fuse(function)(X)
    # The private parts could not, and their fall back would warn, which is an error.
    monkeypatch.delattr(kernel_lowering, "FunctionDescriptor")
    with config.override(numba="public", cache_dir=str(tmp_path)):
        assert which_parts.told().startswith("Numba's public functions, as NFUSER_NU")
        found = nfuser.fuse(function)(X)
    pairs = zip(wanted, found, strict=True) if isinstance(found, tuple) else None
    for one, other in pairs or [(wanted, found)]:
        np.testing.assert_allclose(other, one, 1e-13)


@pytest.mark.usefixtures("renamed")
def test_what_has_changed_is_told_once_and_kernels_are_right(tmp_path: Path) -> None:
    with config.override(cache_dir=str(tmp_path)):
        with pytest.warns(RuntimeWarning, match="=public.*FunctionDescriptor"):
            found = nfuser.fuse(lambda x: np.cos(x) * 1.2345)(X)
        with warnings.catch_warnings(action="error"):
            other = nfuser.fuse(lambda x: np.cos(x) * 5.4321)(X)
    np.testing.assert_allclose(found, np.cos(X) * 1.2345, 1e-14)
    np.testing.assert_allclose(other, np.cos(X) * 5.4321, 1e-14)
    assert "since other parts changed" in which_parts.told()


def test_a_kernel_that_is_at_fault_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(which_parts, "_changed", [])
    with pytest.raises(CompileError, match="undefined_name"):
        compile_cpu("def f(a, b):\n    undefined_name()\n", "f", "void(int64, int64)")
    assert not which_parts.is_public()


def test_public_parts_give_cuda_kernels() -> None:
    pytest.importorskip("numba.cuda")
    signature = "void(CPointer(float32), CPointer(float32))"
    own = compile_cuda(ADD, "add", signature)
    with config.override(numba="public"):
        made = compile_cuda(ADD, "add", signature)
    assert made.entry == own.entry
    assert made.cubin[:4] == b"\x7fELF"
    assert ".maxntid 128" in made.ptx
    assert made.spills == own.spills == 0
