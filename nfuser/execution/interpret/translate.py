# SPDX-License-Identifier: Apache-2.0
"""Translate a kernel's source to a Python function over whole waves of threads."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import InterpreterError
from nfuser.execution.interpret.arrays import LocalArray, SharedArray
from nfuser.execution.interpret.effects import (
    declaration,
    effect,
    waiting,
    write_element,
)
from nfuser.execution.interpret.expressions import (
    DTYPES,
    ArrayKind,
    KnownNames,
    PointerKind,
    Term,
    expression,
)
from nfuser.execution.interpret.primitives import ELEMENTWISE, INTEGER
from nfuser.execution.interpret.scopes import Path, assigned, home_suites, suite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_POINTER = re.compile(r"CPointer\((\w+)\)")
_ORDERED = frozenset({"ticket", "reset", "wait", "post", "receive", "cluster"})


@dataclass(frozen=True, slots=True)
class RunnableKernel:
    """A kernel that can be run, and what its text says about its pointers."""

    function: Callable[..., Any]  # (wave, *arguments) -> generator
    parameters: tuple[tuple[str, str | PointerKind], ...]
    lines: tuple[str, ...]
    written: frozenset[str]
    read: frozenset[str]
    ordered: bool  # blocks communicate, so they run one at a time
    most_threads: int  # of a block, by the decorator
    cluster: int  # blocks along y that reach each other's shared memory, likewise


@lru_cache(256)
def translate(source_text: str, entry: str) -> RunnableKernel:
    """Return the function ``entry`` of ``source_text`` as a runnable program."""
    tree = ast.parse(source_text)
    names = KnownNames(source_text.splitlines())
    function = _prepare(tree, entry, names)
    parameters = _parameters(function, names)
    homes = home_suites(function.body)
    checked: set[str] = set()
    while True:
        names.checked = set(checked)
        code = _Kernel(names, homes).text(function, parameters)
        if names.checked == checked:
            break
        checked = set(names.checked)
    calls = _calls(function)
    return RunnableKernel(
        _compiled(code, entry),
        parameters,
        tuple(names.source),
        frozenset(name for verb, name in calls if verb == "store"),
        frozenset(name for verb, name in calls if verb == "load"),
        any(verb in _ORDERED for verb, _ in calls),
        int(np.ravel(_keyword(function, "launch_bounds", 1024))[0]),
        int(np.ravel(_keyword(function, "cluster", 1))[-1]),
    )


def _prepare(tree: ast.Module, entry: str, names: KnownNames) -> ast.FunctionDef:
    """Return the function ``entry``; note the module's constants."""
    found: ast.FunctionDef | None = None
    for statement in tree.body:
        match statement:
            case ast.FunctionDef(name=name) if name == entry:
                found = statement
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names.constants[name] = expression(value, names)
            case _:
                pass
    if found is None:
        raise InterpreterError(f"the source has no function {entry}")
    return found


def _parameters(
    function: ast.FunctionDef, names: KnownNames
) -> tuple[tuple[str, str | PointerKind], ...]:
    """Return the parameters with the types of the decorator's signature."""
    match function.decorator_list:
        case [ast.Call(args=[ast.Constant(value=str(signature)), *_])]:
            pass
        case _:
            raise names.refusal(function, "a kernel is decorated with its signature")
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    kinds = [part.strip() for part in inside.split(",") if part.strip()]
    arguments = [argument.arg for argument in function.args.args]
    if len(kinds) != len(arguments):
        raise names.refusal(
            function, f"{len(arguments)} parameters, {len(kinds)} types"
        )
    result: list[tuple[str, str | PointerKind]] = []
    for name, kind in zip(arguments, kinds, strict=True):
        found = _POINTER.fullmatch(kind)
        result.append((name, PointerKind(found[1]) if found else DTYPES[kind]))
    return tuple(result)


def _keyword(function: ast.FunctionDef, name: str, missing: int) -> Any:
    """Return what the decorator says by the keyword ``name``, or ``missing``."""
    for decorator in function.decorator_list:
        for node in ast.walk(decorator):
            if isinstance(node, ast.keyword) and node.arg == name:
                return ast.literal_eval(node.value)
    return missing


