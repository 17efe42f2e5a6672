# SPDX-License-Identifier: Apache-2.0
"""The documentation lists what there is."""

from __future__ import annotations

import re

from nfuser.frontend.definition.operations.ops import TABLE
from nfuser.frontend.definition.refused import OPERATIONS
from tests.contract.reference import DOCS, extension


def _page() -> str:
    return extension("reference").operations_page()


def test_every_operation_is_listed_once() -> None:
    listed, refused = _page().split("## Refused by name")
    names = re.findall(r"^\| `(\w+)\(", listed, re.MULTILINE)
    assert sorted(names) == sorted(TABLE)
    assert re.findall(r"`(\w+)`", refused) == sorted(OPERATIONS)


def test_every_row_says_what_its_operation_does() -> None:
    rows = re.findall(r"^\| `.*", _page(), re.MULTILINE)
    assert len(rows) == len(TABLE)
    for row in rows:
        cells = re.split(r"(?<!\\)\|", row)
        assert len(cells) == 5, row
        assert len(cells[2].strip()) > 10, row
        assert "fd.ops." in cells[3], row


def test_the_page_leads_to_the_list() -> None:
    text = (DOCS / "fusion_definition.md").read_text()
    assert "(reference/operations.md)" in text
    page = (DOCS / "reference" / "operations.md").read_text()
    assert "```{reference} operations\n```" in page
