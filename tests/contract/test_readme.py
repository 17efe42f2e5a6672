# SPDX-License-Identifier: Apache-2.0
"""The README's commands and example are what they claim to be."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_first_block_is_two_commands() -> None:
    first = re.search(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert first is not None
    assert first.group(1) == "sh"
    demo, tests = first.group(2).splitlines()
    assert shlex.split(demo)[-4:] == [".venv/bin/python", "-m", "nfuser", "demo"]
    assert " ".join(shlex.split(tests)[-6:]) == ".venv/bin/python -m pytest -q -n auto"


def test_the_commands_make_their_own_environment() -> None:
    for line in _blocks("sh")[0].splitlines():
        make, install, _ = line.split(" && ")
        assert make == "python3 -m venv .venv"
        assert shlex.split(install)[:4] == [".venv/bin/python", "-m", "pip", "install"]


def test_the_example_is_short() -> None:
    (example,) = _blocks("pycon")
    assert len(re.findall(r"^(?:>>>|\.\.\.)", example, re.MULTILINE)) <= 15


def test_every_path_it_names_exists() -> None:
    named = re.findall(r"`((?:docs|nfuser|tests)/[^`]*)`", README)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
