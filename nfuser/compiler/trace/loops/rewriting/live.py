# SPDX-License-Identifier: Apache-2.0
"""Which variables are read later: what a loop has to carry on."""

from __future__ import annotations

import ast
from typing import TypeAlias

Names: TypeAlias = "frozenset[str]"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def stored(nodes: list[ast.stmt]) -> Names:
    """Return the variables that statements bind, inner functions left out."""
    found: set[str] = set()
    stack: list[ast.AST] = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            found.add(node.name)
            continue
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, _COMPREHENSIONS):
            # Their variables are their own; those of ``:=`` are not.
            walrus = (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            found |= {n.target.id for n in walrus}
            continue
        elif isinstance(node, ast.Lambda):
            continue
        stack += ast.iter_child_nodes(node)
    return frozenset(found)


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def captured(nodes: list[ast.stmt]) -> Names:
    """Return the names that inner functions read, at a time that is not known."""
    found: set[str] = set()
    for stmt in nodes:
        for node in ast.walk(stmt):
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                found |= loads(node)
    return frozenset(found)


def loads(node: ast.AST | None) -> Names:
    """Return all names that ``node`` reads."""
    if node is None:
        return frozenset()
    return frozenset(
        n.id
        for n in ast.walk(node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    )


def before(stmts: list[ast.stmt], after: Names) -> Names:
    """Return what is read before ``stmts`` bind it, where ``after`` is read later."""
    for stmt in reversed(stmts):
        after = _before_one(stmt, after)
    return after


def at_head(loop: ast.For | ast.While, after: Names) -> Names:
    """Return what is read in an iteration of a loop, or after its last one."""
    found = after
    for _ in range(2):
        if isinstance(loop, ast.While):
            found |= loads(loop.test) | before(loop.body, found)
        else:
            found |= before(loop.body, found) - _bound(loop.target)
    return found


def _before_one(stmt: ast.stmt, after: Names) -> Names:
    match stmt:
        case ast.If():
            return (
                loads(stmt.test) | before(stmt.body, after) | before(stmt.orelse, after)
            )
        case ast.For() | ast.While():
            found = at_head(stmt, after)
            return found | loads(stmt.iter) if isinstance(stmt, ast.For) else found
        case ast.Return():
            return loads(stmt.value)
        case ast.Assign():
            bound = frozenset[str]().union(*(_bound(t) for t in stmt.targets))
            return (after - bound) | loads(stmt)
        case ast.AugAssign():
            target = stmt.target
            own = {target.id} if isinstance(target, ast.Name) else set[str]()
            return after | loads(stmt) | own
        case ast.FunctionDef():
            return (after - {stmt.name}) | loads(stmt)
        case _:
            return after | loads(stmt)


def _bound(target: ast.expr) -> Names:
    """Return the names that an assignment to ``target`` binds for sure."""
    if isinstance(target, ast.Name):
        return frozenset({target.id})
    if isinstance(target, (ast.Tuple, ast.List)):
        return frozenset[str]().union(*(_bound(t) for t in target.elts))
    return _bound(target.value) if isinstance(target, ast.Starred) else frozenset()
