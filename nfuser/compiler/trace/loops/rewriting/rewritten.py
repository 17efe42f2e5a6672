# SPDX-License-Identifier: Apache-2.0
"""A function of the user's, written anew so that its loops and branches can be traced.

Each body becomes a function inside, and each loop a call that is given it; see
``nfuser.compiler.trace.loops.python.plain`` for what those calls do. What is rewritten
runs the same statements in the same order, in the same variables.
"""

from __future__ import annotations

import ast
import copy
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING

import nfuser.compiler.trace.loops.rewriting.live as live
from nfuser.compiler.trace.loops.rewriting.expressions import (
    RUNTIME,
    Expressions,
    names_as_tuple,
    outside_of,
    range_of,
    runtime,
)
from nfuser.compiler.trace.loops.rewriting.jumps import PREFIX, Jumps, UnwritableError
from nfuser.compiler.trace.loops.rewriting.originals import originals
from nfuser.compiler.trace.loops.rewriting.sources import source_of
from nfuser.compiler.trace.watch.unwatched import unseen

if TYPE_CHECKING:
    from nfuser.compiler.trace.loops.rewriting.live import Names
    from nfuser.compiler.trace.loops.rewriting.sources import FunctionSource

_READS_FRAMES = {"locals", "vars", "dir", "eval", "exec", "globals"}
_UNKNOWN = (
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith),
    *(ast.AsyncFunctionDef, ast.Match),
)


@lru_cache(512)
@unseen
def rewritten(code: CodeType) -> CodeType | None:
    """Return the code of the function written anew; None where that cannot be done."""
    source = source_of(code)
    if source is None or _is_unknown(source):
        return None
    try:
        made = _factory(source, code)
        whole = compile(made, code.co_filename, "exec", dont_inherit=True)
    except (UnwritableError, SyntaxError, RecursionError):
        return None
    outer = next(c for c in whole.co_consts if isinstance(c, CodeType))
    found = next(c for c in outer.co_consts if isinstance(c, CodeType))
    found = found.replace(co_name=code.co_name, co_qualname=code.co_qualname)
    _note(found, code)
    return found


def _note(found: CodeType, original: CodeType | None) -> None:
    originals[found] = original
    for inner in found.co_consts:
        if isinstance(inner, CodeType):
            _note(inner, None)


def _is_unknown(source: FunctionSource) -> bool:
    for found in ast.walk(source.function):
        if isinstance(found, _UNKNOWN):
            return True
        is_name = isinstance(found, ast.Name)
        if is_name and (found.id in _READS_FRAMES or found.id.startswith(PREFIX)):
            return True
    return False


def _factory(source: FunctionSource, code: CodeType) -> ast.Module:
    function = copy.deepcopy(source.function)
    if source.owner:
        _Mangled(source.owner).visit(function)
    arguments = function.args
    names = [RUNTIME, *code.co_freevars]
    given = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    body: list[ast.stmt]
    if isinstance(function, ast.Lambda):
        Expressions(outside_of(function)).visit(function)
        arguments.defaults = [ast.Constant(None)] * len(arguments.defaults)
        arguments.kw_defaults = [
            d and ast.Constant(None) for d in arguments.kw_defaults
        ]
        body = [ast.Return(function)]
    else:
        function.decorator_list, function.returns = [], None
        for one in ast.walk(arguments):
            if isinstance(one, ast.arg):
                one.annotation = None
        arguments.defaults = [ast.Constant(None)] * len(arguments.defaults)
        arguments.kw_defaults = [
            d and ast.Constant(None) for d in arguments.kw_defaults
        ]
        _rewrite(function, frozenset(code.co_freevars))
        # Its own name, by which it may call itself, is that of outside.
        function.name = f"{PREFIX}function"
        body = [function, ast.Return(ast.Name(function.name, ast.Load()))]
    outer = ast.FunctionDef(f"{PREFIX}factory", given, body, [])
    found = ast.Module([ast.copy_location(outer, source.function)], [])
    return ast.fix_missing_locations(found)


def _rewrite(function: ast.FunctionDef, outside: Names) -> None:
    """Write the statements of ``function`` anew."""
    Function(function, outside).write()


