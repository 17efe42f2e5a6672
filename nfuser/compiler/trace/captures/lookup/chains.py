# SPDX-License-Identifier: Apache-2.0
"""Which names code takes apart, and of which it asks for sizes: read in bytecode."""

# Instructions hold values of any kind.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import dis
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    from types import CodeType

Chain: TypeAlias = "tuple[str, ...]"  # a name and the attributes that follow

_READERS = (
    "abs all any bool complex divmod enumerate filter float format int iter list map "
    "max min next pow print repr reversed round set sorted str sum tuple zip"
)
_BUILTINS = frozenset(_READERS.split())
_ASKERS = frozenset({"len", "getattr", "memoryview"})
_SIZES = frozenset({"shape", "size", "nbytes", "numel"})
_NAMES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_CLASSDEREF")
_STORES = ("STORE_FAST", "STORE_DEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_TAKES_APART = ("GET_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "FORMAT_VALUE", "TO_BOOL")
# What stands between reading values and giving them names, several at a time, too.
_MOVES = frozenset(
    {
        *("CACHE", "EXTENDED_ARG", "NOP", "RESUME", "SWAP", "COPY", "PUSH_NULL"),
        *("BUILD_TUPLE", "UNPACK_SEQUENCE", "MAKE_CELL", "COPY_FREE_VARS"),
    }
)


@value
class TakenApart:
    """What code may subscript, hand to a builtin or take apart, and ask for sizes.

    What a name was bound to that is bound to other things later is ``earlier``.
    """

    apart: tuple[Chain, ...]
    earlier: tuple[Chain, ...]
    sized: tuple[Chain, ...]


class _Reader:
    """Reads instructions in order."""

    def __init__(self) -> None:
        self.apart: dict[Chain, None] = {}
        self.earlier: dict[Chain, None] = {}
        self.sized: dict[Chain, None] = {}
        self.bound: dict[str, set[Chain]] = {}  # to what is read as it is
        self._now: dict[str, set[Chain]] = {}  # the same, where the code stands
        self._begin()

    def _begin(self) -> None:
        # With what the name of each was bound to.
        self._line: list[tuple[Chain, set[Chain]]] = []
        self._is_reading = self._is_asking = False
        self._is_plain = True  # only gives values names

    def end(self) -> None:
        """Note what the line that ends says of its names."""
        if self._is_reading:
            self._add(*self._line)
        if self._is_asking:
            self.sized |= dict.fromkeys(chain for chain, _ in self._line)
        self._begin()

    def _add(self, *read: tuple[Chain, set[Chain]]) -> None:
        for chain, earlier in read:
            self.apart[chain] = None
            self.earlier |= dict.fromkeys((*before, *chain[1:]) for before in earlier)

    def read(self, code: CodeType) -> None:
        """Read all of them."""
        constant, owner, before = None, None, None
        for instruction in dis.get_instructions(code):
            name, argument = instruction.opname, instruction.argval
            if instruction.starts_line:
                self.end()
            if name.startswith(_NAMES):
                self._name(name, argument)
            elif name.startswith(_STORES):
                self._store(argument)
            elif name in _ATTRIBUTES and self._line:
                self._attribute(argument)
            elif name not in _MOVES:
                self._is_plain = False
            if name in _TAKES_APART and not (self._is_plain and name in _MOVES):
                self._is_reading = True
            elif name == "BINARY_SUBSCR" or instruction.argrepr == "[]":
                if owner == "shape" and self._line:  # of an array, most likely
                    self._add(self._line[-1])
                else:
                    self._is_reading |= not isinstance(constant, str)
            is_constant = name == "LOAD_CONST"
            constant, owner = (argument, before) if is_constant else (None, None)
            before = argument if name in _ATTRIBUTES else None
        self.end()

    def _name(self, opcode: str, argument: str | tuple[str, ...]) -> None:
        for found in argument if isinstance(argument, tuple) else (argument,):
            self._line.append(((found,), self._now.get(found, set())))
            self._is_reading |= found in _BUILTINS and "GLOBAL" in opcode
            self._is_asking |= found in _ASKERS and "GLOBAL" in opcode

    def _attribute(self, name: str) -> None:
        chain, earlier = self._line[-1]
        self._line.append(((*chain, name), earlier))
        if name in _SIZES:
            self.sized |= dict.fromkeys(chain[:k] for k in range(1, len(chain) + 1))

    def _store(self, argument: str | tuple[str, ...]) -> None:
        for name in argument if isinstance(argument, tuple) else (argument,):
            found = set[Chain]()
            for chain, earlier in self._line if self._is_plain else ():
                found |= {chain, *((*before, *chain[1:]) for before in earlier)}
            self._now[name] = found - {(name,)}
            self.bound.setdefault(name, set()).update(self._now[name])


@lru_cache(1024)
def looks(code: CodeType) -> TakenApart:
    """Return what ``code`` looks into."""
    reader = _Reader()
    reader.read(code)
    sized = dict(reader.sized)
    for name, *attributes in reader.sized:
        for before in reader.bound.get(name, ()):
            sized[*before, *attributes] = None
    return TakenApart(tuple(reader.apart), tuple(reader.earlier), tuple(sized))
