# SPDX-License-Identifier: Apache-2.0
"""Turn the text of a module into its function, without running the decorator."""

from __future__ import annotations

import ast
import hashlib
import linecache
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Rewrite: TypeAlias = "Callable[[ast.FunctionDef, dict[str, Any]], None]"


def load_function(
    text: str, entry: str, rewrite: Rewrite | None = None
) -> tuple[Any, dict[str, Any]]:
    """Return the function ``entry`` without its decorator, and that one's keywords.

    As long as the function lives, its text is known to ``linecache``, so tracebacks and
    ``inspect`` show it.
    ``rewrite`` may change the function's syntax tree first, and add to its globals.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    filename = f"<nfuser {entry} {digest}>"
    tree = ast.parse(text, filename)
    keywords: dict[str, Any] = {}
    namespace: dict[str, Any] = {"__name__": f"nfuser_generated_{digest}"}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == entry:
            keywords = _decorator_keywords(statement)
            statement.decorator_list = []
            if rewrite is not None:
                rewrite(statement, namespace)
    # Numba's disk cache, which needs a real file, is not used: nfuser keeps cubins.
    exec(compile(tree, filename, "exec"), namespace)
    _show_lines(namespace[entry], filename, text)
    return namespace[entry], keywords


def _show_lines(function: Any, filename: str, text: str) -> None:
    lines = text.splitlines(keepends=True)
    shown = len(text), None, lines, filename
    linecache.cache[filename] = shown
    weakref.finalize(function, _hide_lines, filename, shown).atexit = False


def _hide_lines(filename: str, shown: tuple[object, ...]) -> None:
    if linecache.cache.get(filename) is shown:  # or else it is of one loaded since
        del linecache.cache[filename]


def _decorator_keywords(function: ast.FunctionDef) -> dict[str, Any]:
    return {
        keyword.arg: ast.literal_eval(keyword.value)
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
        if keyword.arg is not None
    }
