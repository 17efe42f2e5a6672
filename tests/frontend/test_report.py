# SPDX-License-Identifier: Apache-2.0
"""A report says what explain does, ties lines to kernels, and opens in a browser."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import __main__ as command_line
from nfuser import config
from nfuser.compiler.rewrite.passes import PASSES
from tests import site

if TYPE_CHECKING:
    from pathlib import Path


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def pieces(x: Any, w: Any) -> Any:
    h = x - x.mean(axis=1, keepdims=True)
    total = h.sum(axis=0)
    return h @ w + np.tanh(total[:4])


def long(x: Any, y: Any) -> Any:
    for k in nfuser.unroll(range(150)):
        x = np.maximum(x * (1 + k), y)
        if k % 50 == 49:
            x = x - x.sum(axis=k // 50 % 2, keepdims=True)
    return x


X = np.random.default_rng(0).random((100, 8))
W = np.ones((8, 4))
CALLS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "softmax": (softmax, (X,)),
    "pieces": (pieces, (X, W)),
    "long": (long, (X, X)),
}
READY = 2_000  # milliseconds, from the first byte to the answers to six clicks
CLICKS = """(() => {
  const count = what => document.querySelectorAll(what).length;
  const click = it => it.dispatchEvent(new MouseEvent("click", {bubbles: true}));
  const found = {}, begun = performance.now();
  const line = document.querySelector("#code .row.busy");
  click(line);
  found.kernels = [...document.querySelectorAll(".piece.marked")].map(
    it => it.dataset.piece);
  found.nodes = count("svg .node.marked");
  found.chips = [...line.querySelectorAll(".chip")].map(it => it.textContent);
  click(line);
  found.none = count(".marked");
  click(document.querySelector(".piece header"));
  found.lines = [...document.querySelectorAll("#code .row.marked")].map(
    it => it.dataset.line.split(":").pop());
  found.drawn = count("svg .node") + count("svg .box");
  click(document.querySelector(".piece header"));
  const runs = [...document.querySelectorAll("#host .run")];
  found.runs = runs.length;
  found.wide = runs.every(it => it.getBoundingClientRect().width > 1);
  click(runs[0]);
  found.run = [...document.querySelectorAll(".piece.marked")].map(
    it => it.dataset.piece);
  click(runs[0]);
  const [load] = performance.getEntriesByType("navigation");
  found.ready = load.loadEventEnd + performance.now() - begun;
  const box = document.querySelector("svg g.box[data-piece='0']");
  click(box);
  click(document.querySelector("svg g.box[data-piece='0']"));
  found.unfolded = count("svg .node");
  return found;
})()"""


def _report(name: str) -> nfuser.Report:
    function, given = CALLS[name]
    return nfuser.fuse(function).report(*given)


def test_a_report_has_the_pieces_of_explain_and_the_graph_between_them() -> None:
    report, told = _report("pieces"), nfuser.fuse(pieces).explain(X, W)
    assert report.explanation.pieces == told.pieces
    found = report.to_dict()
    assert [p["name"] for p in found["pieces"]] == [p.name for p in told.pieces]
    nodes = {n["key"]: n for n in found["graph"]["nodes"]}
    ends = [
        (nodes[e["start"]]["label"], nodes[e["end"]]["label"])
        for e in found["graph"]["edges"]
    ]
    assert {("x", "sum"), ("subtract", "matmul"), ("w", "matmul")} <= {*ends}
    assert ("matmul", "add") in ends
    assert ("add", "result") in ends
    crossing = {
        (nodes[e["start"]]["piece"], nodes[e["end"]]["piece"])
        for e in found["graph"]["edges"]
    }
    assert {(0, 2), (2, 3)} <= crossing
    stored = [(cut.stored_by, max(cut.pieces)) for cut in told.cuts]
    assert [(s["first"], s["last"]) for s in found["stored"]] == stored
    assert (0, 2) in stored


def test_names_in_a_source_stand_for_lines() -> None:
    (piece,) = _report("softmax").to_dict()["pieces"]
    first = softmax.__code__.co_firstlineno
    lines = {k: int(v.rpartition(":")[2]) - first for k, v in piece["places"].items()}
    assert set(lines.values()) == {1, 2}
    for name in lines:
        assert f"#   {name.upper()}: " in piece["source"]
    rows = piece["source"].splitlines()
    (divided,) = [
        row.split()[0] for row in rows if " = divide(" in row and "#" not in row
    ]
    assert lines[divided.partition("_")[0]] == 2


def test_passes_are_told_where_they_changed_something() -> None:
    stages = _report("softmax").stages
    assert stages[0].name == "traced"
    names = {apply.__name__ for apply in PASSES}
    assert {s.name for s in stages[1:]} <= names | {"concretized"}
    texts = [s.text for s in stages]
    assert all(a != b for a, b in pairwise(texts))


def test_a_call_that_is_found_in_the_caches_has_the_same_report() -> None:
    fused = nfuser.fuse(softmax)
    before = fused.report(X).to_dict()
    for _ in range(3):
        fused(X)
    after = fused.report(X).to_dict()
    told = before.pop("cache"), after.pop("cache")
    assert before == after
    assert [t["counts"]["calls"] for t in told] == [0, 3]
    assert told[1]["why"] == f"{fused.why()}"


def test_a_loop_a_function_without_source_and_odd_texts_have_reports() -> None:
    space: dict[str, Any] = {"np": np}
    exec("f = lambda x: np.sin(x) + 1", space)  # noqa: S102 (no file has its source)
    page = nfuser.fuse(space["f"]).report(X).html()
    assert "sin" in page

    def closing(x: Any, steps: int) -> Any:
        for _ in range(steps):
            x = x * 0.5 + 1  # </script><script>alert(1)</script>
        return x

    report = nfuser.fuse(closing).report(X, 100)
    assert "</script><script>alert" not in report.html()
    assert any(p["source"] for p in report.to_dict()["pieces"])


def test_pages_are_small() -> None:
    assert len(_report("softmax").html().encode()) <= 300_000
    long_one = _report("long")
    assert long_one.explanation.operations >= 300
    assert len(long_one.html().encode()) <= 2_000_000


def test_notebooks_show_the_page_and_a_session_one_line() -> None:
    report = _report("softmax")
    shown: str = report._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert shown.startswith("<iframe")
    assert repr(report) == "<nfuser.Report softmax: save(path) writes the page>"
    assert str(report) == str(nfuser.fuse(softmax).explain(X))


def test_the_command_line_writes_a_page_for_each_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, nfuser\n"
        "@nfuser.fuse\n"
        "def doubled(x):\n"
        "    return x * 2\n"
        "doubled(np.ones(3)), doubled(np.ones(5))\n"
    )
    monkeypatch.setattr("sys.argv", ["nfuser"])
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    with config.override(dump_folder=str(tmp_path / "pages")):
        assert command_line.main(["report", str(script)]) == 0
    (page,) = (tmp_path / "pages").iterdir()
    assert page.name.endswith("_doubled_report.html")
    assert "return x * 2" in page.read_text()


def _clicked(window: site.Browser) -> dict[str, Any]:
    """Click on what a page shows, and return what was marked, and when."""
    asked = {"expression": CLICKS, "returnByValue": True}
    return window.ask("Runtime.evaluate", **asked)["result"]["value"]


def test_reports_open_offline_and_lines_and_kernels_mark_each_other(
    tmp_path: Path,
) -> None:
    pytest.importorskip("websocket")
    program = site.find_chromium()
    if program is None:
        pytest.skip("no Chromium here")
    with site.browser(program) as window:
        window.ask(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        for name in CALLS:
            page = _report(name).save(tmp_path / f"{name}.html")
            window.resize(site.NARROW, 800)
            assert window.faults(page) == []
            found = _clicked(window)
            ready = found["ready"]
            for _ in range(2):  # the machine may have been busy
                if ready > READY:
                    window.open(page)
                    ready = _clicked(window)["ready"]
            assert ready <= READY, name
            assert found["kernels"] == found["chips"], name
            assert found["none"] == 0
            assert found["lines"], name
            report = _report(name)
            assert found["runs"] == len(report.codes)
            assert found["wide"]
            assert found["run"] == ["0"]
            # Many operations are folded into their kernels.
            is_folded = name == "long"
            assert (found["nodes"] == 0) == is_folded
            if is_folded:
                assert found["drawn"] < 20
                assert found["unfolded"] > 50


# -- definitions ---------------------------------------------------------------


def test_a_definition_has_a_page_with_the_lines_that_made_it() -> None:
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], [True, True], nfuser.DataType.Float)
        total = fd.ops.sum(x, 1)
        fd.add_output(fd.ops.exp(total))
    given = [np.ones((3, 4), np.float32)]
    report = fd.report(given)
    assert fd.cache_info().calls == 0
    lines = [line.text.strip() for line in report.sections[0].lines]
    assert lines == ["total = fd.ops.sum(x, 1)", "fd.add_output(fd.ops.exp(total))"]
    labels = [node.label for node in report.graph.nodes]
    assert labels[1:] == ["sum", "exp", "result"]
    fd.execute(given)
    after = fd.report(given)
    assert (after.why, after.counts["calls"]) == (fd.why(), 1)
    assert "definition_kernel" in after.html()


def test_an_equal_definition_has_a_page_with_its_own_lines() -> None:
    def made() -> Any:
        with nfuser.FusionDefinition() as fd:
            x = fd.define_tensor([-1], [True], nfuser.DataType.Float)
            fd.add_output(fd.ops.tanh(x))  # the line
        return fd

    given = [np.ones(5, np.float32)]
    made().execute(given)
    second = made()
    second.execute(given)
    assert "# the line" in second.report(given).sections[0].lines[0].text


def test_definitions_are_dumped_as_pages_too(tmp_path: Path) -> None:
    settings = {"dump": frozenset({"report"}), "dump_folder": str(tmp_path)}
    with config.override(**settings), nfuser.FusionDefinition() as fd:
        x = fd.define_tensor([-1], [True], nfuser.DataType.Double)
        fd.add_output(fd.ops.cos(fd.ops.sin(x)))
    with config.override(**settings):
        fd.execute([np.ones(5)])
    (page,) = tmp_path.glob("*report.html")
    assert "fd.ops.cos(fd.ops.sin(x))" in page.read_text()
