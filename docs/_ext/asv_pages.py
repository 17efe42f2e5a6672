# SPDX-License-Identifier: Apache-2.0
"""The ``asv-pages`` directive: what ``asv publish`` makes, as a part of the site.

It is made where asv is installed and the documentation is built in a checkout. Its
pages load their scripts from the network, which no other page of the site does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "asv_bench"
FOLDER = "asv"
_log = logging.getLogger(__name__)


@cache
def can_publish() -> bool:
    """Tell whether there is what asv needs: itself, and commits that have results."""
    if find_spec("asv") is None or which("git") is None:
        return False
    listed = [json.loads(p.read_text()) for p in BENCH.glob("results/*/*-*.json")]
    commits = {f"{found['commit_hash']}^{{commit}}" for found in listed}
    asked = ["git", "cat-file", "-e"]
    return bool(commits) and all(
        subprocess.run([*asked, c], cwd=ROOT, capture_output=True).returncode == 0
        for c in commits
    )


class AsvPages(SphinxDirective):
    """Link the pages, where they are made."""

    def run(self) -> list[Node]:
        """Return a paragraph with the link, or nothing."""
        if not can_publish():
            return []
        link = f'<a href="{FOLDER}/index.html">Times of each benchmark by commit</a>'
        told = "made by <code>asv publish</code> (its scripts come from the network)"
        return [nodes.raw("", f"<p>{link}, {told}.</p>", format="html")]


def publish(app: Sphinx, failed: Exception | None) -> None:
    """Let asv make its pages beside the others."""
    if failed or app.builder.name != "html" or not can_publish():
        return
    command = [sys.executable, "-m", "asv", "publish", "--html-dir"]
    done = subprocess.run(
        [*command, str(app.outdir / FOLDER)],
        cwd=BENCH,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        _log.warning("asv publish failed: %s", done.stdout + done.stderr)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and what makes the pages at the end."""
    app.add_directive("asv-pages", AsvPages)
    app.connect("build-finished", publish)
    return {"parallel_read_safe": True}
