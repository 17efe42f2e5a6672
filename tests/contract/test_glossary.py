# SPDX-License-Identifier: Apache-2.0
"""The glossary has the words that are printed of a kernel's decisions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMON = {"and", "any", "as", "in", "n", "steps", "to", "up", "x"}


def _printed(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef) and node.name in ("__str__", "_ways"):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    found.update(re.findall("[a-z]+", part.value))
    return found


def test_each_word_of_a_printed_schedule_is_in_the_glossary() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    known = set(re.findall("[a-z]+", " ".join(re.findall(r"\*([^*]+)\*", text))))
    folder = ROOT / "nfuser" / "compiler" / "schedule" / "heuristics"
    printed = set[str]().union(*map(_printed, folder.glob("*.py")))
    assert len(printed) > 20
    assert printed - COMMON <= known
