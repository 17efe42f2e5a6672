# SPDX-License-Identifier: Apache-2.0
"""Where each name of a kernel lives: the innermost suite that holds all its uses.

An assignment in that very suite needs no mask, for the threads that skip the suite
never look at the name.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Path: TypeAlias = tuple[int, ...]  # the suites around a statement, outermost first


def home_suites(body: Sequence[ast.stmt]) -> dict[str, Path]:
    """Return for every name the path of the innermost suite around all its uses."""
    homes: dict[str, Path] = {}
    for name, path in _uses(body, ()):
        homes[name] = _common(homes.get(name, path), path)
    return homes


def assigned(body: Sequence[ast.stmt]) -> set[str]:
    """Return the names that ``body`` assigns anywhere: statements do, no expression."""
    found: set[str] = set()
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                found.add(name)
            case ast.If(body=inner, orelse=other):
                found |= assigned(inner) | assigned(other)
            case ast.While(body=inner):
                found |= assigned(inner)
            case ast.For(target=ast.Name(id=name), body=inner):
                found |= {name} | assigned(inner)
            case _:
                pass
    return found


def suite(path: Path, body: Sequence[ast.stmt]) -> Path:
    """Return the path of the suite ``body`` of a statement at ``path``."""
    return (*path, id(body[0]) if body else 0)


def _uses(body: Sequence[ast.stmt], path: Path) -> Iterator[tuple[str, Path]]:
    for statement in body:
        match statement:
            case ast.If(test=test, body=inner, orelse=other):
                yield from _names(test, path)
                yield from _uses(inner, suite(path, inner))
                yield from _uses(other, suite(path, other))
            case ast.While(test=test, body=inner):
                yield from _names(test, path)
                yield from _uses(inner, suite(path, inner))
            case ast.For(target=target, iter=source, body=inner):
                yield from _names(target, path)
                yield from _names(source, path)
                yield from _uses(inner, path)  # a static loop runs for all threads
            case _:
                yield from _names(statement, path)


def _names(node: ast.AST, path: Path) -> Iterator[tuple[str, Path]]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id, path


def _common(one: Path, other: Path) -> Path:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return one[:length]