class Function:
    """One function that is being written anew."""

    def __init__(self, function: ast.FunctionDef, outside: Names) -> None:
        self._function = function
        self._count = 0
        self._globals: set[str] = set()
        self._outside = set[str]()
        for node in _own(function.body):
            if isinstance(node, ast.Global):
                self._globals.update(node.names)
            elif isinstance(node, ast.Nonlocal):
                self._outside.update(node.names)
        self._always = live.captured(function.body)

    def write(self) -> None:
        """Replace the body."""
        function = self._function
        _docstring_off(function)
        body = [_plain(s) for s in function.body]
        body = Jumps().function(body)
        bound = live.stored(body)  # also in blocks, which are written anew in place
        made = self._block(body, self._always)
        a = function.args
        given = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
        given |= {x.arg for x in (a.vararg, a.kwarg) if x is not None}
        bound |= live.stored(body)
        names = bound - self._globals - self._outside - given
        if names:
            # What is bound in inner functions only is bound in this one.
            targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in sorted(names)]
            never = ast.If(
                ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], []
            )
            made = [ast.copy_location(never, function), *made]
        declared = [s for s in made if isinstance(s, (ast.Global, ast.Nonlocal))]
        rest = [s for s in made if not isinstance(s, (ast.Global, ast.Nonlocal))]
        function.body = [*declared, *rest] or [ast.Pass()]

    def _block(self, body: list[ast.stmt], after: Names) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for k, stmt in enumerate(body):
            later = live.before(body[k + 1 :], after)
            for one in self._statement(stmt, later):
                if not hasattr(one, "lineno"):
                    ast.copy_location(one, stmt)
                made.append(ast.fix_missing_locations(one))
        return made

    def _statement(self, stmt: ast.stmt, later: Names) -> list[ast.stmt]:
        match stmt:
            case ast.For():
                return self._for(stmt, later)
            case ast.While():
                return self._while(stmt, later)
            case ast.If():
                return self._if(stmt, later)
            case ast.FunctionDef():
                _rewrite(stmt, frozenset())
                return [stmt]
            case ast.ClassDef() | ast.Global() | ast.Nonlocal():
                return [stmt]
            case ast.Assert():
                stmt.test = runtime("asserted", self._expressions().truth(stmt.test))
                return [*self._effects(stmt), stmt]
            case ast.AugAssign() if self._is_outside(stmt.target):
                return self._updated(stmt)
            case _:
                return [*self._effects(stmt), self._simple(stmt, later)]

    def _simple(self, stmt: ast.stmt, later: Names) -> ast.stmt:
        for name in ("body", "orelse", "finalbody"):
            inner: list[ast.stmt] | ast.expr | None = getattr(stmt, name, None)
            if isinstance(inner, list):
                setattr(stmt, name, self._block(inner, later))
        for handler in getattr(stmt, "handlers", ()):
            handler.body = self._block(handler.body, later)
        return self._expressions().own_of(stmt)

    def _expressions(self) -> Expressions:
        return Expressions(outside_of(self._function))

    def _is_outside(self, target: ast.expr) -> bool:
        """Tell whether ``target`` is an attribute, or a name from outside."""
        while isinstance(target, ast.Attribute):
            target = target.value
            if isinstance(target, ast.Name):
                return True
        is_name = isinstance(target, ast.Name)
        return is_name and target.id in self._globals | self._outside

    def _updated(self, stmt: ast.AugAssign) -> list[ast.stmt]:
        """Return ``self.u += y`` so that an array is assigned to, and else bound."""
        name = f"{PREFIX}updated"
        target = ast.parse(ast.unparse(stmt.target), mode="eval").body
        value = self._expressions().visit(stmt.value)
        begun = runtime("updated", target, ast.Constant(_text(stmt)))
        changed = runtime("binds", target, ast.Name(name, ast.Load()))
        bound = ast.Assign([stmt.target], ast.Name(name, ast.Load()))
        made: list[ast.stmt] = [
            ast.Assign([ast.Name(name, ast.Store())], begun),
            ast.AugAssign(ast.Name(name, ast.Store()), stmt.op, value),
            ast.If(changed, [bound], []),
        ]
        for one in made:
            ast.copy_location(one, stmt)
            ast.fix_missing_locations(one)
        return made

    def _for(self, loop: ast.For, later: Names) -> list[ast.stmt]:
        number = self._next()
        item = f"{PREFIX}item{number}"
        head = live.at_head(loop, later) | self._always | _stop_of(loop)
        carried = live.stored([*loop.body, _stores(loop.target)]) & (head | later)
        start = ast.Assign([loop.target], ast.Name(item, ast.Load()))
        ast.copy_location(start, loop)
        inner = self._block(loop.body, head)
        if not isinstance(loop.target, (ast.Name, ast.Tuple, ast.List)):
            raise UnwritableError
        body = self._inner(f"body{number}", [start, *inner], [item])
        turns = range_of(self._expressions().visit(loop.iter))
        return [body, self._call("loop", loop, turns, body, carried)]

    def _while(self, loop: ast.While, later: Names) -> list[ast.stmt]:
        number = self._next()
        head = live.at_head(loop, later) | self._always | _stop_of(loop)
        carried = live.stored(loop.body) & head
        carried |= live.stored([ast.Expr(loop.test)])
        test: list[ast.stmt] = [ast.Return(self._expressions().truth(loop.test))]
        ast.copy_location(test[0], loop.test)
        asked = self._inner(f"test{number}", test, [])
        body = self._inner(f"body{number}", self._block(loop.body, head), [])
        name = ast.Name(asked.name, ast.Load())
        return [asked, body, self._call("loop_while", loop, name, body, carried)]

    def _call(
        self,
        what: str,
        loop: ast.For | ast.While,
        given: ast.expr,
        body: ast.FunctionDef,
        carried: Names,
    ) -> ast.stmt:
        stop: str | None = getattr(loop, "stop", None)
        names = carried | ({stop} if stop else set[str]())
        called = runtime(
            what,
            given,
            ast.Name(body.name, ast.Load()),
            names_as_tuple(names - self._globals),
            ast.Constant(stop),
        )
        return ast.Expr(called)

    def _if(self, stmt: ast.If, later: Names) -> list[ast.stmt]:
        number = self._next()
        names = live.stored([*stmt.body, *stmt.orelse]) & (later | self._always)
        test = self._expressions().truth(stmt.test)
        sides = [
            self._inner(f"{name}{number}", self._block(body, later), [])
            for name, body in (("then", stmt.body), ("else", stmt.orelse))
        ]
        given = [ast.Name(side.name, ast.Load()) for side in sides]
        if getattr(stmt, "returns", False):
            return [*sides, ast.Return(runtime("tail", test, *given))]
        taken = runtime("choose", test, *given, names_as_tuple(names - self._globals))
        return [*sides, ast.Expr(taken)]

    def _inner(
        self, name: str, body: list[ast.stmt], given: list[str]
    ) -> ast.FunctionDef:
        """Return a function that runs in the variables of this one."""
        names = live.stored(body)
        names = frozenset(n for n in names if not _is_function(n))
        here = sorted(names - self._globals)
        heads: list[ast.stmt] = [ast.Nonlocal(here)] if here else []
        if names & self._globals:
            heads.append(ast.Global(sorted(names & self._globals)))
        args = ast.arguments([], [ast.arg(g) for g in given], None, [], [], None, [])
        made = ast.FunctionDef(
            PREFIX + name, args, [*heads, *(body or [ast.Pass()])], []
        )
        return ast.fix_missing_locations(
            ast.copy_location(made, body[0] if body else self._function)
        )

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _effects(self, stmt: ast.stmt) -> list[ast.stmt]:
        """Return what says, before a statement runs, that it does something lasting."""
        said: list[str] = []
        if isinstance(stmt, (ast.Delete, ast.Import, ast.ImportFrom, ast.With)):
            said.append(_text(stmt))
        outside = self._globals | self._outside
        if isinstance(stmt, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
            for target in targets:
                for part in ast.walk(target):
                    is_kept = isinstance(part, ast.Attribute) and isinstance(
                        part.ctx, ast.Store
                    )
                    is_named = isinstance(part, ast.Name) and part.id in outside
                    if is_kept or is_named:
                        said.append(_text(stmt))
        walrus = (n for n in ast.walk(stmt) if isinstance(n, ast.NamedExpr))
        said += [_text(stmt) for n in walrus if n.target.id in outside]
        calls = [runtime("effect", ast.Constant(text)) for text in said[:1]]
        if isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name):
            calls.append(runtime("inplace", ast.Name(stmt.target.id, ast.Load())))
        return [ast.copy_location(ast.Expr(c), stmt) for c in calls]


