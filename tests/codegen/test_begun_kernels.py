# SPDX-License-Identifier: Apache-2.0
"""LLVM finishes one kernel while Numba begins with the next."""

# llvmlite ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from llvmlite.binding import ffi

import nfuser
from nfuser.base.locks import holding_all
from nfuser.codegen.numba import compiler_lock
from nfuser.codegen.numba.compile_cpu import begin_cpu
from nfuser.codegen.numba.compiler_lock import COMPILER, FINISHERS, Later
from nfuser.codegen.numba.kernel_library import KernelCodegen
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.execution.runtime.compile import executable
from nfuser.execution.runtime.compile.executable import KERNELS

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from nfuser.codegen.printers.source import Source

SOURCE = """
from nfuser.codegen.primitives.cpu import f64, load, store
def doubled(start, stop, x):
    for i in range(start, stop):
        store(x, i, load(x, i) * f64({0}))
"""
SIGNATURE = "void(int64, int64, CPointer(float64))"


@contextmanager
def nobody_finishing() -> Generator[None]:
    yield from holding_all(*FINISHERS)


def test_numba_asks_llvm_nothing_that_it_would_wait_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin_cpu(SOURCE.format(2.0), "doubled", SIGNATURE)()  # what is asked once
    asked: list[str] = []
    call = ffi._lib_fn_wrapper.__call__

    def noted(function: Any, *given: Any) -> Any:
        asked.append(function._cfn.__name__)
        return call(function, *given)

    monkeypatch.setattr(ffi._lib_fn_wrapper, "__call__", noted)
    finish = begin_cpu(SOURCE.format(3.0), "doubled", SIGNATURE)
    assert not asked
    made = finish()
    assert asked
    assert made.entry.encode() in made.code
    # What takes long has no lock of llvmlite's: several are finished at once.
    long = ("RunNewModulePassManager", "TargetMachineEmitToMemory")
    assert not {f"LLVMPY_{name}" for name in long} & set(asked)


def test_what_another_thread_came_to_is_told_to_all_who_wait() -> None:
    def fail() -> None:
        raise KeyError("this")

    found, failed = Later(lambda: threading.get_ident()), Later(fail)
    assert found.wait() == found.wait() != threading.get_ident()
    assert not found.has_failed
    for _ in range(2):
        with pytest.raises(KeyError, match="this"):
            failed.wait()
    assert failed.has_failed
    assert Later.known(7).wait() == 7


def test_kernels_are_begun_while_another_is_finished() -> None:
    with nobody_finishing():  # as long as LLVM is busy
        found = [Later(lambda k=k: k) for k in range(3)]
        with COMPILER:
            assert not any(later.has_failed for later in found)
    assert [later.wait() for later in found] == [0, 1, 2]


def test_several_kernels_are_finished_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    two = tuple(threading.RLock() for _ in range(2))
    monkeypatch.setattr(compiler_lock, "FINISHERS", two)
    compiler_lock._free_again()
    both = threading.Barrier(2, timeout=30)
    try:
        before = sys.getswitchinterval()
        assert sorted(x.wait() for x in [Later(both.wait), Later(both.wait)]) == [0, 1]
        with nobody_finishing(), two[0], two[1]:
            assert sys.getswitchinterval() == before
    finally:
        monkeypatch.undo()
        compiler_lock._free_again()


def test_kernels_that_are_finished_at_once_are_as_others() -> None:
    numbers = [k + 0.5 for k in range(24)]
    begun = [begin_cpu(SOURCE.format(x), "doubled", SIGNATURE) for x in numbers]
    alone = [begin_cpu(SOURCE.format(x), "doubled", SIGNATURE)() for x in numbers]
    found: dict[int, Any] = {}
    left = list(enumerate(begun))

    def finish_some() -> None:
        while left:
            number, finish = left.pop()
            found[number] = finish()

    threads = [threading.Thread(target=finish_some) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[k].code for k in range(24)] == [made.code for made in alone]


def test_two_threads_have_no_tool_of_llvm_in_common() -> None:
    codegen = KernelCodegen("tools")
    with codegen.tools() as one:
        with codegen.tools() as other:
            assert not {*map(id, one)} & {*map(id, other)}
        with codegen.tools() as again:
            assert again is other