def _calls(function: ast.FunctionDef) -> set[tuple[str, str]]:
    """Return the memory verbs of the kernel with the pointers they go to."""
    calls: set[tuple[str, str]] = set()
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id=name), args=arguments):
                verb = name.partition("_")[0].replace("copy", "load")
                position = 2 if name.startswith(("load_packet", "copy_packet")) else 0
                if verb in ("load", "store", *_ORDERED) and len(arguments) > position:
                    calls.add((verb, ast.unparse(arguments[position])))
            case _:
                pass
    return calls


def _compiled(code: str, entry: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {
        "np": np,
        "LocalArray": LocalArray,
        "SharedArray": SharedArray,
        **{f"p_{name}": rule.meaning for name, rule in ELEMENTWISE.items()},
    }
    exec(compile(code, f"<interpreted {entry}>", "exec"), namespace)
    return namespace["kernel"]


@dataclass(slots=True)
class _Kernel:
    """Prints one kernel; does not outlive ``translate``."""

    names: KnownNames
    homes: dict[str, Path]
    lines: list[str] = field(default_factory=list[str])
    shared: list[str] = field(default_factory=list[str])
    maybe: set[str] = field(default_factory=set[str])
    masks: int = 0

    def text(
        self,
        function: ast.FunctionDef,
        parameters: Sequence[tuple[str, str | PointerKind]],
    ) -> str:
        names = self.names
        names.kinds = dict(parameters)
        names.defined = {name for name, _ in parameters}
        names.static, names.mask = set(), "None"
        self.suite(function.body, (), 1)
        head = [f"def kernel({', '.join(['w', *(f'v_{n}' for n, _ in parameters)])}):"]
        for coordinate in sorted(names.coordinates):
            name, axis = coordinate.split("_")
            head.append(f"  {coordinate} = w.coordinate({name!r}, {'xyz'.index(axis)})")
        for name in sorted(assigned(function.body)):
            head.append(f"  v_{name} = None")
            if name in names.checked:
                head.append(f"  d_{name} = False")
        ending = ["  return", "  yield"]  # a generator even if nothing waits
        return "\n".join([*head, *self.shared, *self.lines, *ending]) + "\n"

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("  " * depth + line)

    def suite(self, body: Sequence[ast.stmt], path: Path, depth: int) -> None:
        for statement in body:
            self.statement(statement, path, depth)

    def statement(self, node: ast.stmt, path: Path, depth: int) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.assign(node, name, value, path, depth)
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=array), slice=index)],
                value=value,
            ):
                self.emit(depth, write_element(node, array, index, value, self.names))
            case ast.Expr(value=ast.Call() as call):
                self.emit(depth, effect(call, self.names))
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                self.emit(depth, "pass")
            case ast.If():
                self.branch(node, path, depth)
            case ast.While(orelse=[]):
                self.loop(node, path, depth)
            case ast.For(orelse=[]):
                self.static_loop(node, path, depth)
            case _:
                raise self.names.refusal(
                    node, "this statement is outside the kernel language"
                )

    def assign(
        self, node: ast.stmt, name: str, value: ast.expr, path: Path, depth: int
    ) -> None:
        if self.declared(node, name, value, depth):
            return
        names = self.names
        if wait := waiting(value, names):
            self.emit(depth, wait)
        term = expression(value, names)
        known = names.kinds.get(name)
        if name in names.static or isinstance(known, (PointerKind, ArrayKind)):
            raise names.refusal(node, f"{name} is not a variable")
        before = name in names.defined or name in self.maybe
        if names.mask == "None" or self.homes[name] == path:
            self.emit(depth, f"v_{name} = {term.code}")
            names.kinds[name] = term.kind
        else:
            self.emit(depth, f"v_{name} = w.merge({names.mask}, {term.code}, v_{name})")
            kind = known if before and known is not None else term.kind
            names.kinds[name] = self.unified(node, name, kind, term.kind)
        if name in names.checked:
            self.emit(depth, f"d_{name} = w.both(d_{name}, {names.mask})")
        names.defined.add(name)
        self.maybe.add(name)

    def unified(self, node: ast.AST, name: str, one: str, other: str) -> str:
        if one != other and not {one, other} <= INTEGER - {"uint64"}:
            raise self.names.refusal(
                node, f"{name} is {one} on one way and {other} on another"
            )
        return one if one == other else "int64"

    def declared(self, node: ast.stmt, name: str, value: ast.expr, depth: int) -> bool:
        """Print the declaration of an array, if ``value`` is one."""
        found = declaration(name, value)
        if found is None:
            return False
        if isinstance(self.names.kinds.get(name), str):
            raise self.names.refusal(node, f"{name} is already a number")
        line, kind, is_shared = found
        if is_shared:  # one for the block, whoever comes here and how often
            self.shared.append(f"  {line}")
        else:
            self.emit(depth, line)
        self.names.kinds[name] = kind
        self.names.defined.add(name)
        return True

    def condition(self, node: ast.expr) -> Term:
        term = expression(node, self.names)
        if term.kind != "bool":
            raise self.names.refusal(node, f"a condition is a bool, not {term.kind}")
        return term

    def branch(self, node: ast.If, path: Path, depth: int) -> None:
        names, outer = self.names, self.names.mask
        number = self.masks
        self.masks += 1
        self.emit(depth, f"c{number} = {self.condition(node.test).code}")
        before = set(names.defined)
        ends: list[set[str]] = []
        for verb, body in (("narrow", node.body), ("otherwise", node.orelse)):
            if body:
                names.mask = f"m{number}"
                names.defined = set(before)
                self.emit(depth, f"m{number} = w.{verb}({outer}, c{number})")
                self.emit(depth, f"if m{number} is not False:")
                self.suite(body, suite(path, body), depth + 1)
                ends.append(names.defined)
        names.mask = outer
        names.defined = ends[0] & ends[1] if len(ends) == 2 else before

    def loop(self, node: ast.While, path: Path, depth: int) -> None:
        names, outer = self.names, self.names.mask
        mask = f"m{self.masks}"
        self.masks += 1
        self.emit(depth, f"{mask} = {outer}")
        self.emit(depth, "while True:")
        names.mask = mask
        before = set(names.defined)
        self.maybe |= assigned(node.body)

        def body() -> None:
            names.defined = set(before)
            condition = self.condition(node.test).code
            self.emit(depth + 1, f"{mask} = w.narrow({mask}, {condition})")
            self.emit(depth + 1, f"if {mask} is False: break")
            self.suite(node.body, suite(path, node.body), depth + 1)

        self.repeated(node, body)
        names.mask, names.defined = outer, before

    def static_loop(self, node: ast.For, path: Path, depth: int) -> None:
        names = self.names
        match node:
            case ast.For(
                target=ast.Name(id=counter),
                iter=ast.Call(func=ast.Name(id="range"), args=arguments, keywords=[]),
            ) if arguments:
                bounds = [_static_bound(argument, names) for argument in arguments]
            case _:
                raise names.refusal(node, "a for loop is over a range of constants")
        self.emit(depth, f"for v_{counter} in range({', '.join(map(str, bounds))}):")
        names.kinds[counter] = "int64"
        names.static.add(counter)
        before = set(names.defined)
        self.maybe |= assigned(node.body)

        def body() -> None:
            names.defined = set(before)
            self.suite(node.body, path, depth + 1)

        self.repeated(node, body)
        names.static.discard(counter)
        del names.kinds[counter]
        if not range(*bounds):
            names.defined = before

    def repeated(self, node: ast.stmt, body: Callable[[], None]) -> None:
        """Print a loop's body once its variables' dtypes are the same at both ends."""
        for _ in range(4):
            kinds = dict(self.names.kinds)
            state = len(self.lines), len(self.shared), self.masks
            body()
            after = self.names.kinds
            changed = [n for n, k in kinds.items() if after.get(n, k) != k]
            if not changed:
                return
            for name in changed:
                one, other = kinds[name], after[name]
                if not isinstance(one, str) or not isinstance(other, str):
                    raise self.names.refusal(node, f"{name} is an array and a number")
                kinds[name] = self.unified(node, name, one, other)
            self.names.kinds = kinds
            del self.lines[state[0] :], self.shared[state[1] :]
            self.masks = state[2]
        raise self.names.refusal(node, "the dtypes of this loop do not settle")


def _static_bound(node: ast.expr, names: KnownNames) -> int:
    match node:
        case ast.Call(func=ast.Name(id=name), args=[inner]) if name in DTYPES:
            return _static_bound(inner, names)
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_static_bound(operand, names)
        case _:
            raise names.refusal(node, "a for loop is over a range of constants")
