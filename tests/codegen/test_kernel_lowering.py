# SPDX-License-Identifier: Apache-2.0
"""Kernels are lowered from their source as it is printed, and mean what Numba reads."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numba.core import types

import nfuser
from nfuser import config
from nfuser.codegen.numba import kernel_lowering, kernel_target
from nfuser.codegen.numba.kernel_lowering import NotPrintedError, lower_source
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.errors import CompileError
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.execution.runtime.compile.by_hand import load_kernel
from nfuser.execution.runtime.compile.scatters import scatter_kernels
from tests.codegen.test_kernel_target import CASES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PROGRAMS: dict[str, Callable[[Any], Any]] = CASES | {
    "seeds": lambda x: x[:, :7].sum(0) + nfuser.random.default_rng(5).normal(size=7),
    "halves": lambda x: (x.astype(np.float16) * 2).sum(axis=1),
    "first": lambda x: (x > 1).any(axis=1) & np.isfinite(x).all(axis=1),
    "infinities": lambda x: (
        np.where(x > 0, np.inf, -np.inf) + np.where(x > 1, 1, np.nan)
    ),
    "sorted": lambda x: np.searchsorted(np.sort(x[0]), x[1]),
}
_HEAD = "# launched as void(int64, int64, CPointer(float64))\n"
_ARGUMENTS = types.int64, types.int64, types.CPointer(types.float64)
_IMPORT = "from nfuser.codegen.primitives.cpu import boolean, f64, i64, load, store\n"


def _bits(found: Any) -> list[bytes]:
    arrays = found if isinstance(found, tuple) else (found,)
    return [np.asarray(x).tobytes() for x in arrays]


@pytest.mark.parametrize("name", _PROGRAMS)
def test_printed_kernels_need_no_other_reader_and_mean_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(1).standard_normal((64, 48)).astype(np.float32)
    x[3, 5] = np.nan
    read = kernel_target.lower_kernel
    numbers: list[str] = []

    def noted(function: Any, arguments: Any) -> Any:
        numbers.append(function.__name__)
        return read(function, arguments)

    def refuse(*_: Any) -> Any:
        raise NotPrintedError

    monkeypatch.setattr(kernel_target, "lower_kernel", noted)
    results: list[list[bytes]] = []
    for number in range(2):
        forget_all()
        with config.override(cache_dir=str(tmp_path / str(number))):
            results.append(_bits(nfuser.fuse(_PROGRAMS[name])(x)))
        assert bool(numbers) == bool(number)
        monkeypatch.setattr(kernel_lowering, "lower_source", refuse)
    forget_all()
    assert results[0] == results[1]


@pytest.mark.parametrize("op", ScatterOp)
@pytest.mark.parametrize("dtype", [DType.F64, DType.I64, DType.F32, DType.U8])
def test_loops_of_scatters_need_no_other_reader(
    op: ScatterOp, dtype: DType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = kernel_target.lower_kernel
    numbers: list[str] = []

    def noted(function: Any, arguments: Any) -> Any:
        numbers.append(function.__name__)
        return read(function, arguments)

    monkeypatch.setattr(kernel_target, "lower_kernel", noted)
    forget_all()
    with config.override(cache_dir=str(tmp_path)):
        for made in scatter_kernels(op, dtype):
            assert made().entry
    forget_all()
    assert not numbers


def _source(lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines.strip().splitlines())
    return f"{_IMPORT}\n\ndef kernel(start, stop, x):\n{body}"


def _run(lines: str, size: int = 8, turns: tuple[int, int] = (0, 1)) -> list[float]:
    """Return what a kernel of these lines leaves in an array of zeros."""
    made = load_kernel(_HEAD + _source(lines))
    found = np.zeros(size)
    made(*turns, found)
    return found.tolist()


_VISITS = """
for i in range(start, stop):
    store(x, 0, load(x, 0) * f64(10.0) + f64(i))
    for k in range(i):
        store(x, 1, load(x, 1) + f64(1.0))
        for n in range(k, i):
            store(x, 2, load(x, 2) + f64(n))
"""


_UNTIL_NONE = """\
g = i64(3)
for k in range(9):
    if g == 0: break
    g = g - 1
    store(x, 0, f64(k))
"""
_BREAKS_INSIDE = """\
for k in range(3):
    for n in range(9):
        if k < n: break
        store(x, 0, load(x, 0) + f64(1.0))
