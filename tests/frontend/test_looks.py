# SPDX-License-Identifier: Apache-2.0
"""What a user sees: tracebacks, texts of objects, messages about arguments."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import array
import sys
import traceback
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser import config
from nfuser.errors import ArgumentError, BackendError, NfuserError
from nfuser.execution.device.cuda.driver import why_missing

X = np.ones((4, 3))


def helper(x: Any) -> Any:
    return x if complex(x.sum()).real > 0 else -x


@nfuser.fuse
def branching(x: Any) -> Any:
    return helper(x) + 1


@nfuser.fuse
def dividing(x: Any) -> Any:
    return x / (1 // 0)


def _files(call: Any) -> list[str]:
    """Return the functions in the traceback of what ``call`` raises."""
    try:
        call()
    except (NfuserError, ArithmeticError) as error:
        shown = "".join(traceback.format_exception(error))
        assert "During handling" not in shown
        return [f.name for f in traceback.extract_tb(error.__traceback__)]
    raise AssertionError


def test_tracebacks_show_the_frames_of_the_user() -> None:
    assert _files(lambda: branching(X))[1:] == [
        *("<lambda>", "__call__", "branching", "helper"),
    ]
    for call in (branching.explain, branching.lower, branching.kernels, branching.bind):
        assert _files(lambda call=call: call(X))[1:] == [
            *("<lambda>", "tell", "branching", "helper"),
        ]


def test_errors_of_the_users_own_code_are_shown_alike() -> None:
    assert _files(lambda: dividing(X))[2:] == ["__call__", "dividing"]


def test_full_tracebacks_are_a_setting() -> None:
    with config.override(full_tracebacks=True):
        assert "trace_function" in _files(lambda: branching(X))
    assert config.from_environment({"NFUSER_TRACEBACK": "full"}).full_tracebacks


def test_the_frame_at_the_border_says_so_and_hides() -> None:
    with pytest.raises(NfuserError) as caught:
        branching(X)
    (border,) = (
        e for e in caught.traceback if str(e.path).endswith("frontend/fuse/fused.py")
    )
    assert border.ishidden(None)
    assert "NFUSER_TRACEBACK=full" in str(border.statement)


def test_a_fused_function_shows_its_signature_and_what_was_done() -> None:
    def norm(x: Any, axis: int = -1) -> Any:
        return x / x.max(axis)

    fused: Any = nfuser.fuse(norm)
    assert repr(fused).endswith(
        "norm(x: 'Any', axis: 'int' = -1) -> 'Any': not called yet>"
    )
    fused(X.T, 0)
    assert "1 trace" in repr(fused)
    assert repr(nfuser.fuse(np.exp)).startswith("<nfuser.fuse exp(")


def test_an_explanation_shows_itself_as_printed() -> None:
    told = nfuser.fuse(lambda x: x * 2).explain(X)
    assert repr(told) == str(told)


class Series:
    """Of pandas, as far as its name says."""

    __hash__: Any = None
    __array__ = None


class DataArray(Series):
    pass


Series.__module__ = "pandas.core.series"
DataArray.__module__ = "xarray.core.dataarray"


@pytest.mark.parametrize(
    ("item", "advice"),
    [
        (Series(), r"^pass x\.to_numpy\(\)"),
        (DataArray(), r"^pass x\.data, or call xarray\.apply_ufunc\(f, x\)"),
        (memoryview(bytearray(8)), r"^pass np\.asarray\(x\)"),
        (memoryview(b"12345678"), r"^pass np\.asarray\(x\)"),
        (array.array("d", [1.0]), r"^pass np\.asarray\(x\)"),
        ({1, 2}, r"^pass tuple\(sorted\(x\)\)"),
    ],
)
def test_what_holds_an_array_is_told_how_to_pass_it(item: Any, advice: str) -> None:
    with pytest.raises(ArgumentError, match=f"argument item .*: {advice[1:]}"):
        nfuser.fuse(lambda item: item * 2)(item)


def test_inside_the_function_it_is_told_too() -> None:
    held = Series()
    with pytest.raises(ArgumentError, match=r"^write x\.to_numpy\(\)"):
        nfuser.fuse(lambda x: x * held)(X)


@pytest.mark.skipif(why_missing() is None, reason="there is a CUDA device")
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_kernels_of_a_gpu_are_shown_without_one(library: str) -> None:
    fused = nfuser.fuse(lambda x: np.exp(x - np.max(x, axis=-1, keepdims=True)))
    spec = nfuser.Spec((64, 64), "bfloat16", library, "cuda:0")
    (kernel,) = fused.kernels(spec)
    assert "@cuda.jit" in kernel.source
    assert "on cuda:0" in str(fused.explain(spec))
    lowered = fused.lower(spec)
    assert lowered.as_text() == kernel.source
    (with_table,) = nfuser.fuse(lambda x: x * (np.arange(64) + 0.5)).kernels(spec)
    assert "@cuda.jit" in with_table.source
    with pytest.raises(
        BackendError, match=r"^compile <lambda> on a machine with a CUDA"
    ):
        lowered.compile()


def test_ipython_hides_the_border() -> None:
    ultratb = pytest.importorskip("IPython.core.ultratb")
    shown = ""
    try:
        branching(X)
    except NfuserError:
        shown = ultratb.VerboseTB().text(*sys.exc_info())
    assert "skipping hidden 1 frame" in shown
    assert "trace_function" not in shown
    assert "helper" in shown
