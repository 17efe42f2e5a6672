# SPDX-License-Identifier: Apache-2.0
"""Read a relocatable ELF file: its sections, symbols and relocations."""

from __future__ import annotations

import struct

from nfuser.compiler.ir.base import value
from nfuser.errors import CompileError

_SYMBOLS, _RELOCATIONS, NO_BITS = 2, 4, 8  # kinds of sections, as ELF numbers them
_MADE_BY_LOADERS = frozenset({"_GLOBAL_OFFSET_TABLE_"})
UNDEFINED, COMMON, SPECIAL = 0, 0xFFF2, 0xFF00  # section numbers of symbols
X86_64 = 62


@value
class Section:
    """A part of the file; ``flags`` say whether it is loaded, written to, executed."""

    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


@value
class Symbol:
    """A name; ``section`` is the number of the section it lies in."""

    name: str
    section: int
    value: int
    size: int


@value
class Relocation:
    """Bytes of ``section`` that depend on where a symbol comes to lie."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


@value
class ElfObject:
    """An object file of 64 bits, little-endian."""

    machine: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]

    @property
    def undefined(self) -> tuple[str, ...]:
        """The names that others must define, sorted."""
        names = {s.name for s in self.symbols if s.section == UNDEFINED}
        return tuple(sorted(names - _MADE_BY_LOADERS - {""}))

    @property
    def defined(self) -> frozenset[str]:
        """The names that the file defines."""
        return frozenset(s.name for s in self.symbols if s.section != UNDEFINED)


def read_object(code: bytes) -> ElfObject:
    """Return what ``code`` holds; it is an error if that makes no sense."""
    if code[:6] != b"\x7fELF\x02\x01":
        raise CompileError("expected an ELF object file of 64 bits")
    try:
        (machine,) = struct.unpack_from("<H", code, 0x12)
        sections = _sections(code)
        symbols: list[Symbol] = []
        relocations: list[Relocation] = []
        for section in sections:
            if section.kind == _SYMBOLS:
                symbols += _symbols(code, section, sections[section.link].offset)
            elif section.kind == _RELOCATIONS:
                relocations += _relocations(code, section)
    except (struct.error, IndexError, ValueError) as error:
        raise CompileError(f"an object file makes no sense: {error}") from error
    return ElfObject(machine, tuple(sections), tuple(symbols), tuple(relocations))


def _sections(code: bytes) -> list[Section]:
    (start,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    found: list[Section] = []
    for k in range(count):
        row = struct.unpack_from("<IIQQQQIIQQ", code, start + size * k)
        _, kind, flags, _, offset, length, link, info, alignment, _ = row
        end = offset + (0 if kind == NO_BITS else length)
        if end > len(code):
            raise ValueError("a section ends after the file")
        found.append(Section(kind, flags, offset, length, link, info, alignment))
    return found


def _symbols(code: bytes, table: Section, names: int) -> list[Symbol]:
    found: list[Symbol] = []
    for at in range(table.offset, table.offset + table.size, 24):
        name, _, _, section, place, size = struct.unpack_from("<IBBHQQ", code, at)
        text = code[names + name : code.index(b"\0", names + name)].decode()
        found.append(Symbol(text, section, place, size))
    return found


def _relocations(code: bytes, table: Section) -> list[Relocation]:
    found: list[Relocation] = []
    for at in range(table.offset, table.offset + table.size, 24):
        offset, what, addend = struct.unpack_from("<QQq", code, at)
        kind, symbol = what & 0xFFFFFFFF, what >> 32
        found.append(Relocation(table.info, offset, kind, symbol, addend))
    return found
