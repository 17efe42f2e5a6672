# SPDX-License-Identifier: Apache-2.0
"""No sentence says what was measured, but by a file of results."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest

import nfuser
from tests.contract.measured_words import (
    DOCS,
    FIGURE,
    IN_README,
    NO_MEASUREMENT,
    PAGES,
    ROOT,
    prose,
    unfounded,
)

if TYPE_CHECKING:
    from pathlib import Path

ADVICE = "draw it with {measured}, say it with {figure}, or leave it out"
MEASURED = (
    "It takes 5.0 µs.",
    "It took 3 ms, and no more.",
    "Calls take tens of microseconds.",
    "It needs half a second.",
    "CI takes a quarter of an hour.",
    "It is 1.5 times as fast.",
    "It is three times as slow, or slower.",
    "It takes 2.42 times nfuser's time.",
    "torch.compile takes 1.18 times the time.",
    "This is 12 % faster.",
    "The sine of a sine costs a third of one of the first.",
    "It reaches 0.93 of a copy.",
    "It ran 3.5x as fast.",
    "A worker loads some 30 MB of code.",
    "The chain took 128 MiB beside that.",
    "It moves 3.1 TB/s.",
    "It moves 600 MB per second.",
    "It starts in ten ms.",
    "It is 1.4 times as fast, or faster.",
    "It takes 1.43 times what eager code takes.",
    "It is a fifth faster.",
    "It reaches 84 % of the bandwidth.",
    "It reaches 84 % of a copy's bandwidth.",
    "It ran at 0.44 to 0.6 of NumPy's speed.",
    "Rows run at 1.03, columns less.",
    "It is at 0.95 against 0.94.",
    "The gap is 1.3 %.",
    "Static extents are ahead by 3 %.",
    "A hint gained 0.7 %.",
    "That is 5x faster.",
    "That is a speedup of 5.",
)
NOTHING_MEASURED = (
    "A group of 3 kernels reads 40.0 MB and writes 12 kB.",
    "It goes over the array three times.",
    "It takes {figure}`h200/odd share nfuser` times as long.",
    "The third argument is a number; half of a row changes places.",
    "NumPy 2.4 and Python 3.11, in 16 lanes.",
    "A table of {figure}`h200/odd share nfuser` of a copy's bandwidth, in 8 MB.",
    "146 MB are read, of which 138 must be, by 85 instructions instead of 152.",
)
TABLE = """| workload | share |
|---|---|
| a + b f32 4096 | 1.02 |
| sums of 12 | {figure}`h200/in_a_row share nfuser; sum rows` | 12.5 MB |
"""
_ROW_OF_DECIMALS = re.compile(r"^\|.*\| *\d+\.\d+ *\|.*$", re.MULTILINE)


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_what_a_page_says_of_time_comes_from_a_file(page: Path) -> None:
    assert unfounded(prose(page)) == [], ADVICE


def _rows_of_decimals(page: Path) -> list[str]:
    return _ROW_OF_DECIMALS.findall(FIGURE.sub("", prose(page)))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_table_of_measurements_comes_from_a_file(page: Path) -> None:
    rows = _rows_of_decimals(page)
    if page.name == "README.md":  # is read without Sphinx; held against the files
        rows = [r for r in rows if not r.removeprefix("| ").startswith((*IN_README,))]
    assert rows == [], ADVICE


def test_a_table_of_measurements_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(TABLE)
    assert _rows_of_decimals(page) == ["| a + b f32 4096 | 1.02 |"]


@pytest.mark.parametrize("name", sorted(nfuser.__all__))
def test_what_the_reference_says_of_time_comes_from_a_file(name: str) -> None:
    found: Any = getattr(nfuser, name)
    told = [inspect.getdoc(thing) or "" for thing in (found, *_members(found))]
    assert unfounded("\n\n".join(told)) == [], ADVICE


def _members(found: Any) -> list[Any]:
    """Return the public members of a class or a module."""
    if not (inspect.isclass(found) or inspect.ismodule(found)):
        return []
    members: dict[str, Any] = dict(vars(found))
    return [member for name, member in members.items() if not name.startswith("_")]


@pytest.mark.parametrize("text", MEASURED)
def test_a_measurement_would_be_seen(text: str, tmp_path: Path) -> None:
    assert len(unfounded(text)) >= 1
    page, script = tmp_path / "page.md", tmp_path / "page.py"
    page.write_text(f"# Title\n\n```\n3 ms\n```\n\nSo it is.\n{text}\n")
    script.write_text(f'"""Title."""\nx = "5 ms"\n# %%\n# {text}\n')
    figure = tmp_path / "figure.md"
    figure.write_text(
        f"```{{figure}} x.svg\n:alt: A\n\n{text}\n```\n\n```\n3 ms\n```\n"
    )
    for planted in (page, script, figure):
        assert len(unfounded(prose(planted))) == len(unfounded(text))


@pytest.mark.parametrize("text", NOTHING_MEASURED)
def test_what_is_counted_is_no_measurement(text: str) -> None:
    assert unfounded(text) == []


def test_every_page_is_read() -> None:
    names = {_name(page) for page in PAGES}
    assert {
        "README.md",
        "docs/index.md",
        "docs/howto/deploy.md",
        "docs/coming_from/jax.md",
        "docs/stages/device.md",
        "docs/reference/fuse.md",
        "docs/gallery/plot_3_heat.py",
        "docs/gallery/GALLERY_HEADER.rst",
        "docs/decisions/0067-what-was-measured-on-the-way.md",
        "docs/changelog.md",
    } < names


def test_a_decision_has_a_number_of_its_own_and_a_day() -> None:
    records = sorted((DOCS / "decisions").glob("0*.md"))
    assert records
    heads = [page.read_text().split("\n", 3)[:3] for page in records]
    day = re.compile(r"\*20\d\d-\d\d-\d\d\*")
    pairs = [*zip(records, heads, strict=True)]
    undated = [page.name for page, head in pairs if not day.fullmatch(head[2])]
    assert undated == [], "write the day below the title: *2026-11-26*"
    numbers = [int(page.name[:4]) for page in records]
    assert [int(head[0][2:].partition(".")[0]) for head in heads] == numbers
    assert [*dict.fromkeys(numbers)] == numbers, "take the next free number"


def test_what_is_let_through_is_still_there() -> None:
    texts = [" ".join(prose(page).split()) for page in PAGES]
    gone = [p for p in NO_MEASUREMENT if not any(p in text for text in texts)]
    assert gone == []
