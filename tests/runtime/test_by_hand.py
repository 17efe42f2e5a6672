# SPDX-License-Identifier: Apache-2.0
"""A CPU kernel is launched by hand, as dumped and as changed."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import nfuser
from nfuser import config
from nfuser.errors import ArgumentError
from nfuser.execution.runtime.compile.by_hand import load_kernel

if TYPE_CHECKING:
    from pathlib import Path

X = np.arange(6, dtype=np.float32)


def test_a_dumped_file_is_loaded_and_launched(tmp_path: Path) -> None:
    settings = {"dump": frozenset({"source"}), "dump_folder": str(tmp_path)}
    with config.override(**settings):
        nfuser.fuse(lambda x, a: x * a > 4)(X, 2.0)
    (file,) = tmp_path.glob("*_lambda_kernel_source.py")
    out = np.zeros(6, bool)
    load_kernel(file)(0, 1, X, out, 2.0, 6)
    np.testing.assert_array_equal(out, X * 2.0 > 4)


def test_what_is_changed_is_launched() -> None:
    (kernel,) = nfuser.fuse(lambda x: x + 3).kernels(X)
    assert kernel.grid is not None
    out = np.empty_like(X)
    load_kernel(kernel.source.replace("f32(3.0)", "f32(5.0)"))(
        0, kernel.grid[0], X, out, X.size
    )
    np.testing.assert_array_equal(out, X + 5)


def test_what_cannot_be_launched_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"^pass the source of a CPU kernel"):
        load_kernel("x = 1\n")
    (kernel,) = nfuser.fuse(lambda x: x + 3).kernels(X)
    launch = load_kernel(kernel.source)
    with pytest.raises(ArgumentError, match=r"^pass 3 arguments after start and stop"):
        launch(0, 1, X)
    with pytest.raises(ArgumentError, match=r"^pass an array of float32"):
        launch(0, 1, X, X.astype(np.float64), 6)
