# SPDX-License-Identifier: Apache-2.0
"""What pages of the gallery measure is in a file, with the command that measures it."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from asv_bench.charts.measured import HEADER, load
from tests.contract.reference import DOCS, extension

if TYPE_CHECKING:
    from pathlib import Path

ROOT = DOCS.parent
PAGES = sorted((DOCS / "gallery").glob("plot_*.py"))
DRAWS = {"bars", "lines", "dots"}
CLOCKS = {"time", "timeit", "datetime"}
PAGE = """
from time import sleep
from by_turns import bars, by_turns, dots, in_order, lines

import os
assert os.environ["OMP_WAIT_POLICY"] == "passive"
slow = lambda: sleep(0.003)
bars(by_turns({"nfuser": int, "NumPy": slow}), "a call")
lines([10, 20], [{"nfuser": 1e-3}, {"nfuser": 2e-3}], "two calls", "elements")
dots(in_order(iter([slow, int])), "three", "call")
"""


def _imports(page: Path) -> dict[str, set[str]]:
    """Return the names that a script takes from each module."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(page.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {alias.name for alias in node.names}
            found.setdefault(node.module, set()).update(names)
        elif isinstance(node, ast.Import):
            found |= {alias.name: set() for alias in node.names}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_measures_by_what_keeps_it(page: Path) -> None:
    found = _imports(page)
    assert found["by_turns"] & DRAWS, "draw the times of the page"
    assert not CLOCKS & {*found}, "measure with by_turns, which keeps what it draws"
    assert not re.search(r"perf_counter|set_[xy]label\(.*second", page.read_text())


def test_a_clock_of_a_page_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.py"
    page.write_text("import timeit\nfrom time import perf_counter as now\n")
    assert CLOCKS & {*_imports(page)} == {"timeit", "time"}


def test_a_page_by_hand_gives_a_file_of_results(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page, file = tmp_path / "page.py", tmp_path / "times.json"
    page.write_text(PAGE)
    command = ["docs/_ext/gallery_times.py", str(page), "--json", str(file)]
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    found = json.loads(file.read_text())
    assert [key for key in HEADER if not found.get(key)] == []
    assert shlex.split(found["command"]) == ["python", *command[:2]]
    read = load(str(file.with_suffix("")))
    assert [(row.name, row.at) for row in read.rows] == [
        ("a call", None),
        ("two calls: 10 elements", 10),
        ("two calls: 20 elements", 20),
        ("three: call 1", 1),
        ("three: call 2", 2),
    ]
    assert read.unit == "s"
    call = read.rows[0].values
    assert call["nfuser"] < 0.003 <= call["NumPy"] < 1
    assert read.rows[2].values == {"nfuser": 2e-3}
    assert read.rows[3].values["nfuser"] >= 0.003


@pytest.fixture
def times() -> Any:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    found = extension("gallery_times")
    pyplot.switch_backend("agg")
    yield found
    found.DRAWN.clear()
    pyplot.close("all")


def test_what_is_drawn_is_what_is_kept(times: Any) -> None:
    drawn, pyplot = extension("by_turns"), pytest.importorskip("matplotlib.pyplot")
    drawn.bars({"nfuser": 0.001, "NumPy": 0.004}, "a call")
    widths = [bar.get_width() for bar in pyplot.gca().patches]
    assert widths == [4.0, 1.0]  # milliseconds, from below
    drawn.lines([1, 2], [{"nfuser": 0.002}, {"nfuser": 0.003}], "calls", "elements")
    assert [*pyplot.gca().lines[0].get_ydata()] == [2.0, 3.0]
    drawn.dots([0.5, 0.25], "in order", "call")
    assert [*pyplot.gca().lines[0].get_ydata()] == [500.0, 250.0]
    values = [seconds for row in times.DRAWN for seconds in row["values"].values()]
    assert values == [0.001, 0.004, 0.002, 0.003, 0.5, 0.25]


def test_the_build_links_the_file_below_the_picture(tmp_path: Path, times: Any) -> None:
    by_turns = extension("by_turns")
    block_vars = {
        "target_file": str(tmp_path / "plot_9_page.py"),
        "src_file": str(PAGES[-1]),
    }
    assert times.keep(None, block_vars, {}) == ""
    assert [*tmp_path.iterdir()] == []
    for title in ("first", "second"):
        by_turns.bars({"nfuser": 0.001, "NumPy": 0.002, "torch": 0.0005}, title)
        told = times.keep(None, block_vars, {})
        assert ":download:`plot_9_page.json <plot_9_page.json>`" in told
        command = f"python docs/_ext/gallery_times.py docs/gallery/{PAGES[-1].name}"
        assert f"``{command}``" in told
        assert ":download:`by_turns.py </_ext/by_turns.py>`" in told
        assert f"{title}: torch by 2.00" in told
        assert "NumPy by" not in told
    found = json.loads((tmp_path / "plot_9_page.json").read_text())
    assert [row["name"] for row in found["rows"]] == ["first", "second"]
    assert found["commit"] in told
    assert found["machine"] in told
    assert times.keep(None, {**block_vars, "drawn_before": []}, {}) == ""
    settings = (DOCS / "conf.py").read_text()
    assert "\npin()" in settings
    assert f'"{times.__name__}.{times.keep.__name__}"' in settings
