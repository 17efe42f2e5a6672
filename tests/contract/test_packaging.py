# SPDX-License-Identifier: Apache-2.0
"""What pip is told."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


@pytest.mark.parametrize("extra", ["cuda12", "cuda13"])
def test_cuda_extras_hold_numpy_below_the_version_that_breaks_them(extra: str) -> None:
    assert "numpy<2.5" in EXTRAS[extra]


def test_tools_whose_verdict_changes_with_their_version_are_pinned() -> None:
    loose = [name for name in EXTRAS["lint"] if "==" not in name]
    assert loose == ["nfuser[test]"]


def test_the_package_is_installed_typed_and_in_this_version() -> None:
    assert version("nfuser") == PROJECT["version"]
    assert (ROOT / "nfuser" / "py.typed").exists()


@pytest.mark.parametrize("requirement", PROJECT["dependencies"])
def test_a_dependency_has_a_lower_and_an_upper_bound(requirement: str) -> None:
    assert re.fullmatch(r"\w+>=[\d.]+,<[\d.]+", requirement)


def test_the_table_of_what_is_supported_has_the_bounds_that_pip_is_told() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    names = {"numpy": "NumPy", "numba": "Numba", "llvmlite": "llvmlite"}
    names["ml_dtypes"] = "ml_dtypes"
    for requirement in PROJECT["dependencies"]:
        name, least, below = re.findall(r"^\w+|[\d.]+", requirement)
        row = next(x for x in page.splitlines() if x.startswith(f"| {names[name]} |"))
        assert f"from {least}" in row
        assert f"below {below}" in row


def test_the_pythons_that_are_named_are_those_that_are_tested() -> None:
    script = (ROOT / ".ci" / "elsewhere").read_text()
    (tried,) = re.findall(r"for version in ([\d. ]+);", script)
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    least = PROJECT["requires-python"].removeprefix(">=")
    assert named == [least, *tried.split()]


def test_what_the_core_part_is_made_of_exists() -> None:
    listed = (ROOT / ".ci" / "core_tests").read_text()
    assert (ROOT / ".ci" / "run").read_text().count(".ci/elsewhere\n") == 1
    names = re.findall(r"^  (tests/\S+)$", listed, re.MULTILINE)
    assert len(names) >= 8
    assert [name for name in names if not (ROOT / name).exists()] == []
