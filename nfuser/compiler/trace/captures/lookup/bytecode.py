# SPDX-License-Identifier: Apache-2.0
"""Which names a function reads: globals, closure cells and arguments, with attributes.

``scale * self.weights[0]`` reads the global ``scale`` and, from the argument ``self``,
attribute ``weights``, item 0.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import dis
from contextvars import ContextVar
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from nfuser.compiler.ir.base import value
from nfuser.compiler.trace.captures.windows import Window

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind: TypeAlias = Literal["global", "cell", "local", "import"]


class _Referent(Enum):
    REFERENT = "what it refers to"


REFERENT = _Referent.REFERENT


def _referent(whole: Any) -> Any:
    """Return what a weak reference, or a context variable, stands for now."""
    return whole.get(None) if isinstance(whole, ContextVar) else whole()


@value
class PathStep:
    """One step from a value to a part of it: an attribute, or an item."""

    key: Any
    is_attribute: bool

    def apply(self, whole: Any) -> Any:
        """Return the part."""
        if self.is_attribute:
            return getattr(whole, self.key)
        if isinstance(self.key, Window):
            return self.key.read(whole)
        return whole[self.key] if self.key is not REFERENT else _referent(whole)

    def __str__(self) -> str:
        if self.key is REFERENT:
            return "()"
        return f".{self.key}" if self.is_attribute else f"[{self.key!r}]"


@value
class NamedPath:
    """A name as the bytecode spells it, and the steps that follow it."""

    kind: Kind
    name: str
    steps: tuple[PathStep, ...] = ()
    asker: str = ""  # getattr or hasattr, given the name of the last step


_ROOTS: dict[str, Kind] = {
    "LOAD_GLOBAL": "global",
    "LOAD_NAME": "global",
    "LOAD_DEREF": "cell",
    "LOAD_CLASSDEREF": "cell",
    "LOAD_FAST": "local",
    "LOAD_FAST_CHECK": "local",
    "LOAD_FAST_BORROW": "local",
    "LOAD_FAST_LOAD_FAST": "local",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": "local",
}
_SILENT = {"CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL", "PRECALL", "COPY_FREE_VARS"}
_CONSTANTS = {"LOAD_CONST", "LOAD_SMALL_INT"}
_ASKERS = {"getattr", "hasattr"}
# What reads names that do not stand in the code.
_LISTS = {"vars", "dir", "attrgetter", "getmembers", "__dict__", "__getattribute__"}


@lru_cache(1024)
def paths(code: CodeType) -> tuple[NamedPath, ...]:
    """Return every read of a name in ``code``, in order, functions inside included."""
    found = list(_paths(code))
    modules = _imports(code)
    for inner in inner_codes(code):
        for path in paths(inner):
            # A local of the inner function is not one of ours; a cell may be.
            is_cell = path.kind == "cell"
            if path.kind == "local" or (is_cell and path.name in inner.co_cellvars):
                continue
            if is_cell and (module := modules.get(path.name)) is not None:
                steps = (*module.steps, *path.steps)
                found.append(
                    replace(path, kind=module.kind, name=module.name, steps=steps)
                )
            else:
                found.append(path)
    return tuple(found)


@lru_cache(1024)
def reads_by_name(code: CodeType) -> bool:
    """Tell whether ``code``, or a function inside, may read names it does not spell."""
    found = paths(code)
    asks = sum(path.name in _ASKERS and path.kind == "global" for path in found)
    return asks > sum(path.asker != "" for path in found) or _lists_names(code)


def _lists_names(code: CodeType) -> bool:
    is_one = not _LISTS.isdisjoint(code.co_names)
    return is_one or any(map(_lists_names, inner_codes(code)))


def inner_codes(code: CodeType) -> list[CodeType]:
    """Return the functions that ``code`` defines."""
    return [x for x in code.co_consts if isinstance(x, CodeType)]


def _paths(code: CodeType) -> Iterator[NamedPath]:
    held: NamedPath | None = None
    constant: list[Any] = []
    asker = ""  # getattr or hasattr, right before what is held
    modules = _imports(code)
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in _SILENT:
            continue
        if held is not None and name in ("LOAD_ATTR", "LOAD_METHOD") and not constant:
            held = _longer(held, PathStep(instruction.argval, True))
            continue
        if held is not None and name in _CONSTANTS and not constant:
            constant = [instruction.argval]
            continue
        if held is not None and constant and _is_subscript(instruction):
            held, constant = _longer(held, PathStep(constant[0], False)), []
            continue
        before = ""
        if held is not None:
            yield held
            if asker and constant and isinstance(constant[0], str):
                step = PathStep(constant[0], True)
                yield replace(_longer(held, step), asker=asker)
            before = "" if held.steps or constant else held.name
        held, constant, asker = None, [], ""
        if name in _ROOTS:
            *others, last = _names(instruction)
            for other in others:
                yield NamedPath(_ROOTS[name], other)
            before = others[-1] if others else before
            asker = before if before in _ASKERS else ""
            held = NamedPath(_ROOTS[name], last)
            if last in modules and name not in ("LOAD_GLOBAL", "LOAD_NAME"):
                held = modules[last]
    if held is not None:
        yield held


def _imports(code: CodeType) -> dict[str, NamedPath]:
    """Return what the names stand for that ``code`` binds by ``import``."""
    found: dict[str, NamedPath] = {}
    if dis.opmap["IMPORT_NAME"] not in code.co_code[::2]:
        return found
    level, module, bound = 0, "", None
    numbers: list[Any] = []
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in _CONSTANTS:
            numbers.append(instruction.argval)
        elif name == "IMPORT_NAME":
            level, members = numbers[-2:]
            module = "." * level + instruction.argval
            bound = NamedPath("import", module if members else module.split(".")[0])
        elif name == "IMPORT_FROM" and bound is not None:
            taken = bound if bound.steps == () else NamedPath("import", module)
            bound = _longer(taken, PathStep(instruction.argval, True))
        elif name in ("STORE_FAST", "STORE_DEREF") and bound is not None:
            found[instruction.argval] = bound
            is_member = bool(bound.steps)
            bound = NamedPath("import", module) if is_member else None
        elif name not in _SILENT and name not in ("SWAP", "POP_TOP"):
            bound = None
    return found


def _longer(path: NamedPath, step: PathStep) -> NamedPath:
    return NamedPath(path.kind, path.name, (*path.steps, step))


def _names(instruction: dis.Instruction) -> tuple[str, ...]:
    names = instruction.argval
    return names if isinstance(names, tuple) else (names,)


def _is_subscript(instruction: dis.Instruction) -> bool:
    if instruction.opname == "BINARY_SUBSCR":
        return True
    return instruction.opname == "BINARY_OP" and instruction.argrepr == "[]"
