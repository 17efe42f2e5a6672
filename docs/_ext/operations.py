# SPDX-License-Identifier: Apache-2.0
"""The ``operations`` directive: what ``fd.ops`` has, as the code tells it."""

# The table is made of operations of many forms.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from sphinx.util.docutils import SphinxDirective

from nfuser.frontend.definition_creation import CREATION
from nfuser.frontend.definition_gathers import GATHERS
from nfuser.frontend.definition_moves import MOVES
from nfuser.frontend.definition_ops import BINARY, GENERAL, TABLE, UNARY
from nfuser.frontend.definition_refused import OPERATIONS
from nfuser.frontend.definition_scans import SCANS
from nfuser.frontend.definition_shapes import SHAPES
from nfuser.frontend.definition_types import DataType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from docutils.nodes import Node
    from sphinx.application import Sphinx

_REDUCTIONS = {
    *("all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min"),
    *("prod", "ptp", "std", "sum", "var", "var_mean", "welford"),
}
_NORMS = {"layer_norm", "log_softmax", "logsumexp", "rms_norm", "softmax"}
_AXES = {"expand_dims", "flip", "moveaxis", "swapaxes"}


def operations_page() -> str:
    """Return the lists and tables of all operations, in Markdown."""
    rest = [n for n in GENERAL if n not in {*_REDUCTIONS, *_NORMS, *_AXES, "full_like"}]
    listed = {*UNARY, *BINARY, *SHAPES, *MOVES, *GATHERS, *CREATION, *GENERAL, *SCANS}
    several = [n for n in TABLE if n not in listed | _REDUCTIONS]
    refused = ", ".join(f"`{name}`" for name in sorted(OPERATIONS))
    return "\n\n".join(
        (
            f"**Of one tensor**: {_names(UNARY)}",
            f"**Of two**: {_names(BINARY)}",
            f"**Elementwise, with arguments**\n\n{_rows([*several, *rest])}",
            f"**Reductions and norms**\n\n{_rows([*_REDUCTIONS, *_NORMS])}",
            f"**Scans**\n\n{_rows(SCANS)}",
            f"**Axes and sizes**\n\n{_rows([*SHAPES, *_AXES])}",
            f"**Moves**\n\n{_rows(MOVES)}",
            f"**Indices**\n\n{_rows(GATHERS)}",
            f"**Arrays of numbers**\n\n{_rows([*CREATION, 'full_like'])}",
            f"**Refused by name**: {refused}.",
        )
    )


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) + "."


def _rows(names: Iterable[str]) -> str:
    rows = [
        f"| `{name}{_arguments(name)}` | {_means(name)} |" for name in sorted(names)
    ]
    return "\n".join(("| operation | does |", "|---|---|", *rows))


def _arguments(name: str) -> str:
    """Return the signature without the first argument, types and wide defaults."""
    taken = list(inspect.signature(TABLE[name]).parameters.values())[1:]
    shown: list[str] = []
    for one in taken:
        if one.kind is one.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        if one.default is one.empty:
            shown.append(one.name)
        else:
            null = one.default is DataType.Null
            shown.append(f"{one.name}={'None' if null else repr(one.default)}")
    return f"({', '.join(shown)})"


def _means(name: str) -> str:
    """Return the first sentence of what an operation says of itself."""
    text = inspect.getdoc(TABLE[name]) or ""
    line = " ".join(text.partition("\n\n")[0].split()).rstrip(".")
    return line.replace("``", "`").replace("|", "\\|")


class Operations(SphinxDirective):
    """Put the lists of operations where the directive stands."""

    def run(self) -> list[Node]:
        """Return the lists as nodes."""
        return self.parse_text_to_nodes(operations_page())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("operations", Operations)
    return {"parallel_read_safe": True}
