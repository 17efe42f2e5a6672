# SPDX-License-Identifier: Apache-2.0
"""Put the object file of a CPU kernel into memory, by the system's calls alone.

Numba compiles for memory anywhere, so on x86-64 whatever depends on where code and
constants come to lie is a plain address of 64 bits: to fill those in is all that a
loader has to do. It takes a fifth of a millisecond; to import llvmlite takes thirty.
Pages can be executed or written to, never both.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any

from nfuser.codegen.objects.elf import COMMON, NO_BITS, SPECIAL, UNDEFINED, X86_64
from nfuser.errors import CompileError

if TYPE_CHECKING:
    from nfuser.codegen.objects.elf import ElfObject, Section, Symbol

_ADDRESS = 1  # R_X86_64_64
_UNWIND = 0x70000001  # SHT_X86_64_UNWIND: no exception passes through a kernel
_WRITE, _LOAD = 1, 2  # SHF_WRITE, SHF_ALLOC
_FAILED = ctypes.c_void_p(-1).value


class Mapping:
    """Memory that is given back with its last reference, but not at exit.

    A thread that nobody waits for may still run a kernel while the process ends.
    """

    __slots__ = ("__weakref__", "address")

    def __init__(self, size: int) -> None:
        libc = _libc()
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        rights = mmap.PROT_READ | mmap.PROT_WRITE
        address = libc.mmap(None, size, rights, flags, -1, 0)
        if address is None or address == _FAILED:
            raise CompileError(f"no memory for {size} bytes of machine code")
        self.address: int = address
        weakref.finalize(self, libc.munmap, address, size).atexit = False

    def execute(self, size: int) -> None:
        """Let the first bytes be executed, and no longer written to."""
        if _libc().mprotect(self.address, size, mmap.PROT_READ | mmap.PROT_EXEC):
            raise CompileError("this system lets no memory be executed")


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None)
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = pointer
    libc.mmap.argtypes = (pointer, size, number, number, number, ctypes.c_long)
    libc.munmap.argtypes = (pointer, size)
    libc.mprotect.argtypes = (pointer, size, number)
    return libc


def can_map(read: ElfObject) -> bool:
    """Tell whether the file asks for nothing that is not done here."""
    kept = [k for k, section in enumerate(read.sections) if _is_loaded(section)]
    kinds = {r.kind for r in read.relocations if r.section in kept}
    return read.machine == X86_64 and kinds <= {_ADDRESS}


def map_object(code: bytes, read: ElfObject, entry: str) -> tuple[int, Mapping]:
    """Return the address of function ``entry``, and the owner of its memory."""
    places, fixed, total = _places(read)
    memory = Mapping(total)
    image = bytearray(total)
    for number, offset in places.items():
        section = read.sections[number]
        if section.kind != NO_BITS:
            part = code[section.offset : section.offset + section.size]
            image[offset : offset + section.size] = part
    addresses = _addresses(read, places, memory.address, total)
    for r in read.relocations:
        if r.section in places:
            target = (addresses[r.symbol] + r.addend) & (1 << 64) - 1
            struct.pack_into("<Q", image, places[r.section] + r.offset, target)
    ctypes.memmove(memory.address, bytes(image), total)
    memory.execute(fixed)
    names = [symbol.name for symbol in read.symbols]
    return addresses[names.index(entry)], memory


def _is_loaded(section: Section) -> bool:
    return bool(section.flags & _LOAD and section.size) and section.kind != _UNWIND


def _places(read: ElfObject) -> tuple[dict[int, int], int, int]:
    """Return where each section goes, the size of what is fixed, and the whole size.

    What is written to begins on a page of its own; variables of no section come last.
    """
    places: dict[int, int] = {}
    at = fixed = 0
    for written in (0, _WRITE):
        for number, section in enumerate(read.sections):
            if _is_loaded(section) and section.flags & _WRITE == written:
                at += -at % max(section.alignment, 1)
                places[number] = at
                at += section.size
        at += -at % mmap.PAGESIZE
        fixed = fixed or at
    room = sum(s.size + 15 & ~15 for s in read.symbols if s.section == COMMON)
    return places, fixed, at + room + -room % mmap.PAGESIZE


def _addresses(
    read: ElfObject, places: dict[int, int], base: int, total: int
) -> list[int]:
    found: list[int] = []
    free = base + total
    for symbol in read.symbols:
        if symbol.section == COMMON:  # from the end down
            free -= symbol.size + 15 & ~15
            found.append(free)
        elif symbol.section == UNDEFINED:
            found.append(_address_elsewhere(symbol))
        elif symbol.section < SPECIAL and symbol.section in places:
            found.append(base + places[symbol.section] + symbol.value)
        else:
            found.append(symbol.value)
    return found


def _address_elsewhere(symbol: Symbol) -> int:
    known = getattr(_libc(), symbol.name, None) if symbol.name else None
    return (known and ctypes.cast(known, ctypes.c_void_p).value) or 0
