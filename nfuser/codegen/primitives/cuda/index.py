# SPDX-License-Identifier: Apache-2.0
"""Index arithmetic as one primitive an expression.

Numba spends about a millisecond of type inference on every infix operator, and an
index has several. Its 64-bit arithmetic, cut to 32 bits, is 32-bit arithmetic.
"""

# llvmlite ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any

from llvmlite import ir

from nfuser.codegen.primitives.cuda.define import (
    I32,
    INTEGER,
    SIGNED,
    Site,
    Value,
    primitive,
    types,
)

MOST_LEAVES = 8
_METHODS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
}


@lru_cache(1024)
def index_primitive(text: str, dtype: str) -> Any:
    """Return the primitive that computes ``text`` over ``x0, x1, ...`` in 32 bits."""
    tree = ast.parse(text, mode="eval").body
    leaves = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    result = getattr(types, dtype)

    def rule(*arguments: Any) -> Any:
        fits = all(argument in INTEGER for argument in arguments)
        return result(*arguments) if fits else None

    def emit(site: Site, *values: Value) -> Value:
        words = [_word(site, value, k) for k, value in enumerate(values)]
        return _evaluate(site, tree, words)

    return primitive(f"index_{dtype}", rule, emit, arity=len(leaves))


def _word(site: Site, value: Value, position: int) -> Value:
    if value.type.width > 32:
        return site.builder.trunc(value, I32)
    if value.type.width == 32:
        return value
    signed = site.argument(position) in SIGNED
    return (site.builder.sext if signed else site.builder.zext)(value, I32)


def _evaluate(site: Site, node: ast.expr, words: list[Value]) -> Value:
    match node:
        case ast.Name(id=name):
            return words[int(name[1:])]
        case ast.Constant(value=int(value)):
            return ir.Constant(I32, value & 0xFFFFFFFF)
        case ast.BinOp(left=left, op=operator, right=right):
            method = getattr(site.builder, _METHODS[type(operator)])
            return method(_evaluate(site, left, words), _evaluate(site, right, words))
        case _:
            raise AssertionError(ast.unparse(node))
