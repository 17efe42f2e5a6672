# SPDX-License-Identifier: Apache-2.0
"""Pages are looked at in a browser, and what a browser would hide is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from asv_bench.compare import chart
from tests import site

if TYPE_CHECKING:
    from pathlib import Path

GOOD = "<!doctype html><meta name=viewport content='width=device-width'><p>text"


def test_pages_with_faults_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("websocket")
    if site.find_chromium() is None:
        pytest.skip("no Chromium here")
    pages = {
        "good": GOOD,
        "image": f"{GOOD}<img src=nowhere.png>",
        "script": f"{GOOD}<script>undefined_name()</script>",
        "told": f"{GOOD}<script>console.error('oh')</script>",
        "wide": f"{GOOD}<div style='width: 900px'>text</div>",
        "cut": f"{GOOD}<div style='overflow: hidden'><p style='width: 500px'>x</div>",
        "scrolls": f"{GOOD}<div style='overflow: auto'><p style='width: 500px'>x</div>",
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.html").write_text(text)
    assert site.main(tmp_path) == 1
    lines = capsys.readouterr().out.splitlines()
    assert {line.partition(".")[0] for line in lines[:-1]} == {*pages} - {
        "good",
        "scrolls",
    }
    assert any("pixels wide" in line for line in lines)
    assert 'cut.html: cut off at the right: p "x"' in lines


def test_links_that_lead_nowhere_are_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(site, "NAMES", ("no-such-browser",))
    links = {
        "a.html": ("b.html#there", "#here", "file%20one.json", "https://x.invalid/y"),
        "b.html": ("a.html#gone", "nowhere.html", "#there"),
    }
    for name, found in links.items():
        text = "".join(f"<a href='{link}'>x</a>" for link in found)
        (tmp_path / name).write_text(f"{GOOD}<h2 id=there><a name=here>{text}")
    (tmp_path / "file one.json").write_text("{}")
    assert site.main(tmp_path) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "nowhere" in line] == [
        "b.html: the link a.html#gone leads nowhere",
        "b.html: the link nowhere.html leads nowhere",
    ]


def test_without_a_browser_that_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(site, "NAMES", ("no-such-browser",))
    assert site.main(tmp_path) == 0
    assert capsys.readouterr().out.startswith("not looked at: no Chromium")


def test_the_picture_of_the_landing_page_is_drawn_from_what_was_measured() -> None:
    found = json.loads(chart.FOUND.read_text())
    assert chart.PICTURE.read_text() == chart.chart(found)
    page = (chart.ROOT / "docs" / "index.md").read_text()
    assert found["date"] in page
    assert found["commit"] in page
