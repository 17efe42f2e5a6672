# SPDX-License-Identifier: Apache-2.0
"""What a process takes for its own code is what runs in it, whatever files change."""

# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import nfuser
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.execution.runtime.disk import key as disk_key
from nfuser.execution.runtime.disk.cache import folder_in_force

PACKAGE = Path(nfuser.__file__).parent
# A copy of the package, whose files change between the first look at the cache and the
# first compile: what is imported late comes from the new ones.
CHANGED = """
import sys, pathlib
import numpy as np
import nfuser
root = pathlib.Path(sys.argv[1])
assert nfuser.__file__.startswith(str(root)), nfuser.__file__
from nfuser.execution.runtime.disk import key as disk_key
disk_key.environment("cpu")
path = root / "nfuser" / "codegen" / "primitives" / "cpu" / "arithmetic.py"
old = path.read_text()
if sys.argv[2] == "sources":
    path.write_text(old + "# of another version\\n")
elif sys.argv[2] == "numba":
    real = disk_key._versions
    disk_key._versions = lambda backend: ["numba-99.0.dist-info", *real(backend)]
    disk_key._age = lambda folder: -1
x = np.linspace(0, 1, 7)
np.testing.assert_allclose(nfuser.fuse(lambda x: np.sin(x) + 2)(x), np.sin(x) + 2)
"""


@pytest.mark.parametrize("what", ["nothing", "sources", "numba"])
def test_what_was_compiled_by_files_that_changed_is_not_kept(
    tmp_path: Path, what: str
) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "nfuser", ignore=ignored)
    variables = {"NFUSER_CACHE_DIR": str(tmp_path / "kept")}
    subprocess.run(
        [sys.executable, "-c", CHANGED, str(tmp_path), what],
        env={**os.environ, **variables, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        check=True,
        timeout=120,
    )
    kept = list((tmp_path / "kept").glob("??/*.nfk"))
    assert len(kept) == (what == "nothing")


def test_compilers_imported_before_an_upgrade_are_not_taken_for_the_new_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import_module("numba")  # as a program has that uses it
    newer = [row.replace("numba-", "numba-99") for row in disk_key._versions("cpu")]
    with monkeypatch.context() as patch:
        patch.setattr(disk_key, "_versions", lambda _: newer)
        disk_key.environment.cache_clear()
        forget_all()
        nfuser.fuse(lambda x: np.exp(x) * 11)(np.ones(3))
        assert list(folder_in_force().glob("??/*.nfk")) == []
    disk_key.environment.cache_clear()


PARENT = """
import queue, sys
sys.path[:] = {path!r}
import numpy, json, pickle, nfuser
from nfuser.execution.runtime.compile import ahead as compile_ahead
sys.path.insert(0, "")
compile_ahead._drive(queue.SimpleQueue(), lambda: None)
"""


@pytest.mark.parametrize("name", ["numpy", "pickle"])
def test_a_process_that_compiles_imports_nothing_from_the_current_folder(
    tmp_path: Path, name: str
) -> None:
    mark, folder = tmp_path / "mark", tmp_path / "here"
    folder.mkdir()
    planted = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n"
    (folder / f"{name}.py").write_text(planted)
    # The parent has imported what it needs, as a shell in this folder has.
    parent = PARENT.format(path=[str(PACKAGE.parent), *(p for p in sys.path if p)])
    command = [sys.executable, "-I", "-c", parent]
    done = subprocess.run(command, cwd=folder, check=False, timeout=120)
    assert done.returncode == 0
    assert not mark.exists()
