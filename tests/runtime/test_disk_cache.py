# SPDX-License-Identifier: Apache-2.0
"""Kernels that outlive their process: found, never out of date, never a crash."""

# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import __main__ as command_line
from nfuser import config
from nfuser.base.sources import Sources
from nfuser.codegen.objects.elf import read_object
from nfuser.codegen.objects.load_object import is_portable
from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.execution.runtime.disk import key as disk_key
from nfuser.execution.runtime.disk.cache import current_store, folder_in_force, store_in
from tests.fuzz.drive import Task
from tests.warm import in_a_process, problems

if TYPE_CHECKING:
    from pathlib import Path

X = np.linspace(-2, 2, 60, dtype=np.float32).reshape(4, 15)
EXPECTED = np.exp(X) * 3


def _call(factor: float = 3.0) -> tuple[Any, nfuser.Fused[..., Any]]:
    """Return the result of a new function, as the first call of a process would."""
    forget_all()
    fused = nfuser.fuse(lambda x: np.exp(x) * factor)
    return fused(X), fused


def _counts(factor: float = 3.0) -> tuple[int, int]:
    """Return how many kernels were compiled and loaded for a right result."""
    result, fused = _call(factor)
    np.testing.assert_allclose(result, EXPECTED * (factor / 3), rtol=1e-6)
    return fused.cache_info().compiled, fused.cache_info().loaded


def _files() -> list[Path]:
    return sorted(folder_in_force().glob("??/*.nfk"))


def test_a_kernel_is_compiled_once_and_then_loaded() -> None:
    assert _counts() == (1, 0)
    assert _counts() == (0, 1)
    assert _counts(factor=4.0) == (1, 0)  # another kernel
    first, fused = _call()
    second, _ = _call()
    assert first.tobytes() == second.tobytes()
    fused(X)
    assert fused.cache_info().loaded == 1


def test_a_damaged_entry_is_compiled_anew() -> None:
    _counts()
    (path,) = _files()
    whole = path.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole[:200] + b"\0" + whole[201:]):
        path.write_bytes(damaged)
        assert _counts() == (1, 0)
        assert path.read_bytes() != damaged
        assert _counts() == (0, 1)


