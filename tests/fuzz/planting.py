# SPDX-License-Identifier: Apache-2.0
"""Write many faults into a copy of the package, each behind a switch of its own.

A fault is a text of one file that another takes the place of. What differs is found in
the trees of both: an expression without effects is computed both ways, and else the
statement that holds it stands there twice.
"""

# Trees have nodes of many kinds.
# pyright: basic

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Fault(NamedTuple):
    """A text of a file of the package, and what it becomes."""

    file: str
    text: str
    becomes: str


_CHANGING = frozenset(  # names of functions that are not called twice
    (
        *(
            "add",
            "append",
            "array",
            "clear",
            "discard",
            "emit",
            "extend",
            "find",
            "fresh",
        ),
        *("insert", "keep", "load", "loop", "named", "_named", "next", "point", "pop"),
        *("popitem", "record", "remember", "remove", "run", "run_one", "send"),
        *("setdefault", "store", "truth", "update", "write"),
    )
)
_OWN = ("primitives/",)  # what Numba compiles, which holds no switches
_PARTS = (ast.GeneratorExp, ast.Lambda, ast.Starred)  # which nobody compares
_Path = tuple[tuple[str, Any], ...]


def plant(package: Path, faults: Mapping[str, Fault]) -> list[str]:
    """Plant faults in a copy of ``nfuser``; return those that need one of their own."""
    apart: list[str] = []
    files: dict[str, list[str]] = {}
    for name, fault in faults.items():
        files.setdefault(fault.file, []).append(name)
    for file, names in files.items():
        if file.startswith(_OWN):
            apart += names
            continue
        source = (package / file).read_text()
        tree = ast.parse(source)
        edits: list[tuple[_Path, Any]] = []
        for name in names:
            found = _planted(tree, ast.parse(changed(source, faults[name])), name)
            if found is None:
                apart.append(name)
            else:
                edits.append(found)
        for path, node in sorted(edits, key=_order, reverse=True):
            _put(tree, path, node)
        at = next(k for k, x in enumerate(tree.body) if not _is_head(x))
        tree.body.insert(
            at, ast.parse("import tests.fuzz.switches as _switches").body[0]
        )
        (package / file).write_text(ast.unparse(ast.fix_missing_locations(tree)) + "\n")
    return apart


def changed(source: str, fault: Fault) -> str:
    """Return a text with a fault in it, which must fit in one place."""
    if source.count(fault.text) != 1:
        message = f"{fault.file} has {source.count(fault.text)} times {fault.text!r}"
        raise ValueError(message)
    return source.replace(fault.text, fault.becomes)


