# SPDX-License-Identifier: Apache-2.0
"""The documentation lists what there is."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from nfuser.frontend.definition_ops import TABLE
from nfuser.frontend.definition_refused import OPERATIONS

DOCS = Path(__file__).parents[2] / "docs"


def _page() -> str:
    pytest.importorskip("sphinx")
    path = DOCS / "_ext" / "operations.py"
    spec = importlib.util.spec_from_file_location("operations", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.operations_page()


def test_every_operation_is_listed_once() -> None:
    listed, refused = _page().split("**Refused by name**")
    lines = [line for line in listed.splitlines() if line.startswith("**Of ")]
    names = re.findall(r"`(\w+)`", " ".join(lines))
    names += re.findall(r"^\| `(\w+)\(", listed, re.MULTILINE)
    assert sorted(names) == sorted(TABLE)
    assert re.findall(r"`(\w+)`", refused) == sorted(OPERATIONS)


def test_every_row_says_what_its_operation_does() -> None:
    rows = re.findall(r"^\| `.*", _page(), re.MULTILINE)
    assert len(rows) > 60
    for row in rows:
        cells = re.split(r"(?<!\\)\|", row)
        assert len(cells) == 4, row
        assert len(cells[2].strip()) > 10, row


def test_the_page_shows_the_list() -> None:
    assert "```{operations}\n```" in (DOCS / "fusion_definition.md").read_text()
