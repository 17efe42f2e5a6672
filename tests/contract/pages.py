# SPDX-License-Identifier: Apache-2.0
"""Run the interactive examples of a page, in order and in one namespace.

As doctest does, but output may hold blank lines (those at its end do not count), and a
page can be rewritten with what its examples print now: a page that shows the compiler's
texts is a golden file.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = re.compile(r"(?<=^```pycon\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPTS = (">>>", "...")


@dataclass
class Example:
    """Lines after prompts, and the lines that they are to print."""

    code: list[str]
    output: list[str]

    def text(self) -> str:
        """Return the example as it stands in a page."""
        marks = [PROMPTS[min(k, 1)] for k in range(len(self.code))]
        pairs = zip(marks, self.code, strict=True)
        lines = [f"{mark} {line}".rstrip() for mark, line in pairs]
        return "\n".join([*lines, *self.output]) + "\n"


def examples_of(block: str) -> list[Example]:
    """Take the lines of one block apart."""
    found: list[Example] = []
    for line in block.splitlines():
        if line.startswith(">>>"):
            found.append(Example([line[4:]], []))
        elif line.startswith("...") and not found[-1].output:
            found[-1].code.append(line[4:])
        else:
            found[-1].output.append(line)
    return found


def rerun(page: Path) -> str:
    """Return the text of ``page`` with the output that its examples print now."""
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0

    def run_block(match: re.Match[str]) -> str:
        nonlocal number
        texts: list[str] = []
        for example in examples_of(match.group()):
            number += 1
            printed = _run(example, f"{page.stem}_{number}.py", names)
            texts.append(Example(example.code, printed.rstrip().splitlines()).text())
        return "".join(texts)

    return _BLOCK.sub(run_block, page.read_text())


def blocks_of(page: Path) -> list[str]:
    """Return the blocks of Python of a page that are no sessions, in order."""
    return _PYTHON.findall(page.read_text())


def run_python(page: Path, **given: Any) -> dict[str, Any]:
    """Run the blocks of a page that are no sessions, in order; return their names.

    They need libraries that not every environment has, and may need what is ``given``.
    """
    names: dict[str, Any] = {"__name__": "__main__", **given}
    for number, source in enumerate(blocks_of(page)):
        name = f"{page.stem}_block_{number}.py"
        lines = source.splitlines(keepends=True)
        linecache.cache[name] = (len(source), None, lines, name)
        exec(compile(source, name, "exec", dont_inherit=True), names)  # noqa: S102
    return names


def _run(example: Example, name: str, names: dict[str, Any]) -> str:
    source = "\n".join(example.code) + "\n"
    # Errors and traces quote the user's lines, which they find here.
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = compile(source, name, "single", dont_inherit=True)
        exec(code, names)  # noqa: S102 (the page is this repository's)
    return printed.getvalue()
