# SPDX-License-Identifier: Apache-2.0
"""The expressions of a function that is written anew: calls to what runs the trace."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.loops.rewriting.jumps import PREFIX

if TYPE_CHECKING:
    from nfuser.compiler.trace.loops.rewriting.live import Names

RUNTIME = "_nf"


def outside_of(function: ast.FunctionDef | ast.Lambda) -> Names:
    """Return the names that are read in ``function`` and bound outside of it."""
    a = function.args
    own = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
    own |= {x.arg for x in (a.vararg, a.kwarg) if x is not None}
    nodes = (n for n in ast.walk(function) if isinstance(n, ast.Name))
    read: set[str] = set()
    for node in nodes:
        (read if isinstance(node.ctx, ast.Load) else own).add(node.id)
    names = (n for n in read if not (n.startswith(PREFIX) or n == RUNTIME))
    return frozenset(names) - own


class Expressions(ast.NodeTransformer):
    """Writes calls, choices and truth values so that they may be unknown.

    Names ``outside`` of the function, attributes and items may hold arrays that are
    assigned to.
    """

    def __init__(self, outside: Names) -> None:
        self._outside = outside

    def own_of(self, stmt: ast.stmt) -> ast.stmt:
        """Return a statement whose own expressions are written anew."""
        for name, value in ast.iter_fields(stmt):
            if isinstance(value, ast.expr):
                setattr(stmt, name, self.visit(value))
            elif isinstance(value, list):
                self._all_of(stmt, name)
            elif isinstance(stmt, ast.With) and name == "items":
                for item in stmt.items:
                    item.context_expr = self.visit(item.context_expr)
        return stmt

    def _all_of(self, stmt: ast.stmt, name: str) -> None:
        listed: list[Any] = getattr(stmt, name)
        if listed and isinstance(listed[0], ast.expr):
            setattr(stmt, name, [self.visit(v) for v in listed])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return a call of what the function is when it is traced."""
        called = node.func
        self.generic_visit(node)
        if isinstance(called, ast.Name):
            node.func = called
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node
        for option in node.keywords:
            if option.arg == "out":
                option.value = runtime("written", option.value)
        node.func = ast.copy_location(runtime("call", node.func), node.func)
        return ast.fix_missing_locations(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return a part; one that is written says so before."""
        self.generic_visit(node)
        is_read = isinstance(node.ctx, ast.Load)
        what = "indexed" if is_read else "written"
        if is_read or isinstance(node.ctx, ast.Store):
            node.value = ast.copy_location(runtime(what, node.value), node.value)
        return self._held(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Return an attribute, or what stands for it."""
        self.generic_visit(node)
        return self._held(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return a name, or what stands for what it holds."""
        return self._held(node) if node.id in self._outside else node

    def _held(self, node: ast.Subscript | ast.Attribute | ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load):
            return self._at(node, runtime("held", node))
        return ast.fix_missing_locations(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Return a choice between two values."""
        node.test = self.truth(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        if _binds(node):
            return node
        sides = [_later(x) for x in (node.body, node.orelse)]
        return self._at(node, runtime("pick", node.test, *sides))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Return ``and`` and ``or``, which give one of their values."""
        self.generic_visit(node)
        return self._joined(node, "last" if _is_and(node) else "first")

    def truth(self, node: ast.expr) -> ast.expr:
        """Return an expression of which the truth is asked, and no more."""
        if not isinstance(node, ast.BoolOp):
            return self.visit(node)
        node.values = [self.truth(x) for x in node.values]
        return self._joined(node, "both" if _is_and(node) else "either")

    def _joined(self, node: ast.BoolOp, what: str) -> ast.expr:
        if _binds(node):
            return node
        first, *others = node.values
        for other in others:
            first = self._at(node, runtime(what, first, _later(other)))
        return first

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Return ``not``."""
        if not isinstance(node.op, ast.Not):
            return self.generic_visit(node)
        return self._at(node, runtime("not_", self.truth(node.operand)))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Return a comparison; a chain is one of several."""
        self.generic_visit(node)
        if len(node.ops) == 1 or _binds(node):
            return node
        names: list[ast.expr] = [ast.Constant(type(op).__name__) for op in node.ops]
        later = [_later(x) for x in node.comparators]
        chain = runtime("chain", ast.Tuple(names, ast.Load()), node.left, *later)
        return self._at(node, chain)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave inner functions, which are written by themselves."""
        return node

    def _at(self, node: ast.expr, made: ast.expr) -> ast.expr:
        return ast.fix_missing_locations(ast.copy_location(made, node))


def _is_and(node: ast.BoolOp) -> bool:
    return isinstance(node.op, ast.And)


def _binds(node: ast.AST) -> bool:
    return any(isinstance(n, ast.NamedExpr) for n in ast.walk(node))


def _later(value: ast.expr) -> ast.expr:
    none = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(none, value), value)


def runtime(what: str, *given: ast.expr) -> ast.expr:
    """Return a call of a method of ``Plain``, in ``loops/python/plain.py``."""
    function = ast.Attribute(ast.Name(RUNTIME, ast.Load()), what, ast.Load())
    return ast.Call(function, list(given), [])


def names_as_tuple(names: Names) -> ast.expr:
    """Return ``names`` as a tuple of strings."""
    return ast.Tuple([ast.Constant(n) for n in sorted(names)], ast.Load())


def range_of(turns: ast.expr) -> ast.expr:
    """Return what a loop runs over; a range of it may be of unknown length."""
    if not isinstance(turns, ast.Call):
        return turns
    function = turns.func
    if not isinstance(function, ast.Call) or len(function.args) != 1:
        return turns
    named = function.args[0]
    name = named.id if isinstance(named, ast.Name) else ""
    takes_words = name in ("zip", "enumerate")
    if not takes_words and (name not in ("range", "reversed") or turns.keywords):
        return turns
    if name != "range":
        turns.args = [range_of(x) for x in turns.args]
    function.func = ast.copy_location(
        ast.Attribute(ast.Name(RUNTIME, ast.Load()), "ranging", ast.Load()), function
    )
    return ast.fix_missing_locations(turns)
