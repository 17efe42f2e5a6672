# SPDX-License-Identifier: Apache-2.0
"""The examples of the documentation print what the pages say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from nfuser.execution.runtime.caches.shared_cache import forget_all
from tests.contract.pages import examples_of, rerun, run_python

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(
        path
        for path in (ROOT / "docs").rglob("*.md")
        if "_build" not in path.relative_to(ROOT).parts
    ),
]
INTERACTIVE = [page for page in PAGES if "```pycon\n" in page.read_text()]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", INTERACTIVE, ids=_name)
def test_the_examples_print_what_the_page_says(
    page: Path, request: pytest.FixtureRequest
) -> None:
    forget_all()  # kernels, too: pages print how many are compiled
    now = rerun(page)
    if request.config.getoption("--update-golden"):
        page.write_text(now)
    assert now == page.read_text()


def test_there_are_pages_with_examples() -> None:
    names = {_name(page) for page in INTERACTIVE}
    assert {"README.md", "docs/quickstart.md", "docs/tour.md"} <= names


def test_an_example_that_prints_something_else_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```pycon\n>>> for k in range(2):\n...     print(k)\n0\n\n```\n")
    assert rerun(page) == page.read_text().replace("0\n\n", "0\n1\n")


def test_output_may_hold_blank_lines_and_dots() -> None:
    first, second = examples_of(">>> f()\na\n\n... b\n>>> g(\n... )\n")
    assert first.output == ["a", "", "... b"]
    assert second.code == ["g(", ")"]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_python_blocks_are_python(page: Path) -> None:
    for block in re.findall(
        r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
    ):
        ast.parse(block)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_name_of_nfuser_in_a_page_exists(page: Path) -> None:
    import importlib

    text = re.sub(
        r"^```pycon\n.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL
    )
    for dotted in set(re.findall(r"`nfuser((?:\.[A-Za-z_]\w*)+)", text)):
        found = importlib.import_module("nfuser")
        path = "nfuser"
        for part in dotted[1:].split("."):
            path += f".{part}"
            if not hasattr(found, part):
                importlib.import_module(path)
            found = getattr(found, part)


def test_the_first_page_says_what_its_function_is() -> None:
    found = run_python(ROOT / "docs" / "index.md")["rms_norm"]
    plain = found.__wrapped__
    x = np.random.default_rng(0).random((4, 8))
    for ours, theirs in zip(found(x, x, x[0]), plain(x, x, x[0]), strict=True):
        np.testing.assert_allclose(ours, theirs)
    assert found.explain(x, x, x[0]).kernels == 1
