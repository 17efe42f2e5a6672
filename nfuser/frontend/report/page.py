# SPDX-License-Identifier: Apache-2.0
"""The page of a report: one file of HTML, with all that it needs inside."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def page(title: str, shown: Mapping[str, Any]) -> str:
    """Return the page that shows ``shown``, whose script lays its graph out."""
    # A text of the user's that closes an element would end the script.
    held = json.dumps(shown, ensure_ascii=False).replace("<", "\\u003c")
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        style=_asset("page.css"),
        licence=_asset("dagre.LICENSE").strip(),
        layout=_asset("dagre.min.js"),
        script=_asset("page.js"),
        shown=held,
    )


def _asset(name: str) -> str:
    folder = files("nfuser.frontend.report") / "assets"
    return (folder / name).read_text(encoding="utf-8")
