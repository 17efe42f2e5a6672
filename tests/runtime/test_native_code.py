# SPDX-License-Identifier: Apache-2.0
"""Native entries that processes share: found, damaged, changed, or not kept at all."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from nfuser.base.sources import Sources
from nfuser.codegen.numba.llvm.compile_llvm import compile_llvm
from nfuser.codegen.objects.load_object import load_object
from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.execution.device.native import library
from nfuser.execution.device.native.library import kernel_caller
from nfuser.execution.device.native.shared import is_as_expected
from nfuser.execution.runtime.compile import native_code
from nfuser.execution.runtime.disk.cache import current_store

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not is_as_expected(), reason="no native calls here")

_TEXT = "define i64 @answer() {{\n  ret i64 {}\n}}\n"

CALLS = """
import sys
import numpy as np
import nfuser

f = nfuser.fuse(lambda x, y: (x * 3 - y, (x > y).sum()))
x, y = np.arange(100, dtype=np.float32), np.full(100, 7, np.float32)
for _ in range(4):
    one, two = f(x, y)
    np.testing.assert_array_equal(one, x * 3 - y)
    assert two == 92
print(f.native_calls, f.cache_info().compiled, "llvmlite" in sys.modules)
"""


def _process(folder: Path, **more: str) -> str:
    environment = {**os.environ, "NFUSER_CACHE_DIR": str(folder), **more}
    return subprocess.run(
        [sys.executable, "-c", CALLS],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()


def _made(number: int, made: list[int]) -> MachineCode:
    made.append(number)
    return compile_llvm(_TEXT.format(number), "answer")


def test_a_second_process_makes_native_calls_without_llvm(tmp_path: Path) -> None:
    first, second = _process(tmp_path), _process(tmp_path)
    assert first.split()[0] == second.split()[0] == "2"
    assert first.split()[1] != "0"
    assert second.split()[1:] == ["0", "False"]


def test_without_a_cache_each_process_compiles(tmp_path: Path) -> None:
    for _ in range(2):
        found = _process(tmp_path, NFUSER_DISABLE="disk_cache").split()
        assert (found[0], found[2]) == ("2", "True")
    assert not [*tmp_path.iterdir()]


def test_what_was_made_is_found() -> None:
    made: list[int] = []
    for _ in range(3):
        native_code.kept("one", lambda: _made(1, made), load_object)
    native_code.kept("two", lambda: _made(2, made), load_object)
    assert made == [1, 2]


@pytest.mark.parametrize("harm", ["cut", "no code"])
def test_damaged_entries_are_made_anew(harm: str) -> None:
    made: list[int] = []
    native_code.kept("one", lambda: _made(1, made), load_object)
    store = current_store()
    assert store is not None
    (key,) = store.keys()
    if harm == "cut":
        path = next(store.folder.rglob("*.nfk"))
        path.write_bytes(path.read_bytes()[:-1])
    else:
        entry = store.read(key)
        damaged = MachineCode(entry.machine.code, "another name")
        store.put(key, type(entry)(damaged, entry.kernel, entry.backend, entry.target))
    for _ in range(2):
        native_code.kept("one", lambda: _made(1, made), load_object)
    assert made == [1, 1]


def _another(_: object) -> str:
    return "another"


def test_another_source_is_another_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    native_code.kept("one", lambda: _made(1, made), load_object)
    monkeypatch.setattr(Sources, "digest", _another)
    native_code.kept("one", lambda: _made(2, made), load_object)
    assert made == [1, 2]


def test_callers_of_other_kinds_are_others() -> None:
    kinds = ("pointer", "f32"), ("pointer", "f64"), ("pointer",), ("pointer", "i32")
    assert len({kernel_caller(one) for one in kinds}) == len(kinds)


def test_callers_of_several_kinds_are_compiled_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []

    def counted(text: str, entry: str) -> MachineCode:
        compiled.append(entry)
        return compile_llvm(text, entry)

    monkeypatch.setattr(library, "compile_llvm", counted)
    kinds = [("f32",) * k for k in range(11, 15)]
    library.kernel_callers(kinds)
    assert len({kernel_caller(one) for one in kinds}) == len(kinds)
    assert len(compiled) == 1


def test_addresses_are_passed_as_integers() -> None:
    kinds = ("pointer", "f32", "u64"), ("i64", "f32", "pointer")
    assert kernel_caller(kinds[0]) == kernel_caller(kinds[1])
