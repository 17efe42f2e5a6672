# SPDX-License-Identifier: Apache-2.0
"""A call taken step by step: lowered, compiled, warmed up."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser import Spec, config
from nfuser.errors import ArgumentError
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.execution.runtime.compile import ahead as compile_ahead

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def _two_kernels(x: Any, a: Any = 2.0) -> Any:
    return np.exp(x * 0.1).sum(1).sum(), x + a


@pytest.fixture(autouse=True)
def empty() -> None:
    forget_all()


def test_lowering_writes_kernels_and_compiles_none() -> None:
    fused = nfuser.fuse(_two_kernels)
    lowered = fused.lower(X)
    info = fused.cache_info()
    assert (info.traces, info.compiled, info.runtimes) == (1, 0, 0)
    sources = [k.source for k in fused.kernels(X)]
    assert len(sources) > 1
    assert lowered.as_text() == "\n\n".join(sources)


def test_the_kernels_of_a_spec_are_those_of_an_array() -> None:
    doubled = nfuser.fuse(lambda x, *, by: x * by)
    (kernel,) = doubled.kernels(Spec((8, 4)), by=2)
    (same,) = doubled.kernels(np.ones((8, 4), np.float32), by=2)
    assert kernel.source == same.source


def test_a_call_of_a_spec_is_refused() -> None:
    with pytest.raises(
        ArgumentError, match=r"argument x .*: pass an array, .* found Spec"
    ):
        nfuser.fuse(lambda x: x + 1)(Spec((8, 4)))


def test_what_is_compiled_runs_without_compiling_again() -> None:
    forget_all()  # another test may have compiled these kernels
    fused = nfuser.fuse(_two_kernels)
    compiled = fused.lower(X).compile()
    before = fused.cache_info()
    assert before.traces == 1
    assert before.compiled == len(fused.kernels(X))
    for found, wanted in zip(compiled(X), _two_kernels(X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    after = fused.cache_info()
    assert (after.compiled, after.traces, after.hits) == (before.compiled, 1, 1)
    assert "kernels" in repr(compiled)


def test_specs_and_the_like_stand_for_arrays() -> None:
    fused = nfuser.fuse(_two_kernels)
    like_jax = SimpleNamespace(shape=(3, 4), dtype=np.dtype("f4"))
    texts = [fused.lower(x).as_text() for x in (X, Spec((3, 4)), like_jax)]
    assert len(set(texts)) == 1
    half = Spec((2,), "bfloat16").empty()
    assert half.dtype == ml_dtypes.bfloat16
    with pytest.raises(ArgumentError, match="expected a library among numpy, torch"):
        Spec((2,), library="tensorflow").empty()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ((X[:, :3].copy(),), "compiled for an array of shape (3, 4) and dtype float32"),
        ((X.astype(np.float64),), "dtype float64"),
        ((X, 1), "a number of type int"),
        (([X],), "another structure"),
        ((X, "none"), "the value 'none'"),
    ],
)
def test_a_compiled_function_takes_its_own_form_only(
    other: tuple[Any, ...], said: str
) -> None:
    fused = nfuser.fuse(_two_kernels)
    given = (X, 2.0)[: max(len(other), 1)]
    compiled: Any = fused.lower(*given).compile()
    compiled(*given)
    with pytest.raises(ArgumentError) as caught:
        compiled(*other)
    assert said in str(caught.value)
    assert "lower it again" in str(caught.value)


def test_numbers_may_have_other_values_and_keywords_keep_their_names() -> None:
    compiled = nfuser.fuse(_two_kernels).lower(X, a=2.0).compile()
    np.testing.assert_array_equal(compiled(X, a=5.0)[1], X + 5)
    with pytest.raises(ArgumentError, match="another structure"):
        compiled(X, 5.0)


def test_warming_up_leaves_nothing_to_compile() -> None:
    forget_all()  # another test may have compiled these kernels
    fused = nfuser.fuse(_two_kernels)
    fused.warmup([(X, 2.0), Spec((3, 4)), (Spec((1, 4)), 3.0)], progress=True)
    before = fused.cache_info()
    assert before.calls == 0
    assert before.compiled > 0
    fused(X)
    fused(X, 7.0)
    fused(X[:1].copy(), 7.0)
    after = fused.cache_info()
    assert (after.compiled, after.traces) == (before.compiled, before.traces)
    assert after.hits == 3


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, file = _Terminal(), io.StringIO()
    specs = [Spec((4, 4)), Spec((1, 4))]
    for stream in (terminal, file):
        monkeypatch.setattr(sys, "stderr", stream)
        with config.override(progress=False):  # that of a slow first call
            nfuser.fuse(_two_kernels).warmup(specs, progress=True)
            nfuser.fuse(_two_kernels).warmup(specs)
    assert file.getvalue() == ""
    drawn = terminal.getvalue().split("\r")[1:]
    calls = [row for row in drawn if "calls" in row]
    assert [row.split("] ")[1][:3] for row in calls] == ["0/2", "1/2", "2/2"]
    assert all(row.startswith("warming up _two_kernels [") for row in drawn)


def test_a_warm_process_loads_what_another_warmed_up() -> None:
    nfuser.fuse(_two_kernels).warmup([Spec((3, 4))])
    forget_all()
    fused = nfuser.fuse(_two_kernels)
    fused(X)
    assert fused.cache_info().compiled == 0
    assert fused.cache_info().loaded == len(fused.kernels(X))


def test_many_kernels_are_compiled_in_several_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compile_ahead, "KERNELS_A_PROCESS", 1)
    monkeypatch.setattr(compile_ahead, "available_threads", lambda: 2)
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    fused = nfuser.fuse(_two_kernels)
    fused.warmup([Spec((3, 4)), Spec((3, 4), "float64")], progress=True)
    monkeypatch.undo()
    info = fused.cache_info()
    assert info.compiled == 0  # here
    assert info.loaded > 2
    assert f"{info.loaded}/{info.loaded} kernels" in terminal.getvalue()
    np.testing.assert_allclose(fused(X)[0], _two_kernels(X)[0], rtol=1e-6)
    assert fused.cache_info().compiled == 0


def test_where_a_helping_process_fails_the_caller_compiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_all()  # another test may have compiled these kernels
    monkeypatch.setattr(compile_ahead, "KERNELS_A_PROCESS", 1)
    monkeypatch.setattr(compile_ahead, "available_threads", lambda: 2)
    monkeypatch.setattr(sys, "executable", "/bin/true")
    fused = nfuser.fuse(_two_kernels)
    fused.warmup([Spec((3, 4)), Spec((3, 4), "float64")])
    assert fused.cache_info().compiled > 2
