# SPDX-License-Identifier: Apache-2.0
"""The page about definitions lists what there is."""

from __future__ import annotations

import re
from pathlib import Path

from nfuser.frontend.definition_ops import TABLE

PAGE = Path(__file__).parents[2] / "docs" / "fusion_definition.md"


def _listed() -> list[str]:
    """Return the names in the lists of operations."""
    section = PAGE.read_text().split("\n## Operations\n")[1].split("\n## ")[0]
    lists = re.findall(r"^- \*\*.*\n(?:  .*\n)*", section, re.MULTILINE)
    return re.findall(r"`(\w+)`", " ".join(lists))


def test_every_operation_is_on_the_page() -> None:
    assert set(_listed()) == set(TABLE)
