# SPDX-License-Identifier: Apache-2.0
"""What pip is told."""

from __future__ import annotations

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
