# SPDX-License-Identifier: Apache-2.0
"""What the recipes add to the compiler works where they say that it is put."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.pages import blocks_of

ROOT = Path(__file__).parents[2]
HOWTO = ROOT / "docs" / "howto"
SCRIPT = """
import numpy as np, nfuser

@nfuser.fuse
def turned(x):
    return -(-x.T) * 2

x = np.arange(1200.0).reshape(30, 40)
np.testing.assert_array_equal(turned(x), x.T * 2)
"""


def _copy_with(folder: Path, file: str, text: str, edits: dict[str, str]) -> Path:
    """Copy the package, with ``text`` as one more file; each edit is of one place."""
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "nfuser", folder / "nfuser", ignore=skip)
    (folder / "nfuser" / file).write_text(text)
    for place, line in edits.items():
        name, _, mark = place.partition(": ")
        path = folder / "nfuser" / name
        old = path.read_text()
        assert mark in old, place
        path.write_text(old.replace(mark, f"{line}{mark}", 1))
    return folder


def _printed(folder: Path, dump: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder), "NFUSER_DUMP": dump}
    environment |= {"NFUSER_CACHE_DIR": str(folder / "cache"), "NFUSER_VERIFY": "2"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_pass_of_the_recipe_runs_among_the_others(tmp_path: Path) -> None:
    (text,) = blocks_of(HOWTO / "add-a-pass.md")
    name, passes = "drop_double_negations", "compiler/rewrite/passes.py"
    edits = {
        f"{passes}: from nfuser.compiler.rewrite.loops.bodies": (
            f"from nfuser.compiler.rewrite.{name} import {name}\n"
        ),
        f"{passes}:     drop_dead_code,\n    copy_leaf": f"    {name},\n",
        'config.py:     "copy_leaf_outputs",': f'    "{name}",\n',
    }
    folder = _copy_with(tmp_path, f"compiler/rewrite/{name}.py", text, edits)
    assert _printed(folder, "concrete").count("negative(") == 2
    assert "multiply(" in _printed(folder, f"rewrite.{name}")
    kept = _printed(folder, "segments")
    assert "negative(" not in kept
    assert "multiply(" in kept


def test_the_scheduler_of_the_recipe_takes_its_segments(tmp_path: Path) -> None:
    (text,) = blocks_of(HOWTO / "add-a-scheduler.md")
    edits = {
        "compiler/schedule/registry.py: from nfuser.compiler.segment.both_ways": (
            "from nfuser.compiler.schedule.untiled import Untiled\n"
        ),
        "compiler/schedule/registry.py: PointwiseScheduler(),": "Untiled(), ",
    }
    folder = _copy_with(tmp_path, "compiler/schedule/untiled.py", text, edits)
    assert "untiled" in _printed(folder, "segments")


@pytest.mark.parametrize("page", ["add-a-pass", "add-a-scheduler"])
def test_recipes_have_one_whole_file(page: str) -> None:
    (text,) = blocks_of(HOWTO / f"{page}.md")
    assert text.startswith('"""')
