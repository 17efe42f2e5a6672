# SPDX-License-Identifier: Apache-2.0
"""Numba's target for kernels: the same machine code as its own gives, for less.

It is asked for what no printed kernel says.
"""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numba.core import codegen, compiler, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.sigutils import normalize_signature

import nfuser
from nfuser.codegen.load import load_function
from nfuser.codegen.numba import kernel_target
from nfuser.codegen.numba.compile_cpu import compile_cpu
from nfuser.codegen.numba.llvm.loop_lanes import close_marked_loops
from nfuser.codegen.objects.elf import read_object

if TYPE_CHECKING:
    from collections.abc import Callable

_ALLOCATED = 2  # sections that are loaded


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


CASES: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: -x * 2 + x // 3 - x % 5,
    "comparisons": lambda x: np.where((x > 0) & ~(x > 1) | (x == 2), x, np.nan),
    "integers": lambda x: x.astype(np.int16) ^ 5,
    "truths": lambda x: (x > 0) ^ (x < 1),
    "functions": lambda x: np.tanh(x) + np.exp(x) * np.sqrt(abs(x)),
    "rows": _softmax,
    "columns": lambda x: x - x.mean(axis=0),
    "places": lambda x: x.argmax(axis=1),
    "moves": lambda x: np.concatenate([x.T, np.roll(x, 1).T], axis=1),
    "sums so far": lambda x: np.cumsum(x, axis=1),
}


def _loaded(code: bytes) -> Any:
    """Return what a process would see of an object file: all but its names."""
    read = read_object(code)
    sections = [s for s in read.sections if s.flags & _ALLOCATED and s.size]
    relocations = [(r.offset, r.kind, r.addend) for r in read.relocations]
    return [code[s.offset : s.offset + s.size] for s in sections], relocations


@pytest.fixture
def numbas_loops_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Numba's own target say what marks in loops ask for: no pass of its does."""
    context: Any = cpu_target.target_context
    link = context.post_lowering

    def post_lowering(module: Any, library: Any) -> None:
        close_marked_loops(module)
        link(module, library)

    monkeypatch.setattr(context, "post_lowering", post_lowering)


@pytest.fixture
def passes_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Numba's own target run the passes that kernels have, which are its last."""

    def only_said(library: Any, module: Any) -> None:
        module.data_layout = library._codegen._data_layout

    def last(library: Any) -> None:
        passes, builder = library._codegen._module_pass_manager()
        passes.run(library._final_module, builder)

    monkeypatch.setattr(codegen.CPUCodeLibrary, "_optimize_functions", only_said)
    monkeypatch.setattr(codegen.CPUCodeLibrary, "_optimize_final_module", last)


def _compiled_by_ours(text: str, entry: str, signature: str) -> bytes:
    """Compile what Numba reads with the target for kernels."""
    function, _ = load_function(text, entry)
    arguments = normalize_signature(signature)[0]
    return kernel_target.compile_kernel(function, arguments).library.emit()


def _compiled_by_numba(text: str, entry: str, signature: str) -> bytes:
    """Compile with Numba's own target and passes."""
    flags: Any = compiler.Flags()
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
    flags.error_model, flags.noalias, flags.nrt = "numpy", True, False
    function, _ = load_function(text, entry)
    with global_compiler_lock:
        made = compiler.compile_extra(
            cpu_target.typing_context,
            cpu_target.target_context,
            function,
            normalize_signature(signature)[0],
            types.void,
            flags,
            {},
        )
        made.library.finalize()
    return bytes(made.library._get_compiled_object())


@pytest.mark.usefixtures("numbas_loops_close", "passes_run_once")
@pytest.mark.parametrize("name", CASES)
def test_machine_code_is_that_of_numbas_own_target(name: str) -> None:
    x = np.random.default_rng(1).standard_normal((64, 48)).astype(np.float32)
    for kernel in nfuser.fuse(CASES[name]).kernels(x):
        given = kernel.source, kernel.name, kernel.signature
        assert _loaded(_compiled_by_ours(*given)) == _loaded(_compiled_by_numba(*given))


def test_no_engine_takes_a_kernel() -> None:
    target: Any = kernel_target._Dispatcher.targetdescr
    engine = target.target_context.codegen()._engine
    before = set(engine._defined_symbols)
    x = np.ones(7, np.float32)
    (kernel,) = nfuser.fuse(lambda x: np.exp(x) - 8.25).kernels(x)
    assert compile_cpu(kernel.source, kernel.name, kernel.signature).code
    assert set(engine._defined_symbols) == before


_FRESH = """
import sys
import numpy as np
import nfuser

def both(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.tanh(powers / powers.sum(axis=-1, keepdims=True)) ** 3

f = nfuser.fuse(both)
x = np.ones((4, 8), np.float32)
f(x)
assert f.cache_info().compiled == 1
known = "numba.np.arraymath", "numba.np.random.legacy", "scipy.linalg"
found = [name for name in known if name in sys.modules]
assert not found, found

from numba import njit

@njit
def ordinary(x):
    values = [v * 2 for v in x.ravel()]
    return np.sort(np.array(values)).sum() + x.mean()

assert ordinary(x) == 65
f(x.astype(np.float64))
assert f.cache_info().compiled == 2
"""


def test_the_rest_of_numba_is_not_imported_and_works_all_the_same() -> None:
    environment = {"NFUSER_DISABLE": "disk_cache", "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", _FRESH], check=True, env=environment)