def _is_head(node: ast.stmt) -> bool:
    """Tell what must stand first: the docstring, and what the future has."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _planted(
    tree: ast.Module, other: ast.Module, name: str
) -> tuple[_Path, Any] | None:
    """Return the place where two trees differ, and what stands there for both."""
    path, right, wrong = _told_apart(tree, other)
    old, new = right, wrong
    if not _is_in_function(tree, path):
        return None
    if isinstance(right, ast.expr) and isinstance(wrong, ast.expr):
        if _is_pure(right) and _is_pure(wrong):
            call = _parsed(
                f"_switches.either({name!r}, lambda: 0, lambda: 0, "
                f"as_truth={_is_truth(tree, path)})"
            )
            call.args[1].body, call.args[2].body = copy.deepcopy((right, wrong))
            return path, call
        if not any(map(_binds, (*ast.walk(right), *ast.walk(wrong)))):
            choice = _parsed(f"0 if _switches.is_on({name!r}) else 0")
            choice.body, choice.orelse = copy.deepcopy((wrong, right))
            return path, choice
    if not isinstance(old, list):
        while not isinstance(_at(tree, path), ast.stmt):
            path = path[:-1]
        old, new = [_at(tree, path)], [_at(other, path)]
        if isinstance(old[0], (ast.FunctionDef, ast.ClassDef)):
            return None
        (field, k) = path[-1]
        path = (*path[:-1], (field, slice(k, k + 1)))
    return path, [_statement(old, new, name)]


def _told_apart(tree: ast.Module, other: ast.Module) -> tuple[_Path, Any, Any]:
    """Return the place where two trees differ, as what can be compared, and both ways.

    A choice that one of its ways takes the place of differs where it took the other.
    """
    path, right, wrong = _difference(tree, other, ())
    while isinstance(right, _PARTS) or (
        _is_number(right) and _is_read(_at(tree, path[:-1]))
    ):
        path = path[:-1]
        right, wrong = _at(tree, path), _at(other, path)
    if isinstance(right, ast.IfExp):
        for kept, left in (("body", "orelse"), ("orelse", "body")):
            if _dump(getattr(right, kept)) == _dump(wrong):
                return (*path, (left, None)), getattr(right, left), wrong
    return path, right, wrong


def _is_read(node: Any) -> bool:
    is_stored = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
    return isinstance(node, ast.expr) and not is_stored


def _is_number(node: Any) -> bool:
    return isinstance(
        node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant
    )


def _statement(right: list[ast.stmt], wrong: list[ast.stmt], name: str) -> ast.stmt:
    """Return a statement that does one or the other."""
    for one, other, word in ((right, wrong, "not "), (wrong, right, "")):
        if not other and len(one) == 1 and isinstance(one[0], ast.If):
            made = copy.deepcopy(one[0])
            if not made.orelse:
                switch = _parsed(f"{word}_switches.is_on({name!r})")
                made.test = ast.BoolOp(ast.And(), [made.test, switch])
                return made
    bodies = [copy.deepcopy(x) or [ast.Pass()] for x in (wrong, right)]
    return ast.If(_parsed(f"_switches.is_on({name!r})"), *bodies)


def _parsed(text: str) -> Any:
    return ast.parse(text, mode="eval").body


def _difference(one: Any, other: Any, path: _Path) -> tuple[_Path, Any, Any]:
    """Return the smallest place that differs: nodes, or statements in a row."""
    if type(one) is not type(other):
        return path, one, other
    fields = [f for f in one._fields if _shown(one, f) != _shown(other, f)]
    if len(fields) != 1:
        return path, one, other
    (field,) = fields
    a, b = getattr(one, field), getattr(other, field)
    if isinstance(a, ast.expr) and isinstance(b, ast.expr):
        return _difference(a, b, (*path, (field, None)))
    if not isinstance(a, list):
        return path, one, other
    front = 0
    while front < min(len(a), len(b)) and _dump(a[front]) == _dump(b[front]):
        front += 1
    back = 0
    while back < min(len(a), len(b)) - front and _dump(a[-1 - back]) == _dump(
        b[-1 - back]
    ):
        back += 1
    ends = len(a) - back, len(b) - back
    if ends == (front + 1, front + 1) and isinstance(a[front], (ast.expr, ast.stmt)):
        return _difference(a[front], b[front], (*path, (field, front)))
    if any(isinstance(x, ast.stmt) for x in (*a, *b)):
        span = slice(front, ends[0])
        return (*path, (field, span)), a[span], b[front : ends[1]]
    return path, one, other


def _shown(node: ast.AST, field: str) -> Any:
    found = getattr(node, field, None)
    return list(map(_dump, found)) if isinstance(found, list) else _dump(found)


def _dump(node: Any) -> str:
    return ast.dump(node) if isinstance(node, ast.AST) else repr(node)


def _at(node: Any, path: _Path) -> Any:
    for field, k in path:
        node = getattr(node, field)
        node = node if k is None else node[k]
    return node


def _put(tree: ast.Module, path: _Path, node: Any) -> None:
    around, (field, k) = _at(tree, path[:-1]), path[-1]
    if k is None:
        setattr(around, field, node)
    else:
        getattr(around, field)[k] = node


def _order(edit: tuple[_Path, Any]) -> tuple[Any, ...]:
    """Return a key by which what is deeper, or further on, is put first."""
    places = [(f, k.start if isinstance(k, slice) else k or 0) for f, k in edit[0]]
    return len(places), places


def _binds(node: ast.AST) -> bool:
    return isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await))


def _is_pure(expression: ast.expr) -> bool:
    for node in ast.walk(expression):
        if _binds(node):
            return False
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            if name is None or name in _CHANGING:
                return False
    return True


def _is_truth(tree: ast.Module, path: _Path) -> bool:
    """Tell whether nothing but the truth of an expression is looked at."""
    around, (field, _) = _at(tree, path[:-1]), path[-1]
    if isinstance(around, ast.BoolOp):
        return _is_truth(tree, path[:-1])
    is_test = field == "test" and isinstance(around, (ast.If, ast.IfExp, ast.While))
    is_not = isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not)
    return (
        is_test or is_not or (field == "ifs" and isinstance(around, ast.comprehension))
    )


def _is_in_function(tree: ast.Module, path: _Path) -> bool:
    for k in range(len(path) - 1, 0, -1):
        node = _at(tree, path[:k])
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            return True
        if isinstance(node, ast.ClassDef):
            return False
    return False
