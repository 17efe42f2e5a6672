# SPDX-License-Identifier: Apache-2.0
"""``break``, ``continue`` and ``return``, written as truth values and branches.

After this a loop ends only where its condition says so, and what follows a jump stands
in the other branch, so that a jump may depend on what is not known while tracing.
"""

from __future__ import annotations

import ast
from typing import TypeAlias

import nfuser.compiler.trace.loops.rewriting.live as live

PREFIX = "_nf_"
Loop: TypeAlias = "ast.For | ast.While"
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.While)


class UnwritableError(Exception):
    """A jump stands where it cannot be written otherwise: within ``try`` or so."""


class Jumps:
    """Rewrites the jumps of one function."""

    def __init__(self) -> None:
        self._count = 0
        self._number = 0  # of the loop whose statements are read
        self._bound: live.Names = frozenset()  # in the loop, whose ends these are
        self._ends: dict[str, tuple[str, ast.expr]] = {}
        self._names: dict[tuple[int, str], str] = {}  # of what returns give, by loop

    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the statements of a function."""
        return self._tail(self._loops_in(body))

    def _loops_in(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite the loops among ``body``; returns from them come after them."""
        made: list[ast.stmt] = []
        for stmt in body:
            if isinstance(stmt, _LOOPS):
                made += self._loop(stmt)
                continue
            if not isinstance(stmt, _INNER):
                for name in ("body", "orelse", "finalbody"):
                    inner: list[ast.stmt] | ast.expr | None = getattr(stmt, name, None)
                    if isinstance(inner, list):
                        setattr(stmt, name, self._loops_in(inner))
                for handler in getattr(stmt, "handlers", ()):
                    handler.body = self._loops_in(handler.body)
            made.append(stmt)
        return made

    def _loop(self, loop: Loop) -> list[ast.stmt]:
        """Return a loop without jumps, and what stands before and after it."""
        self._count += 1
        number = self._count
        stop, skip = f"{PREFIX}stop{number}", f"{PREFIX}skip{number}"
        breaks = _has(loop.body, ast.Break)
        stops = breaks or _has(loop.body, ast.Return)
        body = self._loops_in(loop.body)
        around = self._number, self._bound, self._ends
        self._number, self._bound, self._ends = number, live.stored([loop]), {}
        lowered = self._block(body, stop, skip)
        ends = [*self._ends.values()]
        self._number, self._bound, self._ends = around
        if any(_sets(s, skip) for s in lowered):
            lowered.insert(0, _assign(skip, value=False, at=loop))
        orelse, loop.orelse = self._loops_in(loop.orelse), []
        loop.body = lowered
        made: list[ast.stmt] = [loop]
        if stops:
            made.insert(0, _assign(stop, value=False, at=loop))
            setattr(loop, "stop", stop)  # noqa: B010 (nodes take what they are given)
        never = isinstance(loop, ast.While) and _is_true(loop.test) and not breaks
        for done, value in ends:
            made.insert(0, _assign(done, value=False, at=loop))
            back, is_last = ast.Return(value), done == ends[-1][0]
            test = ast.Name(done, ast.Load())
            made.append(back if never and is_last else _if(test, [back], loop))
        if orelse:
            over = ast.UnaryOp(ast.Not(), ast.Name(stop, ast.Load()))
            made += [_if(over, orelse, loop)] if stops else orelse
        return [ast.copy_location(ast.fix_missing_locations(s), loop) for s in made]

    def _block(self, body: list[ast.stmt], stop: str, skip: str) -> list[ast.stmt]:
        """Return statements of a loop's body without its jumps."""
        made: list[ast.stmt] = []
        for k, stmt in enumerate(body):
            rest = body[k + 1 :]
            if isinstance(stmt, (ast.Break, ast.Continue)):
                name = stop if isinstance(stmt, ast.Break) else skip
                return [*made, _assign(name, value=True, at=stmt)]
            if isinstance(stmt, ast.Return):
                return [*made, *self._returning(stmt, stop)]
            if not (_jumps(stmt) or _has([stmt], ast.Return)):
                made.append(stmt)
                continue
            if not isinstance(stmt, ast.If):
                raise UnwritableError
            if _always_jumps(stmt.body):
                stmt.body = self._block(stmt.body, stop, skip)
                stmt.orelse = self._block([*stmt.orelse, *rest], stop, skip)
                return [*made, stmt]
            if stmt.orelse and _always_jumps(stmt.orelse):
                stmt.orelse = self._block(stmt.orelse, stop, skip)
                stmt.body = self._block([*stmt.body, *rest], stop, skip)
                return [*made, stmt]
            stmt.body = self._block(stmt.body, stop, skip)
            stmt.orelse = self._block(stmt.orelse, stop, skip)
            flags = [f for f in (stop, skip) if _sets(stmt, f)]
            made.append(stmt)
            if rest:
                made.append(_unless(flags, self._block(rest, stop, skip), stmt))
            return made
        return made

    def _returning(self, stmt: ast.Return, stop: str) -> list[ast.stmt]:
        """Return what a loop does in place of ``stmt``, which comes after it.

        Nothing runs in between, so that all which the loop does not bind anew is read
        after it: an array that it has written into is that very array.
        """
        found: list[ast.stmt] = []
        value = self._kept(stmt.value or ast.Constant(None), found)
        done = f"{PREFIX}done{self._number}_{len(self._ends)}"
        done, _ = self._ends.setdefault(ast.dump(value), (done, value))
        found += [_assign(name, value=True, at=stmt) for name in (done, stop)]
        return [ast.fix_missing_locations(ast.copy_location(s, stmt)) for s in found]

    def _kept(self, value: ast.expr, found: list[ast.stmt]) -> ast.expr:
        """Return what gives ``value`` after the loop; assign what it needs before."""
        if isinstance(value, (ast.Tuple, ast.List)):
            value.elts = [self._kept(x, found) for x in value.elts]
            return value
        if isinstance(value, ast.Starred):
            value.value = self._kept(value.value, found)
            return value
        is_ours = isinstance(value, ast.Name) and value.id.startswith(PREFIX)
        if is_ours or not live.loads(value) & self._bound:
            return value
        name = self._names.setdefault(
            (self._number, ast.dump(value)), f"{PREFIX}value{len(self._names)}"
        )
        found.append(ast.Assign([ast.Name(name, ast.Store())], value))
        return ast.Name(name, ast.Load())

    def _tail(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Let each ``if`` that returns be the last statement of all."""
        for k, stmt in enumerate(body):
            rest = body[k + 1 :]
            if isinstance(stmt, ast.If) and _has([stmt], ast.Return):
                ends = [_always_returns(b) for b in (stmt.body, stmt.orelse)]
                if rest and not any(ends) and _size(rest) > _MOST_TWICE:
                    raise UnwritableError
                stmt.body = self._tail(stmt.body + ([] if ends[0] else rest))
                stmt.orelse = self._tail(stmt.orelse + ([] if ends[1] else rest))
                setattr(stmt, "returns", True)  # noqa: B010 (as above)
                return [*body[:k], stmt]
        return body


_MOST_TWICE = 400  # nodes of what follows two branches, and is written in both


def _size(body: list[ast.stmt]) -> int:
    return sum(1 for s in body for _ in ast.walk(s))


def _assign(name: str, *, value: bool, at: ast.AST) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))
    return ast.fix_missing_locations(ast.copy_location(made, at))


def _if(test: ast.expr, body: list[ast.stmt], at: ast.AST) -> ast.If:
    return ast.fix_missing_locations(ast.copy_location(ast.If(test, body, []), at))


def _unless(flags: list[str], body: list[ast.stmt], at: ast.AST) -> ast.If:
    names: list[ast.expr] = [ast.Name(f, ast.Load()) for f in flags]
    either = names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names)
    return _if(ast.UnaryOp(ast.Not(), either), body, at)


def _has(body: list[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Tell whether a jump stands in ``body``; those of inner loops are theirs."""
    for stmt in body:
        if isinstance(stmt, kind):
            return True
        if isinstance(stmt, _INNER):
            continue
        is_theirs = isinstance(stmt, _LOOPS) and kind is not ast.Return
        inner = [] if is_theirs else _statements(stmt)
        if is_theirs and isinstance(stmt, _LOOPS):
            inner = stmt.orelse
        if _has(inner, kind):
            return True
    return False


def _jumps(stmt: ast.stmt) -> bool:
    return _has([stmt], ast.Break) or _has([stmt], ast.Continue)


def _statements(stmt: ast.AST) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for child in ast.iter_child_nodes(stmt):
        if isinstance(child, ast.stmt):
            found.append(child)
        elif not isinstance(child, ast.expr):
            found += _statements(child)
    return found


def _sets(stmt: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        for n in ast.walk(stmt)
    )


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _always_jumps(body: list[ast.stmt]) -> bool:
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _always_jumps(last.body) and _always_jumps(last.orelse)
    return isinstance(last, (ast.Break, ast.Continue, ast.Return))


def _always_returns(body: list[ast.stmt]) -> bool:
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _always_returns(last.body) and _always_returns(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise))