def _stop_of(loop: ast.For | ast.While) -> Names:
    stop: str | None = getattr(loop, "stop", None)
    return frozenset({stop} if stop else set[str]())


def _is_function(name: str) -> bool:
    kinds = ("body", "test", "then", "else", "updated")
    return name.startswith(tuple(PREFIX + k for k in kinds))


def _text(stmt: ast.stmt) -> str:
    return ast.unparse(stmt).splitlines()[0]


def _stores(target: ast.expr) -> ast.stmt:
    return ast.Assign([target], ast.Constant(None))


def _own(body: list[ast.stmt]) -> list[ast.AST]:
    """Return all that stands in ``body``, inner functions left out."""
    found: list[ast.AST] = []
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda)):
            stack += ast.iter_child_nodes(node)
    return found


def _docstring_off(function: ast.FunctionDef) -> None:
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        function.body = function.body[1:]


def _plain(stmt: ast.stmt) -> ast.stmt:
    """Return a statement without annotations, which inner functions cannot have."""
    return _Annotations().visit(stmt)


class _Annotations(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave inner functions, which are written by themselves."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Leave classes as they are."""
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Return the assignment alone."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


class _Mangled(ast.NodeTransformer):
    """Gives private names the form that a class gives them."""

    def __init__(self, owner: str) -> None:
        self._prefix = f"_{owner.lstrip('_')}"

    def _name(self, name: str) -> str:
        is_private = name.startswith("__") and not name.endswith("__")
        return self._prefix + name if is_private and len(self._prefix) > 1 else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return a variable."""
        node.id = self._name(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Return a parameter."""
        node.arg = self._name(node.arg)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Return an attribute."""
        self.generic_visit(node)
        node.attr = self._name(node.attr)
        return node
