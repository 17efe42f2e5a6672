# SPDX-License-Identifier: Apache-2.0
"""What pages say of time comes from a file of results, with its command and commit."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from asv_bench.benchmarks import fresh_process
from asv_bench.charts.draw import curves, dots
from asv_bench.charts.measured import HEADER, RESULTS, Measured, Row, load, means
from asv_bench.charts.tables import behind, figure, summary, table
from asv_bench.compare import calls, first_calls, lengths
from asv_bench.compare.provenance import (
    UNKNOWN,
    commit_of,
    provenance,
    stamped,
    tree_of,
)
from tests.contract.measured_words import FIGURE, IN_README, PAGES, ROOT
from tests.contract.reference import extension

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted(
    path.relative_to(RESULTS).with_suffix("").as_posix()
    for path in RESULTS.rglob("*.json")
)
SHOWN = re.compile(r"^```\{measured\} (\S+)(?: (\w+))?$", re.MULTILINE)


def _git(*words: str, folder: Path = ROOT) -> str:
    if shutil.which("git") is None:
        pytest.skip("no git here")
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_where_its_numbers_come_from(name: str) -> None:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    assert [key for key in HEADER if not found.get(key)] == []
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert re.fullmatch(r"[0-9a-f]{7,40}", found["commit"])
    module = re.search(r"python -m ([\w.]+)|python (\S+\.py)", found["command"])
    assert module, found["command"]
    path = module[2] or module[1].replace(".", "/")
    here = [ROOT / path, ROOT / f"{path}.py", ROOT / path / "__main__.py"]
    assert any(p.is_file() for p in here) or module[1] == "asv"
    assert "no nfuser" not in found.get("versions", "")
    if "tree" in found and _git("cat-file", "-t", found["commit"]) == "commit":
        assert _git("rev-parse", f"{found['commit']}:nfuser") == found["tree"]


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_shown_and_can_be_drawn(name: str) -> None:
    texts = [page.read_text() for page in PAGES]
    views = [
        view for text in texts for file, view in SHOWN.findall(text) if file == name
    ]
    asked = [of for text in texts for of in FIGURE.findall(text)]
    is_told = any(of.split()[0] == name for of in asked)
    assert views or is_told, f"no page shows {name}: write ```{{measured}} {name}"
    for view in views:
        found = load(name, view or "values")
        assert found.rows
        assert table(found).count("\n") == len(found.rows) + 1
        has_axis = all(row.at is not None for row in found.rows)
        drawn = curves(found, "size") if has_axis else dots(found, is_log=True)
        assert drawn.startswith("<svg")
        assert "nan" not in drawn


LISTED = re.compile(r"^```\{behind\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_rows_in_which_another_is_ahead_are_looked_for_in_every_chart() -> None:
    text = (ROOT / "docs" / "performance.md").read_text()
    (listed,) = LISTED.findall(text)
    names = {line.split()[0] for line in listed.splitlines()}
    for name, _ in SHOWN.findall(text):
        columns = load(name).columns
        has_others = any(not column.startswith("nfuser") for column in columns)
        assert name in names or not has_others, f"list {name} in {{behind}}"


def test_all_who_are_ahead_in_the_same_state_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"nfuser, cold": 4.0, "nfuser, warm": 1.0, "JAX, warm": 0.5, "torch": 3.0}
    rows = [
        {"name": "a", "values": values},
        {"name": "b", "values": {**values, "torch": 1.0}},
        {"name": "c", "values": {"nfuser": 1.03, "torch": 1.0}},
        {"name": "d", "values": {"nfuser": 1.0}},
    ]
    (tmp_path / "one.json").write_text(json.dumps({**HEAD, "unit": "s", "rows": rows}))
    monkeypatch.setattr("asv_bench.charts.measured.RESULTS", tmp_path)
    assert behind([("one", "values")]).splitlines()[2:] == [
        "| one | a | JAX, warm; torch | 2.00; 1.33 |",
        "| one | b | torch; JAX, warm | 4.00; 2.00 |",
    ]
    curve = [
        {"name": "x", "at": k, "values": {"nfuser": float(k), "torch": 2.0}}
        for k in (1, 4, 16)
    ]
    (tmp_path / "two.json").write_text(json.dumps({**HEAD, "unit": "s", "rows": curve}))
    assert behind([("two", "values")]).splitlines()[2:] == [
        "| two | 2 of 3 rows | torch | 4.00 |"
    ]


def test_what_pages_show_is_there() -> None:
    for page in PAGES:
        assert {name for name, _ in SHOWN.findall(page.read_text())} <= {*FILES}


def test_a_figure_in_a_sentence_is_of_a_file() -> None:
    asked = [text for page in PAGES for text in FIGURE.findall(page.read_text())]
    assert asked
    assert [text for text in asked if not re.fullmatch(r"\d.*", figure(text))] == []


def test_a_figure_is_a_mean_or_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"name": n, "values": {"nfuser": s}} for n, s in (("a b", 1.0), ("c", 4.0))]
    found = {**HEAD, "unit": "s", "rows": rows}
    (tmp_path / "one.json").write_text(json.dumps(found))
    monkeypatch.setattr("asv_bench.charts.measured.RESULTS", tmp_path)
    assert figure("one values nfuser") == "2.00"
    assert figure("one values nfuser; a") == "1 s"
    with pytest.raises(KeyError):
        figure("one values JAX")


def test_a_figure_links_its_file_and_says_how_it_was_measured() -> None:
    noted: list[str] = []
    env = SimpleNamespace(note_dependency=noted.append)
    inliner = SimpleNamespace(
        document=SimpleNamespace(settings=SimpleNamespace(env=env))
    )
    text = "h200/in_a_row times torch.compile"
    asked = "figure", f"`{text}`", text, 1, inliner
    found, faults = extension("measured").figure_role(*asked)
    assert not faults
    link = found[0]
    assert link.astext() == figure(text)
    assert link["reftarget"] == "/../asv_bench/compare/results/h200/in_a_row.json"
    told = load("h200/in_a_row").told
    assert link[0]["explanation"] == f"h200/in_a_row.json, measured {told}"
    assert noted == [str(RESULTS / "h200/in_a_row.json")]


# -- what is made of the numbers ---------------------------------------------------

HEAD = {"command": "python -m x", "date": "d", "commit": "c", "machine": "m"}


def _made(**columns: list[float]) -> Measured:
    count = len(next(iter(columns.values())))
    rows = tuple(
        Row(f"row {k}", {c: v[k] for c, v in columns.items()}) for k in range(count)
    )
    return Measured(HEAD, "times", tuple(columns), rows)


def test_means_are_geometric_and_the_best_is_of_each_row() -> None:
    found = means(_made(nfuser=[1.0, 1.0], torch=[2.0, 8.0], JAX=[4.0, 2.0]))
    assert {name: round(mean, 6) for name, (mean, _) in found.items()} == {
        "torch": 4.0,
        "JAX": 2.828427,
        "the best peer": 2.0,
    }
    assert summary(_made(nfuser=[1.0, 1.0], torch=[3.0, 3.0])).endswith(
        "nfuser: torch 3.00."
    )


def test_a_dot_lies_where_its_number_is() -> None:
    drawn = dots(_made(nfuser=[1.0], torch=[2.0]))
    xs = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"[^>]*><title>', drawn)]
    start = 20 + 7 * len("row")  # where the axis begins
    assert (xs[0] - start) / (xs[1] - start) == pytest.approx(2, abs=0.02)
    assert "torch: 2.00" in drawn


def test_rows_that_do_not_count_are_in_italics() -> None:
    values = {"nfuser": 1.0, "torch": 2.0}
    rows = Row("a * b", values), Row("c 2x2", {**values, "torch": 9.0}, False)
    found = Measured(HEAD, "times", ("nfuser", "torch"), rows)
    assert [line.split(" | ")[0] for line in table(found).splitlines()[2:]] == [
        "| a \\* b",
        "| *c 2x2*",
    ]
    assert 'class="e i">c<' in dots(found)
    assert 'class="e">a * b<' in dots(found)
    assert summary(found) == (
        "Geometric means over the 1 rows that are not in italics, "
        "times as long as nfuser: torch 2.00."
    )


def test_sums_are_of_each_column() -> None:
    found, rows = load("two_cores/lengths", "sum"), load("two_cores/lengths").rows
    for column in found.columns:
        assert found.rows[-1].values[column] == pytest.approx(
            sum(row.values[column] for row in rows)
        )
    assert [row.at for row in found.rows[:2]] == [1, 2]
    last = list(found.rows[-1].values.values())
    assert len(set(last)) == len(last)


def test_shares_and_times_come_from_seconds() -> None:
    share, fresh = load("h200/in_a_row", "share"), load("h200/in_a_row", "fresh")
    found = json.loads((RESULTS / "h200/in_a_row.json").read_text())
    row = found["rows"][0]
    wanted = row["necessary_bytes"] / row["fresh"]["nfuser"] / found["copy"]
    assert share.rows[0].values["nfuser"] == pytest.approx(wanted)
    assert fresh.rows[0].values["nfuser"] == row["fresh"]["nfuser"]
    ratio = load("h200/in_a_row", "times").rows[0].values["JAX"]
    assert ratio == pytest.approx(row["fresh"]["JAX"] / row["fresh"]["nfuser"])


def test_reused_results_are_a_column_or_take_the_place_of_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {
        "name": "a",
        "is_headline": True,
        "necessary_bytes": 8,
        "fresh": {"nfuser": 2.0, "NumPy": 6.0, "JAX": 5.0},
        "reused": {"nfuser": 1.0, "NumPy": 4.0},
    }
    (tmp_path / "one.json").write_text(json.dumps({**HEAD, "copy": 1.0, "rows": [row]}))
    monkeypatch.setattr("asv_bench.charts.measured.RESULTS", tmp_path)
    assert load("one", "times").rows[0].values == {
        "nfuser": 1.0,
        "NumPy": 3.0,
        "JAX": 2.5,
        "nfuser, reused outputs": 0.5,
    }
    assert means(load("one", "times"))["the best peer"] == (2.5, 1)
    assert means(load("one", "reused_times"))["the best peer"] == (4.0, 1)


@pytest.mark.parametrize("start", IN_README)
def test_the_readme_has_the_means_of_the_files(start: str) -> None:
    text = (ROOT / "README.md").read_text()
    (line,) = re.findall(rf"^\| {start}.*$", text, re.MULTILINE)
    wanted: list[str] = []
    for name, view, columns in IN_README[start]:
        measured = load(name, view)
        assert f"{measured.header['date']}, commit {measured.header['commit']}" in text
        wanted += [f"{means(measured)[column][0]:.2f}" for column in columns]
    assert re.findall(r"\b\d\.\d\d\b", line) == wanted


# -- what measures -----------------------------------------------------------------


@pytest.mark.filterwarnings("default")  # the other libraries may warn as they like
def test_what_measures_calls_and_lengths_measures_the_same_function() -> None:
    for name in calls.FUNCTIONS:
        found = calls.calls(name, 10)
        wanted = found["NumPy"]()
        assert {"nfuser", "NumPy"} <= set(found)
        for call in found.values():
            np.testing.assert_allclose(np.asarray(call()), wanted, rtol=1e-5)
    x = np.random.default_rng(0).random((3, 5), dtype=np.float32)
    softmaxes = lengths.compilers()
    for library in ("nfuser", "NumPy"):
        call, array = softmaxes[library]
        np.testing.assert_allclose(call(array(x)).sum(axis=-1), 1, rtol=1e-6)


def test_tensors_are_called_as_they_are_and_bound() -> None:
    torch: Any = pytest.importorskip("torch")
    for name in calls.FUNCTIONS:
        found = calls.calls_of_tensors(name, 10, "cpu")
        assert {"nfuser", "torch", "nfuser, bound", "nfuser, bound with out="} <= {
            *found
        }
        for call in found.values():
            torch.testing.assert_close(call(), found["torch"]())


def test_first_calls_are_made_of_what_is_asked_for() -> None:
    assert first_calls.compilers("cpu")["nfuser"] == ("nfuser", "numpy")
    asked = {*first_calls.compilers("cuda").values()}
    assert {who for who, _ in asked} == {"nfuser", "torch.compile"}
    assert {library for _, library in asked} <= {*fresh_process.LIBRARIES}


def test_a_run_on_a_gpu_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(get_device_name=lambda: "a GPU")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert provenance("cuda")["machine"] == "a GPU"


def test_a_run_says_where_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    script = str(ROOT / "asv_bench" / "compare" / "calls.py")
    monkeypatch.setattr("sys.argv", [script, "--threads", "2", "--json", "/x.json"])
    found = provenance()
    assert set(HEADER) < set(found)
    assert f", nfuser {nfuser.__version__}, " in found["versions"]
    assert found["command"].endswith("calls --threads 2") or found["command"].endswith(
        "calls.py --threads 2"
    )


def _checkout(folder: Path) -> Path:
    """Make a checkout of two commits, the first with another ``nfuser``."""
    inside = folder / "nfuser" / "ir"
    inside.mkdir(parents=True)
    _git("init", "-q", folder=folder)
    for word in ("one", "two"):
        (inside / "a.py").write_text(word)
        (folder / "nfuser" / "ir.py").write_text("beside the folder ir")
        (folder / "nfuser" / "ir-a.py").write_text("sorted before it")
        _git("add", "-A", folder=folder)
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        _git(*who, "commit", "-qm", word, folder=folder)
    return folder


def test_a_commit_is_named_by_what_ran_and_not_by_what_is_checked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = _checkout(tmp_path)
    monkeypatch.setattr("asv_bench.compare.provenance.ROOT", checkout)
    sources = checkout / "nfuser"
    second, first = _git("log", "--format=%h", folder=checkout).split()
    (sources / "__pycache__").mkdir()
    (sources / "__pycache__" / "a.pyc").write_text("no source")
    assert tree_of(sources) == _git("rev-parse", "HEAD:nfuser", folder=checkout)
    assert commit_of(tree_of(sources)) == second
    (sources / "ir" / "a.py").write_text("one")
    assert commit_of(tree_of(sources)) == first
    (sources / "ir" / "a.py").write_text("three")
    assert provenance()["commit"] == UNKNOWN


def test_what_was_measured_without_git_gets_its_commit_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = _checkout(tmp_path)
    monkeypatch.setattr("asv_bench.compare.provenance.ROOT", checkout)
    (checkout / ".git").rename(tmp_path / "away")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    found = provenance()
    assert found["commit"] == UNKNOWN
    (tmp_path / "away").rename(checkout / ".git")
    known = _git("log", "-1", "--format=%h", folder=checkout)
    assert stamped(found) == found | {"commit": known}
    assert stamped({"commit": "abc1234"}) == {"commit": "abc1234"}