def test_a_kernel_that_could_not_be_finished_is_compiled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_all()
    table = executable._BACKENDS
    real, refused = table["cpu"], [MemoryError("no room"), MemoryError("no room")]

    def load(*given: Any) -> Any:
        if refused:
            raise refused.pop()
        return real.load(*given)

    monkeypatch.setitem(table, "cpu", executable.Backend(real.begin, load))
    tripled = nfuser.fuse(lambda x: x * 3 - 0.123)  # pyright: ignore[reportUnknownLambdaType]
    for _ in range(2):
        with pytest.raises(MemoryError, match="no room"):
            tripled(np.ones(5))
    np.testing.assert_array_equal(tripled(np.ones(5)), np.ones(5) * 3 - 0.123)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_finishes_what_no_thread_of_its_own_would() -> None:
    with nobody_finishing():
        begun = Later(lambda: 7)
        child = os.fork()
        if not child:
            os._exit(begun.wait())
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert begun.wait() == 7


def test_kernels_are_compiled_where_the_process_ends(tmp_path: Path) -> None:
    script = """
import atexit
import numpy as np
def last():
    print(nfuser.fuse(lambda x: x * 3 - 0.75)(np.ones(3)))
atexit.register(last)  # before nfuser: it comes after what nfuser does at exit
import nfuser
nfuser.fuse(lambda x: x + 1.125)(np.ones(3))
"""
    known = os.environ | {"NFUSER_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", script]
    ended = subprocess.run(
        command, capture_output=True, env=known, timeout=60, check=True
    )
    assert ended.stdout.split() == [b"[2.25", b"2.25", b"2.25]"]


def test_who_holds_the_compiler_does_what_others_would_wait_for_it_with() -> None:
    forget_all()
    tripled = nfuser.fuse(lambda x: x * 3 - 0.125)  # pyright: ignore[reportUnknownLambdaType]
    with COMPILER:
        np.testing.assert_array_equal(tripled(np.ones(5)), np.ones(5) * 3 - 0.125)


def test_llvm_has_pythons_lock_soon_and_others_as_before() -> None:
    before = sys.getswitchinterval()
    during = Later(sys.getswitchinterval).wait()
    with nobody_finishing():  # whoever was at work has done all of it
        assert sys.getswitchinterval() == before
    assert during < before / 5
    assert Later(sys.getswitchinterval, COMPILER).wait() == before
    Later(lambda: sys.setswitchinterval(0.002)).wait()
    with nobody_finishing():
        assert sys.getswitchinterval() == pytest.approx(0.002)
    sys.setswitchinterval(before)


def test_the_longest_kernel_of_a_program_is_begun_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_all()
    begun: list[int] = []
    begin = KERNELS.begin

    def noted(source: Source, *given: Any) -> Any:
        begun.append(len(source.text))
        return begin(source, *given)

    def program(x: Any) -> Any:
        rows = x.sum(axis=1) * 2
        columns = np.exp(x - 1).sum(axis=0) + np.tanh(x * x).max(axis=0) * 3 - 0.25
        return rows, columns

    monkeypatch.setattr(KERNELS, "begin", noted)
    x = np.random.default_rng(1).standard_normal((7, 7))
    found = nfuser.fuse(program)(x)
    assert len(begun) == 2
    assert begun == sorted(begun, reverse=True)
    for one, other in zip(found, program(x), strict=True):
        np.testing.assert_allclose(one, other)


def test_machine_code_is_kept_once_by_who_waits_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_all()
    kept: list[str] = []
    begun: list[Any] = []
    begin = KERNELS.begin

    def keep(source: Source, *_: Any) -> None:
        kept.append(source.entry)

    def noted(*given: Any) -> Any:
        begun.append(given)
        return begin(*given)

    monkeypatch.setattr(executable, "keep_machine_code", keep)
    monkeypatch.setattr(KERNELS, "begin", noted)
    nfuser.fuse(lambda x: x * 3 - 0.875)(np.ones(5))  # pyright: ignore[reportUnknownLambdaType]
    assert len(kept) == 1
    KERNELS.clear()
    ((source, *place),) = begun
    first, second = (begin(source, *place) for _ in range(2))
    assert second()[1] == "reused"  # the first may have been interrupted
    assert len(kept) == 2
    assert first()[1] == "compiled"
    assert len(kept) == 2


@pytest.mark.parametrize(("size", "is_begun"), [(100, "0"), (1_000_000, "1")])
def test_what_threads_share_work_with_is_compiled_meanwhile(
    tmp_path: Path, size: int, is_begun: str
) -> None:
    script = f"""
import numpy as np, nfuser
from nfuser.execution.device.native.library import begin_library
nfuser.fuse(lambda x: x * 3 - 0.75)(np.ones({size}))
print(begin_library.cache_info().currsize)
"""
    known = {"NFUSER_CACHE_DIR": str(tmp_path), "NFUSER_NUM_THREADS": "2"}
    command = [sys.executable, "-c", script]
    for is_kept in (False, True):
        ended = subprocess.run(
            command, capture_output=True, env=os.environ | known, timeout=60, check=True
        )
        assert ended.stdout.decode().strip() == ("0" if is_kept else is_begun)
