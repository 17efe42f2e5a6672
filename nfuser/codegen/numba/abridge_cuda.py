# SPDX-License-Identifier: Apache-2.0
"""Rewrite a kernel's tree into an equal one that Numba types in less time.

Literals become typed constants, index arithmetic becomes one primitive, and arrays of
known length become pointers, whose elements primitives take and put. Indices of arrays
are unsigned: they are never negative, but only the type can tell Numba, which otherwise
adds the length to a negative index at every access.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from nfuser.codegen.primitives.cuda.arrays import (
    array_primitive,
    put_element,
    take_element,
)
from nfuser.codegen.primitives.cuda.index import MOST_LEAVES, index_primitive

_TREE: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_DTYPES = frozenset(
    ["float32", "float64"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)


def abridge(function: ast.FunctionDef, namespace: dict[str, Any]) -> None:
    """Rewrite ``function`` in place; put the names it now uses into ``namespace``."""
    abridger = _Abridger(namespace)
    function.body = [abridger.visit(statement) for statement in function.body]
    ast.fix_missing_locations(function)


class _Abridger(ast.NodeTransformer):
    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self.names: dict[Any, str] = {}
        self.pointers: set[str] = set()

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(
                        value=ast.Attribute(attr="local" | "shared" as space),
                        attr="array",
                    ),
                    args=[ast.Constant(value=int(length)), ast.Name(id=dtype)],
                    keywords=[],
                ),
            ) if length:
                self.pointers.add(name)
                key = (space, length, dtype)
                made = self.name(array_primitive(*key), key)
                node.value = ast.Call(made, [], [])
                return node
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=name) as array, slice=place)]
            ) if name in self.pointers:
                value = self.visit(node.value)
                put = self.name(put_element, "put")
                where = ast.Name(array.id, ast.Load())
                call = ast.Call(put, [where, self.place(place), value], [])
                return ast.Expr(call)
            case _:
                self.generic_visit(node)
                return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Name(id=dtype), args=[argument], keywords=[]) if (
                dtype in _DTYPES
            ):
                value = _literal(argument)
                if value is not None and _fits(value, dtype):
                    return self.constant(value, dtype)
                if dtype == "int32" and (index := self.index(argument, dtype)):
                    return index
            case _:
                pass
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.slice = self.place(node.slice)
        is_read = isinstance(node.ctx, ast.Load)  # another is refused, but for =
        array = node.value
        if is_read and isinstance(array, ast.Name) and array.id in self.pointers:
            take = self.name(take_element, "take")
            return ast.Call(take, [node.value, node.slice], [])
        return node

    def place(self, node: ast.expr) -> ast.expr:
        """Return the index of an element, unsigned if it is no literal."""
        if _literal(node) is not None:
            return node
        found = self.index(node, "uint32")
        return found or self.call("x0", "uint32", [self.visit(node)])

    def constant(self, value: float, dtype: str) -> ast.expr:
        made = np.dtype(dtype).type(value)
        return self.name(made, (dtype, made.tobytes()))

    def index(self, node: ast.expr, dtype: str) -> ast.expr | None:
        """Return one call for a tree of integer operators, or None for another."""
        leaves: list[ast.expr] = []
        if not isinstance(node, ast.BinOp) or type(node.op) not in _TREE:
            return None
        text = _text(node, leaves)
        if not 0 < len(leaves) <= MOST_LEAVES:
            return None
        return self.call(text, dtype, [self.visit(leaf) for leaf in leaves])

    def call(self, text: str, dtype: str, arguments: list[ast.expr]) -> ast.expr:
        function = self.name(index_primitive(text, dtype), (text, dtype))
        return ast.Call(function, arguments, [])

    def name(self, value: Any, key: Any) -> ast.expr:
        name = self.names.setdefault(key, f"__abridged_{len(self.names)}")
        self.namespace[name] = value
        return ast.Name(name, ast.Load())


def _text(node: ast.expr, leaves: list[ast.expr]) -> str:
    """Return ``node`` with its leaves numbered and collected."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return str(value)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _TREE:
            symbol = _TREE[type(operator)]
            return f"({_text(left, leaves)} {symbol} {_text(right, leaves)})"
        case _:
            known = [ast.dump(leaf) for leaf in leaves]
            shown = ast.dump(node)
            if shown not in known or not isinstance(node, ast.Name):
                leaves.append(node)
                return f"x{len(leaves) - 1}"
            return f"x{known.index(shown)}"


def _literal(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _literal(operand)
            return None if value is None else -value
        case _:
            return None


def _fits(value: float, dtype: str) -> bool:
    if dtype.startswith("float"):
        return True
    limits = np.iinfo(dtype)
    return isinstance(value, int) and limits.min <= value <= limits.max
