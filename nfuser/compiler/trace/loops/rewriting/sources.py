# SPDX-License-Identifier: Apache-2.0
"""The source of a function that runs, if compiling it gives what runs."""

from __future__ import annotations
import __future__

import ast
import linecache
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.base import node

if TYPE_CHECKING:
    from collections.abc import Iterator

FunctionNode: TypeAlias = "ast.FunctionDef | ast.Lambda"
_FUTURES = sum(
    getattr(__future__, name).compiler_flag for name in __future__.all_feature_names
)
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
_WITHOUT_IMPORTS = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Expr),
    *(ast.Assign, ast.AnnAssign, ast.AugAssign),
)
"""Statements of a module that import nothing into it."""


@node
class FunctionSource:
    """A function as it is written, and the class around it, for its private names."""

    function: FunctionNode
    owner: str


def source_of(code: CodeType) -> FunctionSource | None:
    """Return the source of ``code``; None where it is unknown, or is another one.

    An edited file compiles to something else than what runs, and is not believed.
    """
    text, file = "".join(linecache.getlines(code.co_filename)), code.co_filename
    tree = parsed(text, file)
    if tree is None:
        return None
    flags = code.co_flags & _FUTURES
    at = code.co_firstlineno
    # Most functions are where they were, and nothing else need be compiled.
    here = [k for k, statement in enumerate(tree.body) if _is_at(statement, at)]
    for k in (*here, None):
        for candidate, found in _functions(text, file, flags, k):
            if candidate.co_name == code.co_name and _is_same(candidate, code):
                return found
    return None


@lru_cache(16)
def parsed(text: str, file: str) -> ast.Module | None:
    """Return what a file says; None where that is nothing, or is not Python."""
    try:
        return ast.parse(text, file) if text else None
    except (SyntaxError, ValueError):
        return None


def _is_at(statement: ast.stmt, line: int) -> bool:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    first = min(part.lineno for part in (statement, *decorators))
    return first <= line <= (statement.end_lineno or first)


@lru_cache(256)
def _functions(
    text: str, file: str, flags: int, number: int | None
) -> tuple[tuple[CodeType, FunctionSource], ...]:
    """Return each function of one statement of a file: compiled, and as it is written.

    Those of all statements, if that is None.
    Which names are imported decides how functions are compiled: imports come with it.
    """
    whole = parsed(text, file)
    assert whole is not None
    chosen = whole.body if number is None else [whole.body[number]]
    first = chosen[0] if number is not None else None
    body = [s for s in whole.body if s is first or not isinstance(s, _WITHOUT_IMPORTS)]
    tree = whole if first is None else ast.Module(body, [])
    try:
        made = compile(tree, file, "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return ()
    return tuple(_pairs(ast.Module(chosen, []), made))


def _pairs(
    tree: ast.AST, whole: CodeType, owner: str = ""
) -> Iterator[tuple[CodeType, FunctionSource]]:
    """Pair functions and their code by what is at one place of the file."""
    sources: dict[tuple[int, str], list[FunctionSource]] = {}
    for found, name, within in _written(tree, owner):
        first = found.lineno
        if isinstance(found, ast.FunctionDef) and found.decorator_list:
            first = min(d.lineno for d in found.decorator_list)
        sources.setdefault((first, name), []).append(FunctionSource(found, within))
    for code in _codes(whole):
        listed = sources.get((code.co_firstlineno, code.co_name), [])
        # Of several lambdas in a line, the columns tell.
        for source in listed if len(listed) == 1 else _at_place(code, listed):
            yield code, source


def _at_place(code: CodeType, listed: list[FunctionSource]) -> list[FunctionSource]:
    places = [p for p in code.co_positions() if p[0] and p[2] is not None]
    starts = {(p[0], p[2]) for p in places if p[2]}
    return [s for s in listed if _start(s.function) in starts][:1]


def _start(function: FunctionNode) -> tuple[int, int]:
    body = function.body[0] if isinstance(function.body, list) else function.body
    return body.lineno, body.col_offset


def _written(tree: ast.AST, owner: str) -> Iterator[tuple[FunctionNode, str, str]]:
    for child in ast.iter_child_nodes(tree):
        within = owner
        if isinstance(child, ast.ClassDef):
            within = child.name
        elif isinstance(child, ast.FunctionDef):
            yield child, child.name, owner
        elif isinstance(child, ast.Lambda):
            yield child, "<lambda>", owner
        yield from _written(child, within)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_name not in _COMPREHENSIONS:
                yield inner
            yield from _codes(inner)


def _is_same(one: CodeType, other: CodeType) -> bool:
    """Tell whether two codes do the same; they may stand at other lines."""
    facts = [
        (
            *(c.co_code, c.co_names, c.co_varnames, c.co_freevars, c.co_cellvars),
            *(c.co_argcount, c.co_posonlyargcount, c.co_kwonlyargcount, c.co_flags),
            c.co_exceptiontable,
        )
        for c in (one, other)
    ]
    if facts[0] != facts[1] or len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _is_same(a, b)
        if isinstance(a, CodeType) and isinstance(b, CodeType)
        else type(a) is type(b) and repr(a) == repr(b)
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )
