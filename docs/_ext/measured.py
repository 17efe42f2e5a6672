# SPDX-License-Identifier: Apache-2.0
"""The ``measured`` directive: a chart of committed results, with its numbers folded.

The role ``figure`` is one number of them, in a sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.addnodes import download_reference
from sphinx.util.docutils import SphinxDirective

from asv_bench.charts.draw import curves, dots
from asv_bench.charts.measured import RESULTS, load
from asv_bench.charts.tables import AHEAD, behind, figure, summary, table

if TYPE_CHECKING:
    from docutils.nodes import Node, system_message
    from docutils.parsers.rst.states import Inliner
    from sphinx.application import Sphinx

    from asv_bench.charts.measured import Measured


class MeasuredDirective(SphinxDirective):
    """Draw ``NAME`` (of a file) as ``VIEW``; below it stand its origin and its numbers.

    ``columns`` are names with semicolons between them; ``across`` names the axis of
    curves; ``log`` makes the scale logarithmic; ``open`` shows the numbers unfolded.
    """

    required_arguments: ClassVar[int] = 1
    optional_arguments: ClassVar[int] = 1
    has_content: ClassVar[bool] = True
    option_spec = {
        "columns": directives.unchanged,
        "across": directives.unchanged,
        "log": directives.flag,
        "no-chart": directives.flag,
        "open": directives.flag,
    }

    def run(self) -> list[Node]:
        """Return the chart, a line, and the folded table."""
        name, view = (*self.arguments, "values")[:2]
        file = RESULTS / f"{name}.json"
        self.env.note_dependency(str(file))
        measured = load(name, view)
        if "columns" in self.options:
            wanted = [c.strip() for c in self.options["columns"].split(";")]
            measured = measured.chosen(wanted)
        chart: list[Node] = []
        if "no-chart" not in self.options:
            drawn = f'<div class="nf-chart">{self._drawn(measured)}</div>'
            chart.append(nodes.raw("", drawn, format="html"))
        told = self.parse_text_to_nodes(_told(measured, name))
        since = (
            self.parse_text_to_nodes("\n".join(self.content)) if self.content else []
        )
        numbers = table(measured) if "open" in self.options else _folded(measured)
        rows = self.parse_text_to_nodes(numbers)
        caption = nodes.container("", *told, *since, classes=["nf-origin"])
        return (
            [*chart, *rows, caption]
            if "open" in self.options
            else [*chart, caption, *rows]
        )

    def _drawn(self, measured: Measured) -> str:
        is_log = "log" in self.options
        if "across" in self.options:
            return curves(measured, self.options["across"], is_log=is_log)
        return dots(measured, is_log=is_log)


class BehindDirective(SphinxDirective):
    """List the rows in which another is ahead: each line is ``NAME VIEW`` of a file."""

    has_content: ClassVar[bool] = True

    def run(self) -> list[Node]:
        """Return the table, folded."""
        names: list[tuple[str, str]] = []
        for line in filter(None, self.content):
            name, view = line.split()
            names.append((name, view))
            self.env.note_dependency(str(RESULTS / f"{name}.json"))
        head = f":::::{{dropdown}} Where another is ahead by more than {AHEAD - 1:.0%}"
        return self.parse_text_to_nodes(f"{head}\n{behind(names)}\n:::::")


def _told(measured: Measured, name: str) -> str:
    link = f"{{download}}`{name}.json <{_file(name)}>`"
    parts = (summary(measured), f"Measured {measured.told}", link)
    return " ".join(filter(None, parts))


def _file(name: str) -> str:
    return f"/../asv_bench/compare/results/{name}.json"


def _folded(measured: Measured) -> str:
    return f":::::{{dropdown}} The numbers\n{table(measured)}\n:::::"


def figure_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Inliner, *_: object
) -> tuple[list[Node], list[system_message]]:
    """Return one number of a file, with a link to it that says how it was measured."""
    env = inliner.document.settings.env
    name = text.split()[0]
    env.note_dependency(str(RESULTS / f"{name}.json"))
    told = f"{name}.json, measured {load(name).told}"
    number = nodes.abbreviation(text, figure(text), explanation=told)
    link = download_reference(rawtext, "", number, reftarget=_file(name))
    return [link], []


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives and the role."""
    app.add_directive("measured", MeasuredDirective)
    app.add_directive("behind", BehindDirective)
    app.add_role("figure", figure_role)
    return {"parallel_read_safe": True}
