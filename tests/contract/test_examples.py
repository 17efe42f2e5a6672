# SPDX-License-Identifier: Apache-2.0
"""Each example of the documentation is run by a test; some of these need a GPU."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from nfuser.frontend.commands.cache import ACTIONS
from tests.contract.pages import blocks_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {
    path.relative_to(DOCS).as_posix(): path
    for path in sorted(DOCS.rglob("*.md"))
    if "_build" not in path.relative_to(DOCS).parts
}
RUNNERS = {"run_python", "blocks_of"}
COMMAND = re.compile(r"python (?:-m ([\w.]+)|([\w/]+\.py))([^\n`#]*)")
IMAGES = re.compile(r"^```dockerfile\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WARM = """
import nfuser

doubled = nfuser.fuse(lambda x: x * 2)


def warm_up():
    doubled.warmup([nfuser.Spec((8, 8))])
"""
FOLDERS = {"DOCS": "", "HOWTO": "howto/", "ROOT": "../"}


def _page_of(call: ast.Call) -> str | None:
    """Return the page that a test runs, written ``DOCS / "folder" / "page.md"``."""
    steps: list[str] = []
    at = call.args[0] if call.args else None
    while isinstance(at, ast.BinOp) and isinstance(at.right, ast.Constant):
        steps.insert(0, str(at.right.value))
        at = at.left
    if not (steps and isinstance(at, ast.Name) and at.id in FOLDERS):
        return None
    return (FOLDERS[at.id] + "/".join(steps)).removeprefix("../docs/")


@cache
def _runs() -> dict[str, set[str]]:
    """Return the tests that run the blocks of a page, by page."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in RUNNERS and (page := _page_of(node)):
                found.setdefault(page, set()).add(path.relative_to(ROOT).as_posix())
    return found


@pytest.mark.parametrize("name", [n for n, p in PAGES.items() if blocks_of(p)])
def test_a_block_of_python_runs_in_a_test(name: str) -> None:
    tests = _runs().get(name, set())
    assert tests, (
        f"run the blocks of docs/{name} in a test, run_python(DOCS / ...); in "
        "tests/gpu/test_pages_on_device.py where they need a GPU"
    )
    if all(test.startswith("tests/gpu/") for test in tests):
        text = PAGES[name].read_text()
        for block in blocks_of(PAGES[name]):
            before = text[: text.index(block)].split("\n\n")[-2:]
            told = "\n".join([*before, block])
            assert re.search(r"GPU|CUDA|cupy", told), (
                f"say on docs/{name} that it is for a GPU:\n{block}"
            )


def test_a_page_that_no_test_runs_would_be_seen() -> None:
    assert _page_of(_call('f(DOCS / "howto" / "x.md")')) == "howto/x.md"
    assert _page_of(_call('f(ROOT / "docs" / "x.md", y=1)')) == "x.md"
    assert _page_of(_call("f(page)")) is None
    assert "index.md" in _runs()
    assert "nowhere.md" not in _runs()


def _call(text: str) -> ast.Call:
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    return call


# -- commands ------------------------------------------------------------------


@cache
def _commands() -> dict[str, set[str]]:
    """Return the words after each module or file of ours that pages run."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "README.md", *PAGES.values()):
        for module, file, rest in COMMAND.findall(path.read_text()):
            if (module or file).partition(".")[0] in ("nfuser", "tests", "asv_bench"):
                found.setdefault(module, set()).update(rest.split())
            elif "/" in file:
                found.setdefault(file, set()).update(rest.split())
    return found


@pytest.mark.parametrize("name", sorted(_commands()))
def test_a_command_of_a_page_is_there_with_its_options(name: str) -> None:
    words = {w for w in _commands()[name] if w.startswith("--")}
    if name == "nfuser":
        words |= {w for w in _commands()[name] if w.isalpha() and w.islower()}
        words -= {*ACTIONS}  # of the cache: a level deeper
    if "/" in name:
        assert (ROOT / name).is_file()
        command = [sys.executable, name, "--help"]
    else:
        assert importlib.util.find_spec(name), name
        command = [sys.executable, "-m", name, "--help"]
    if words:
        environment = {**os.environ, "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert {w for w in words if w not in done.stdout} == set()


@pytest.mark.parametrize("name", ["caching.md", "howto/deploy.md"])
def test_an_image_is_filled_by_what_its_page_says(name: str, tmp_path: Path) -> None:
    (image,) = IMAGES.findall(PAGES[name].read_text())
    (folder,) = re.findall(r"^ENV NFUSER_CACHE_DIR=(\S+)$", image, re.MULTILINE)
    (fill,) = re.findall(r"^RUN (python .*)$", image, re.MULTILINE)
    (module,) = re.findall(r"import (\w+)", fill)
    (tmp_path / f"{module}.py").write_text(WARM)
    again = f"import {module}; {module}.warm_up(); print({module}.doubled.cache_info())"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NFUSER_CACHE_DIR": str(tmp_path / "cache"),
    }
    assert folder in fill

    def run(command: str) -> str:
        asked = command.replace("python", sys.executable, 1)
        return subprocess.run(
            ["sh", "-c", asked.replace(folder, str(tmp_path / "cache"))],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    run(fill)
    assert "compiled=0, reused=0, loaded=1" in run(f'python -c "{again}"')
