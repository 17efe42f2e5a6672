# SPDX-License-Identifier: Apache-2.0
"""Functions are found in their files, of which one statement is compiled."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, Any

import pytest

import nfuser.compiler.trace.loops.rewriting.sources as sources
from nfuser.compiler.trace.loops.rewriting.sources import source_of

if TYPE_CHECKING:
    from types import CodeType

TEXT = """\
import math

try:
    import cmath
except ImportError:
    cmath = None

TABLE = [lambda x: math.sin(x), lambda x: cmath.sin(x)]

class Wave:
    @staticmethod
    def at(x):
        return math.sin(x) + TABLE.copy()[0](x)

def outer(x):
    def inner(y):
        return cmath.sin(y) * x.real()
    return inner
"""


@pytest.fixture(name="module")
def _module(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    return _loaded(TEXT, "<written>", monkeypatch)


def _loaded(text: str, file: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, file, (len(text), None, lines, file))
    found: dict[str, Any] = {}
    exec(compile(text, file, "exec"), found)  # noqa: S102 (our own)
    return found


def _codes(module: dict[str, Any]) -> list[CodeType]:
    functions = [*module["TABLE"], module["Wave"].at, module["outer"]]
    return [f.__code__ for f in (*functions, module["outer"](1.0))]


def test_a_function_is_found_whatever_it_calls(module: dict[str, Any]) -> None:
    # How a method of a module is called depends on whether the name was imported.
    for code in _codes(module):
        found = source_of(code)
        assert found is not None, code
        assert found.function.lineno >= code.co_firstlineno
        assert found.owner == ("Wave" if code.co_name == "at" else "")


def test_no_other_function_of_the_file_is_compiled(
    module: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    compiled: Any = compile

    def counted(tree: Any, *given: Any, **options: Any) -> Any:
        seen.append(tree)
        return compiled(tree, *given, **options)

    monkeypatch.setattr(sources, "compile", counted, raising=False)
    sources._functions.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert source_of(module["outer"].__code__) is not None
    (made,) = seen
    assert [type(s).__name__ for s in made.body] == ["Import", "Try", "FunctionDef"]


def test_a_function_that_moved_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = _codes(_loaded(TEXT, "<moved>", monkeypatch))
    _loaded("# new\n" * 9 + TEXT, "<moved>", monkeypatch)
    assert all(source_of(code) is not None for code in codes)
    _loaded(TEXT.replace("sin", "cos"), "<moved>", monkeypatch)
    assert all(source_of(code) is None for code in codes if code.co_name != "outer")
