# SPDX-License-Identifier: Apache-2.0
"""The ``promotion`` directive: the table that nfuser itself promotes by."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sphinx.util.docutils import SphinxDirective

from nfuser.compiler.dtypes import DType, promote

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

WEAK = (bool, int, float, complex)


def table(columns: str) -> str:
    """Return a Markdown table; ``columns`` is ``dtypes`` or ``weak``."""
    across = list(DType) if columns == "dtypes" else list(WEAK)
    names = [x.value if isinstance(x, DType) else x.__name__ for x in across]
    lines = [["", *names], ["---"] * (len(across) + 1)]
    for left in DType:
        found = (promote(left, right).value for right in across)
        lines.append([f"**{left.value}**", *found])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


class Promotion(SphinxDirective):
    """Put the table named by the argument where the directive stands."""

    required_arguments: ClassVar[int] = 1

    def run(self) -> list[Node]:
        """Return the table as nodes."""
        return self.parse_text_to_nodes(table(self.arguments[0]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("promotion", Promotion)
    return {"parallel_read_safe": True}