"""


def _visited(start: int, stop: int) -> list[float]:
    x = [0.0, 0.0, 0.0]
    for i in range(start, stop):
        x[0] = x[0] * 10.0 + i
        for k in range(i):
            x[1] = x[1] + 1.0
            for n in range(k, i):
                x[2] = x[2] + n
    return x


def test_loops_take_the_turns_that_python_takes() -> None:
    least, most = -(2**63), 2**63 - 1
    bounds = [(a, b) for a in range(-3, 5) for b in range(-3, 5)]
    ends = [(least, least), (least, least + 2), (most, most), (most, least), (5, -7)]
    for turns in bounds + ends:
        assert _run(_VISITS, 3, turns) == _visited(*turns)


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("t = f64(1.0)\nt = t + f64(2.0)\nstore(x, 0, t)", 3.0),
        ("t = f64(1.0)\nif stop > 5:\n    t = f64(2.0)\nstore(x, 0, t)", 1.0),
        ("t = f64(1.0)\nif stop < 5:\n    t = f64(2.0)\nstore(x, 0, t)", 2.0),
        ("t = boolean(0)\nif not t:\n    store(x, 0, f64(-3))", -3.0),
        (_UNTIL_NONE, 2.0),
        (_BREAKS_INSIDE, 6.0),
        ("store(x, 0, f64(1e999) - f64(1e999 - 1.0) + f64(1.0))", np.nan),
        ("store(x, 0, f64(~2 | 8 ^ 3 & 6))", float(~2 | 8 ^ 3 & 6)),
        ("store(x, 0, f64(i64(-7) >> 1) + f64(i64(3) << 2))", 8.0),
        ("for k in range(2):\n    pass\nstore(x, 0, f64(stop != 1))", 0.0),
    ],
)  # fmt: skip
def test_a_statement_means_what_python_means(lines: str, wanted: float) -> None:
    assert lower_source(_source(lines), "kernel", _ARGUMENTS).library
    np.testing.assert_equal(_run(lines)[0], wanted)


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("x[0] = 3.0", 3.0),
        ("k = 0\nwhile k < 4:\n    k += 1\nstore(x, 0, f64(k))", 4.0),
        ("if stop < 0:\n    t = 1.0\nelse:\n    t = 2.0\nstore(x, 0, t)", 2.0),
        ("t = 1\nt = t + 0.5\nstore(x, 0, t)", 1.5),
        ("for k in range(9, 0, -3):\n    store(x, 0, f64(k))", 3.0),
        ("for k in range(3):\n    t = f64(k)\nstore(x, 0, t)", 2.0),
        ("if stop:\n    store(x, 0, f64(4))", 4.0),
        ("store(x, 0, f64(7 // 2))", 3.0),
        ("for k in range(3):\n    pass\n    break\n    store(x, 0, f64(1))", 0.0),
    ],
)
def test_numba_reads_what_is_written_by_hand(lines: str, wanted: float) -> None:
    assert _run(lines)[0] == wanted


def test_truth_values_are_arguments() -> None:
    chosen = nfuser.fuse(lambda x, b: np.where(b, x, -x) + 0.625)
    x = np.arange(5.0)
    for b in (np.True_, np.False_):
        np.testing.assert_array_equal(chosen(x, b), np.where(b, x, -x) + 0.625)


def test_a_loop_is_said_in_few_instructions() -> None:
    """Numba's own lowering takes 150 for such a loop, some to raise an error."""
    loop = "for i{0} in range(stop):\n    store(x, i{0}, f64(1.0))\n"
    lines: list[int] = []
    for count in (1, 2, 3):
        source = _source("".join(loop.format(k) for k in range(count)))
        ((_, written),) = lower_source(source, "kernel", _ARGUMENTS).library._written
        lines.append(written.count("\n"))
    assert lines[2] - lines[1] == lines[1] - lines[0] < 20


def test_what_neither_knows_is_told_with_the_source() -> None:
    with pytest.raises(CompileError, match="undefined") as caught:
        _run("store(x, 0, undefined(x))")
    assert "store(x, 0, undefined(x))" in str(caught.value)
    with pytest.raises(CompileError):
        _run("store(x, f64(1), f64(1))")


def test_a_loop_may_end_in_its_first_turn() -> None:
    text = "for i in range(stop):\n    store(x, i, f64(3.0))\n    break"
    assert _run(text)[0] == 3.0
