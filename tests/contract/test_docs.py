# SPDX-License-Identifier: Apache-2.0
"""The documentation keeps up with the folders and settings it describes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GROUPS = ("base", "compiler", "compiler/transforms", "execution")  # of rooms
ROOMS = sorted(
    folder.name
    for group in ("", *GROUPS)
    for folder in (ROOT / "nfuser" / group).iterdir()
    if (folder / "__init__.py").exists()
    and folder.relative_to(ROOT / "nfuser").as_posix() not in GROUPS
)
PAGES = sorted((ROOT / "docs" / "stages").glob("*.md"))
GROUND_FLOOR = {"debug"}  # errors, config and debug share a row and need no page


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_a_row_and_a_page(room: str) -> None:
    layout = (ROOT / "docs" / "layout.md").read_text()
    assert f"`{room}`" in layout
    page = ROOT / "docs" / "stages" / f"{room}.md"
    assert room in GROUND_FLOOR or page.exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_stage_page_describes_a_room(page: Path) -> None:
    assert page.stem == "index" or page.stem in ROOMS


def test_every_setting_is_documented() -> None:
    source = (ROOT / "nfuser" / "config.py").read_text()
    settings = set(re.findall(r'"(NFUSER_[A-Z_]+)"', source))
    page = (ROOT / "docs" / "debugging.md").read_text()
    assert len(settings) >= 6
    assert {name for name in settings if not re.search(rf"`{name}\b", page)} == set()
