# SPDX-License-Identifier: Apache-2.0
"""Directives that write the reference out of the code and its examples."""

# What is looked at has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from examples import meanings, numpy_families, numpy_names, operations, shown
from operations import arguments_of, families, means
from sphinx.util.docutils import SphinxDirective

import nfuser.config as config
import nfuser.errors as errors
import nfuser.numpy as xp
from nfuser.compiler.trace.numpy.functions import HANDLERS
from nfuser.frontend.definition.refused import OPERATIONS as REFUSED

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

_DEFAULTS = {"<class 'float'>": "float", "<class 'int'>": "int", "<no value>": "None"}


def numpy_page() -> str:
    """Return a table for each family of ``nfuser.numpy``."""
    names = numpy_names()
    parts: list[str] = []
    for family in numpy_families():
        rows = [f"## {family.title}", "", "| name and keywords | example | gives |"]
        rows.append("|---|---|---|")
        for name, example in family.examples.items():
            call = f"`{name}{_keywords(name)}`"
            with np.errstate(all="ignore"):
                result = shown(example, names)
            rows.append(f"| {call} | `{example}` | `{result}` |".replace("\\|", "|"))
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def _keywords(name: str) -> str:
    """Return what a function takes, without the tracer; "" for what is no function."""
    what = HANDLERS.get(name) or getattr(xp, name)
    if not inspect.isfunction(what):
        return ""
    own = inspect.signature(what).parameters.values()
    first = 1 if name in HANDLERS else 0
    kept = [
        p.replace(annotation=p.empty) for p in list(own)[first:] if p.name != "options"
    ]
    if kept and kept[0].kind is inspect.Parameter.VAR_POSITIONAL:
        kept[:1] = _operands(name)
    text = str(inspect.Signature(kept)) if kept else "(...)"
    for long, short in _DEFAULTS.items():
        text = text.replace(long, short)
    return text


def _operands(name: str) -> list[inspect.Parameter]:
    """Return the operands of an elementwise function as NumPy counts them."""
    count = getattr(getattr(np, name, None), "nin", 1)
    names = ["x"] if count == 1 else [f"x{k + 1}" for k in range(count)]
    return [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in names]


def operations_page() -> str:
    """Return a table for each family of ``fd.ops``, and what is refused."""
    known, said = operations(), meanings()
    parts: list[str] = []
    for title, names in families().items():
        rows = [f"## {title}", "", "| operation | does | example |", "|---|---|---|"]
        rows += [
            f"| `{n}{arguments_of(n)}` | {means(n) or said.get(n, '')} | `{known[n]}` |"
            for n in sorted(names)
        ]
        parts.append("\n".join(rows))
    refused = ", ".join(f"`{name}`" for name in sorted(REFUSED))
    parts.append(f"## Refused by name\n\nEach with what to write instead: {refused}.")
    return "\n\n".join(parts)


def errors_page() -> str:
    """Return a table of all error classes."""
    rows = ["| class | is also | raised when |", "|---|---|---|"]
    for name, found in vars(errors).items():
        if inspect.isclass(found) and issubclass(found, errors.NfuserError):
            own = [b.__name__ for b in found.__bases__ if b is not errors.NfuserError]
            text = " ".join((inspect.getdoc(found) or "").split())
            also = ", ".join(f"`{n}`" for n in own)
            rows.append(f"| `nfuser.errors.{name}` | {also} | {_code(text)} |")
    return "\n".join(rows)


def settings_page() -> str:
    """Return a table of the fields of the configuration, in the words of the code."""
    text = inspect.getdoc(config.Config) or ""
    rows = ["| setting of the process | is |", "|---|---|"]
    for name, what in re.findall(r"^``(\w+)``\n((?:    .*\n?)+)", text, re.MULTILINE):
        default = getattr(config.Config(), name)
        rows.append(f"| `{name}` = `{default!r}` | {_code(' '.join(what.split()))} |")
    return "\n".join(rows)


def _code(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


_PAGES: dict[str, Any] = {
    "numpy": numpy_page,
    "operations": operations_page,
    "errors": errors_page,
    "settings": settings_page,
}


class Reference(SphinxDirective):
    """Put the tables named by the argument where the directive stands."""

    required_arguments = 1

    def run(self) -> list[Node]:
        """Return the tables as nodes."""
        text = _PAGES[self.arguments[0]]()
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("reference", Reference)
    return {"parallel_read_safe": True}