def test_code_that_does_not_load_is_compiled_anew() -> None:
    _counts()
    store = current_store()
    assert store is not None
    (key,) = store.keys()
    entry = store.read(key)
    code = entry.machine.code
    for bad in (b"", b"\x7fELF", code[: len(code) // 2], b"\0" + code[1:]):
        store.put(key, replace(entry, machine=MachineCode(bad, entry.machine.entry)))
        assert _counts() == (1, 0)
    store.put(key, replace(entry, machine=MachineCode(code, "another_name")))
    assert _counts() == (1, 0)
    assert _counts() == (0, 1)


@pytest.mark.parametrize("part", ["digest", "_versions", "_processor", "_contents"])
def test_other_versions_and_processors_have_entries_of_their_own(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _counts() == (1, 0)
    with monkeypatch.context() as patch:
        where: Any = Sources if part == "digest" else disk_key
        other = [*disk_key._versions("cpu"), "other"]
        patch.setattr(where, part, lambda *_: other if part == "_versions" else b"-")
        disk_key.environment.cache_clear()
        assert _counts() == (1, 0)
        assert _counts() == (0, 1)
    disk_key.environment.cache_clear()
    assert _counts() == (0, 1)  # the first one is still there


def test_numbas_settings_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _counts() == (1, 0)
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_OPT", "1")
        disk_key.environment.cache_clear()
        assert _counts() == (1, 0)
    disk_key.environment.cache_clear()


def test_numbas_threads_are_no_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _counts() == (1, 0)
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_NUM_THREADS", "1")  # as workers of joblib are told
        disk_key.environment.cache_clear()
        assert _counts() == (0, 1)
    disk_key.environment.cache_clear()


def test_the_key_names_what_is_installed() -> None:
    found = disk_key._versions("cpu")
    for name in ("numba", "llvmlite"):
        version = sys.modules[name].__version__ if name in sys.modules else ""
        assert any(row.startswith(f"{name}-{version}") for row in found)
    assert not any("unknown" in row for row in disk_key._versions("cuda"))


def test_turned_off_nothing_is_written_or_read() -> None:
    _counts()
    off = frozenset({"disk_cache"})
    with config.override(disable=off):
        assert _counts() == (1, 0)
    with config.override(disable=off, cache_dir=f"{folder_in_force()}-off"):
        assert _counts() == (1, 0)
        assert not folder_in_force().exists()


def test_the_folder_is_the_users_cache_unless_another_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with config.override(cache_dir=None):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        if sys.platform != "darwin":
            assert folder_in_force() == tmp_path / ".cache" / "nfuser"
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
            assert folder_in_force() == tmp_path / "xdg" / "nfuser"
            monkeypatch.setenv("XDG_CACHE_HOME", "relative")
            assert folder_in_force() == tmp_path / ".cache" / "nfuser"


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(pathlib.Path, "home", home)
    with config.override(cache_dir=None):
        assert current_store() is None
        assert _counts() == (1, 0)


def test_a_folder_that_others_can_write_to_is_not_used() -> None:
    folder = folder_in_force()
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others can write to it") as caught:
        counts = [_counts(), _counts()]
    assert counts == [(1, 0), (1, 0)]
    assert len(caught) == 1
    assert _files() == []


CALL = (
    "import numpy as np, nfuser; f = nfuser.fuse(lambda x: np.exp(x) * 3)\n"
    "x = np.arange(100, dtype=np.float32) / 50\n"
    "np.testing.assert_allclose(f(x), np.exp(x) * 3, rtol=1e-6)\n"
    "print(f.cache_info().compiled, f.cache_info().loaded)\n"
)


def _process(code: str, folder: Path) -> tuple[str, str]:
    """Return what a process prints to its two streams."""
    environment = {**os.environ, "NFUSER_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.strip()


def test_a_disk_that_takes_no_more_gives_right_results_and_one_warning(
    tmp_path: Path,
) -> None:
    limit = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))\n"
    )
    again = "f = nfuser.fuse(lambda x: np.exp(x) * 5)\nf(x)\n"
    out, err = _process(limit + CALL + again, tmp_path)
    assert out == "1 0"
    assert err.count("RuntimeWarning") == 1
    assert "could not keep a compiled kernel" in err
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_cache_that_root_baked_serves_others_read_only(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents)[:-2]:
        folder.chmod(0o755)
    baked = tmp_path / "cache"
    assert _process(CALL, baked)[0] == "1 0"
    for path in [baked, *baked.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    # What a compile imports late may lie where only root can read.
    first = (
        "import numpy as np, numpy.testing, nfuser, os\n"
        f"with nfuser.config.override(cache_dir={str(tmp_path / 'other')!r}):\n"
        "    nfuser.fuse(lambda x: np.cos(x) * 2)(np.ones(3, np.float32))\n"
        "os.setegid(65534); os.seteuid(65534)\n"
    )
    other = "y = nfuser.fuse(lambda x: np.exp(x) * 7)(x)\n"
    before = sorted(baked.rglob("*"))
    code = first + CALL + other
    assert _process(code, baked) == ("0 1", "")
    assert sorted(baked.rglob("*")) == before


def test_two_processes_fill_one_cache_at_once(tmp_path: Path) -> None:
    task = Task(3, "cpu", 0, 3)
    with ThreadPoolExecutor(2) as pool:
        folders = [str(tmp_path)] * 2
        first, second = pool.map(in_a_process, [task] * 2, folders)
    third = in_a_process(task, str(tmp_path))
    assert first.digests == second.digests == third.digests
    assert third.compiled == 0
    assert third.loaded > 0


def test_a_writer_that_is_killed_harms_nobody(tmp_path: Path) -> None:
    dies = (
        "import os\n"
        "from nfuser.execution.runtime.disk.store import DiskStore\n"
        "def write(path, data):\n"
        "    path.write_bytes(data[:100])\n"
        "    os._exit(0)\n"
        "DiskStore._write = staticmethod(write)\n"
    )
    _process(dies + CALL, tmp_path)
    assert [p.suffix for p in tmp_path.rglob("*") if p.is_file()] == [".tmp"]
    assert _process(CALL, tmp_path)[0] == "1 0"
    assert _process(CALL, tmp_path)[0] == "0 1"


CUBIN = (
    "import sys, numpy as np, nfuser\n"
    "from nfuser.execution.runtime.disk import cache as disk_cache\n"
    "from nfuser.execution.runtime.compile.task import run, task_of\n"
    "f = nfuser.fuse(lambda x: np.exp(x) * 3, backend='interpret')\n"
    "(source,) = f.lower(np.ones((4, 8), np.float32)).sources\n"
    "found = disk_cache.find_machine_code(source, 'cuda')\n"
    "print(found is not None, [n for n in sys.modules if n.startswith('numba')])\n"
    "if found is None:\n"
    "    made = run(task_of(source, 'cuda'))\n"
    "    disk_cache.keep_machine_code(source, 'cuda', made)\n"
)


def test_a_cubin_is_found_again_without_numba(tmp_path: Path) -> None:
    pytest.importorskip("numba_cuda")
    assert _process(CUBIN, tmp_path)[0] == "False []"
    assert _process(CUBIN, tmp_path)[0] == "True []"


@pytest.mark.parametrize("shapes", [False, True])
def test_random_programs_compile_nothing_in_a_second_process(
    tmp_path: Path, shapes: bool
) -> None:
    task = Task(5, "cpu", 0, 3, shapes)
    cold, warm = (in_a_process(task, str(tmp_path)) for _ in range(2))
    assert problems(cold, warm) == []


def test_kernels_call_only_what_every_process_has() -> None:
    """LLVM may turn what a kernel does into calls of the C library: those are fine."""
    x = np.linspace(0.1, 2, 40).reshape(4, 10)
    functions = [np.exp, np.log, np.sin, np.tanh, np.arctan, np.cbrt, np.expm1]
    calls = [lambda a, f=f: f(a).astype(np.float16) for f in functions]
    calls += [lambda a: a**2.5, lambda a: np.fmod(a, 0.3), lambda a: a % 0.3]
    for call in calls:
        nfuser.fuse(call)(x)
        nfuser.fuse(call)(x.astype(np.float32))
    store = current_store()
    assert store is not None
    keys = store.keys()
    assert len(keys) == 2 * len(calls)  # none was left out
    objects = [store.read(key).machine.code for key in keys]
    assert all(is_portable(code) for code in objects)
    called = {name for code in objects for name in read_object(code).undefined}
    assert {"fmod", "fmodf"} <= called
    assert not any("numba" in name.lower() or "NRT" in name for name in called)


def test_the_command_line_lists_verifies_and_clears(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _counts()
    assert command_line.main(["cache", "ls"]) == 0
    assert "lambda" in capsys.readouterr().out
    assert command_line.main(["cache", "verify"]) == 0
    assert "1 kernels are whole, 0 were not" in capsys.readouterr().out
    (path,) = _files()
    path.write_bytes(path.read_bytes()[:-1])
    assert command_line.main(["cache", "ls"]) == 0
    assert "damaged" in capsys.readouterr().out
    assert command_line.main(["cache", "verify"]) == 1
    assert not path.exists()
    _counts()
    assert command_line.main(["cache", "clear"]) == 0
    assert "removed 1 kernels" in capsys.readouterr().out
    assert _files() == []
    with config.override(disable=frozenset({"disk_cache"})):
        assert command_line.main(["cache", "ls"]) == 1


def test_the_store_of_a_folder_is_looked_at_once() -> None:
    folder = str(folder_in_force())
    assert store_in(folder) is store_in(folder)
