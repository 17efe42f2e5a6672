# SPDX-License-Identifier: Apache-2.0
"""What the environment may ask for: known names alone, and each does something."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser import config
from nfuser.compiler.lower.lowering import BLOCK_PASSES, VECTOR_PASSES
from nfuser.compiler.rewrite.passes import PASSES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "text", "unknown"),
    [
        ("NFUSER_DUMP", "fusion,kernels", "kernels"),
        ("NFUSER_DUMP", "rewrite.simplify", "rewrite.simplify"),
        ("NFUSER_DUMP", "all:folder", "all"),
        ("NFUSER_DISABLE", "true", "true"),
        ("NFUSER_DISABLE", "1,fusion", "fusion"),
    ],
)
def test_a_name_that_means_nothing_is_refused(
    name: str, text: str, unknown: str
) -> None:
    with pytest.raises(ValueError, match=rf"found {re.escape(unknown)}$") as caught:
        config.from_environment({name: text})
    known = config.DUMPS if name == "NFUSER_DUMP" else {*config.FEATURES, "0", "1"}
    assert str(caught.value).startswith(f"{name}: expected names among ")
    assert all(word in str(caught.value) for word in known)


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("NFUSER_VERIFY", "9", "one of 0, 1, 2"),
        ("NFUSER_NUM_THREADS", "0", "at least 1"),
        ("NFUSER_CACHE_SIZE", "0", "at least 1"),
    ],
)
def test_a_number_that_means_nothing_is_refused(
    name: str, number: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=f"{name} must be {expected}, not {number}"):
        config.from_environment({name: number})


def test_known_names_are_taken_with_room_around_them() -> None:
    found = config.from_environment({"NFUSER_DUMP": "fusion, rewrite.split_complex:d"})
    assert found.dump == {"fusion", "rewrite.split_complex"}
    assert found.dump_folder == "d"
    assert config.from_environment({"NFUSER_DISABLE": "1"}).disable_all
    assert not config.from_environment({"NFUSER_DISABLE": "0"}).disable_all


def test_the_rewrites_are_those_that_run() -> None:
    ran = list(dict.fromkeys(apply.__name__ for apply in PASSES))
    assert list(config.REWRITES) == ran


def test_the_passes_over_kernels_are_those_that_run() -> None:
    ran = dict.fromkeys(p.__name__ for p in (*VECTOR_PASSES, *BLOCK_PASSES))
    assert list(config.LOWERINGS) == list(ran)


def _twice(x: Any) -> Any:
    return np.exp(x) + np.exp(x)


def _dumped(folder: Path, *names: str) -> set[str]:
    """Return what a first call dumps when ``names`` are asked for."""
    settings = {"dump": frozenset(names), "dump_folder": str(folder)}
    with config.override(**settings):
        nfuser.fuse(_twice)(np.ones(3, np.float16))
    return {
        re.sub(r"^\d+_(twice_)?|\.txt$", "", path.name) for path in folder.glob("*")
    }


def test_rewrite_dumps_every_pass_and_a_pass_itself_alone(tmp_path: Path) -> None:
    every = _dumped(tmp_path / "every", "rewrite")
    assert {"rewrite.widen_halves", "rewrite.merge_common_subexpressions"} <= every
    assert all(name.startswith("rewrite.") for name in every)
    one = _dumped(tmp_path / "one", "rewrite.widen_halves")
    assert one == {"rewrite.widen_halves"}


def test_a_pass_over_kernels_is_dumped_by_its_name(tmp_path: Path) -> None:
    found = _dumped(tmp_path, "kernel.interleave_vectors")
    assert found == {"kernel_kernel.interleave_vectors"}  # of twice_kernel


def test_every_stage_is_documented() -> None:
    page = (ROOT / "docs" / "debugging.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert set(config.STAGES) - rows == set()


def test_dumped_files_are_named_by_function_and_kernel(tmp_path: Path) -> None:
    settings = {"dump": frozenset({"fusion", "source"}), "dump_folder": str(tmp_path)}
    with config.override(**settings):
        nfuser.fuse(_twice)(np.ones((2, 3)))
    names = {re.sub(r"^\d+_", "", path.name) for path in tmp_path.glob("*")}
    assert names == {"twice_fusion.txt", "twice_kernel_source.py"}


def test_a_mistyped_variable_is_named() -> None:
    with pytest.warns(RuntimeWarning, match="^write NFUSER_NUM_THREADS, or unset it"):
        config.from_environment({"NFUSER_NUMTHREADS": "3"})
    with pytest.warns(RuntimeWarning, match="^unset it: NFUSER_QUXBLOT is no setting"):
        config.from_environment({"NFUSER_QUXBLOT": "3"})


def test_every_variable_is_documented() -> None:
    page = (ROOT / "docs" / "debugging.md").read_text()
    assert all(f"`{name}=" in page for name in config.VARIABLES)
