# SPDX-License-Identifier: Apache-2.0
"""Where calls are not native and no object file is read, results are the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nfuser.base.system as system
from nfuser.compiler.trace.numpy.names import eager_or_traced
from nfuser.errors import UnsupportedError

ROOT = Path(__file__).parents[2]
PROGRAM = """
import tests.elsewhere
import numpy as np
import nfuser
from nfuser.base import system
from nfuser.execution.device.native import library

@nfuser.fuse
def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

x = np.random.default_rng(0).normal(size=(900, 1100)).astype("f4")
wanted = np.exp(x - x.max(-1, keepdims=True))
wanted /= wanted.sum(-1, keepdims=True)
for _ in range(3):
    np.testing.assert_allclose(softmax(x), wanted, rtol=1e-5)
half = nfuser.fuse(lambda x: x * 2 + 1)(np.float16([1, 0.5, 65504]))
np.testing.assert_array_equal(half, np.float16([3, 2, np.inf]))
assert sorted(system.missing()) == ["native_calls", "object_files"]
assert library.library.cache_info().currsize == 0  # no native code was made
"""


def test_another_system_gives_the_same_without_native_code(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        cwd=ROOT,
        env={"NFUSER_CACHE_DIR": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "order", "pointer", "begins"),
    [
        ("pypy", "little", 8, "use CPython"),
        ("cpython", "big", 8, "use a little-endian processor"),
        ("cpython", "little", 4, "use a Python of 64 bits"),
    ],
)
def test_a_process_that_cannot_run_kernels_is_refused_by_name(
    name: str, order: str, pointer: int, begins: str
) -> None:
    reason = system.refusal(name, order, pointer)
    assert reason is not None
    assert reason.startswith(begins)
    assert system.refusal("cpython", "little", 8) is None


def test_a_name_that_this_numpy_lacks_is_missed_where_it_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(np, "matvec", raising=False)  # new in NumPy 2.2
    matvec = eager_or_traced.function("matvec")
    with pytest.raises(UnsupportedError, match=r"^call nfuser\.numpy\.matvec in"):
        matvec(np.eye(2), np.ones(2))
