# SPDX-License-Identifier: Apache-2.0
"""What holds of every source file: size, licence line, docstrings, wording."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
FOLDERS = ("nfuser", "tests", "asv_bench", "docs", ".ci")
TEXT = {".py", ".md", ".toml", ".yaml", ".json", ".txt", ""}
PACKAGE = sorted((ROOT / "nfuser").rglob("*.py"))
PYTHON = [
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not {"_build", ".asv"} & set(path.parts)
]

# A longer file needs a decision record, and its name here.
LONG_FILES: frozenset[str] = frozenset()
LONG_FUNCTIONS: frozenset[str] = frozenset()

# The repository speaks only of itself: no home folders of whoever wrote it, no open
# ends without an issue number, no merge leftovers.
FORBIDDEN = re.compile(
    r"/(?:root|work|home/\w+|Users/\w+)/"
    r"|\bTODO\b(?!\(#\d+\))|\bFIXME\b|\bXXX\b"
    r"|^(?:<{7}|>{7}) ",
    re.MULTILINE,
)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_sources_are_found() -> None:
    assert ROOT / "nfuser" / "errors.py" in PACKAGE
    assert Path(__file__) in PYTHON


def test_a_file_has_at_most_600_lines_and_a_licence() -> None:
    for path in PYTHON:
        lines = path.read_text().splitlines()
        assert len(lines) <= 600 or _name(path) in LONG_FILES, path
        assert lines[0] == "# SPDX-License-Identifier: Apache-2.0", path


def test_a_file_of_the_package_has_at_most_450_lines() -> None:
    long = [_name(path) for path in PACKAGE if len(path.read_text().splitlines()) > 450]
    assert long == [], "split it by its nouns or verbs"


def test_a_public_class_has_its_name_alone() -> None:
    found: dict[str, list[str]] = {}
    for path in PACKAGE:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(_name(path))
    twice = {name: where for name, where in found.items() if len(where) > 1}
    assert twice == {}, "name one of them more closely, or merge them"


def _public(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield public classes, functions and methods; nested functions are private."""
    yield "module", tree
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        if node.name.startswith("_"):
            continue
        yield node.name, node
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and member.name[0] != "_":
                    yield f"{node.name}.{member.name}", member


def _is_overload(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        ast.unparse(decorator).split(".")[-1] in {"overload", "setter"}
        for decorator in node.decorator_list
    )


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {_name(path): ast.parse(path.read_text()) for path in PACKAGE}


def test_public_names_have_docstrings(trees: dict[str, ast.Module]) -> None:
    missing = [
        f"{file}:{name}"
        for file, tree in trees.items()
        for name, node in _public(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and not _is_overload(node)
        and not ast.get_docstring(node)
    ]
    assert missing == []


def test_a_function_has_at_most_60_lines(trees: dict[str, ast.Module]) -> None:
    long = [
        f"{file}:{node.name}"
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > 60
        and f"{file}:{node.name}" not in LONG_FUNCTIONS
    ]
    assert long == []


def test_no_forbidden_words() -> None:
    texts = [
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file()
        and path.suffix in TEXT
        and not {"_build", ".asv", "__pycache__"} & set(path.parts)
        and path != Path(__file__)
    ]
    texts += [ROOT / "README.md", ROOT / "pyproject.toml"]
    found = {
        _name(path): match.group()
        for path in texts
        if (match := FORBIDDEN.search(path.read_text()))
    }
    assert found == {}
