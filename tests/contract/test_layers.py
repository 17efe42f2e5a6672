# SPDX-License-Identifier: Apache-2.0
"""Rooms import only from rooms below them, and only codegen knows Numba."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "nfuser"


def test_the_layer_contract_holds() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "stages flow one way KEPT" in done.stdout


def test_every_room_has_a_layer() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (layers,) = (c["layers"] for c in contract["tool"]["importlinter"]["contracts"])
    named = {name for layer in layers for name in layer.split(" : ")}
    over = {name.rpartition(".")[0] for name in named} | {"nfuser.compiler.transforms"}
    found: set[str] = set()
    for group in over:
        for path in (ROOT / group.replace(".", "/")).iterdir():
            if path.suffix == ".py" or (path / "__init__.py").exists():
                found.add(f"{group}.{path.stem}")
    rooms = {name for name in found if not name.endswith(".__init__")}
    assert rooms - over == named


def _imports(path: Path) -> set[str]:
    """Return the packages that a file imports, at the top or inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def test_only_codegen_imports_numba() -> None:
    numba = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if "numba" in _imports(path)
    }
    assert numba == {"codegen"}


@pytest.mark.parametrize(
    "room", ["numba", "llvmlite", "nfuser.compiler.segment", "nfuser.compiler.lower"]
)
def test_importing_nfuser_leaves_what_compiles_alone(room: str) -> None:
    code = (
        "import sys, nfuser; nfuser.fuse;"
        f"print([m for m in sys.modules if f'{{m}}.'.startswith('{room}.')])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def _asks_of_a_kind(tree: ast.Module) -> list[int]:
    """Return the lines that compare the kind of something with a name."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Attribute)
        and node.left.attr == "kind"
    ]


@pytest.mark.parametrize("room", ["compiler/schedule", "compiler/lower"])
def test_a_target_is_asked_for_properties_and_never_for_its_kind(room: str) -> None:
    asking = {
        str(path.relative_to(PACKAGE)): lines
        for path in sorted((PACKAGE / room).rglob("*.py"))
        if (lines := _asks_of_a_kind(ast.parse(path.read_text())))
    }
    assert not asking


def test_what_asks_for_a_kind_is_found() -> None:
    tree = ast.parse("x = a.target.kind != 'cpu'\ny = kind == 'cpu'\n")
    assert _asks_of_a_kind(tree) == [1]


def test_lowering_reads_what_a_schedule_says_and_no_heuristic() -> None:
    reading = {
        str(path.relative_to(PACKAGE))
        for path in sorted((PACKAGE / "compiler" / "lower").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr == "heuristic")
        or (isinstance(node, ast.ImportFrom) and "heuristics" in str(node.module))
    }
    assert not reading
