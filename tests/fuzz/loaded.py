# SPDX-License-Identifier: Apache-2.0
"""Run the text of a program as a file that tracebacks and traces find the lines of."""

from __future__ import annotations

import linecache
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def loaded(text: str, file: str, **names: Any) -> Generator[dict[str, Any]]:
    """Give the names that ``text`` defines, beside ``names``."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"__name__": "program", **names}
    exec(compile(text, file, "exec"), space)  # noqa: S102 (programs are text)
    try:
        yield space
    finally:
        del linecache.cache[file]
