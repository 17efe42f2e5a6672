# SPDX-License-Identifier: Apache-2.0
"""Load a CPU kernel's object file through llvmlite alone: Numba takes no part.

Every CPU kernel comes to life here, compiled just now or in another process, so what
is stored on disk is what was tested.
"""

# llvmlite ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import atexit
import ctypes
import struct
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from nfuser.codegen import half_support
from nfuser.codegen.compiler_lock import COMPILER
from nfuser.errors import CompileError

if TYPE_CHECKING:
    from nfuser.codegen.machine_code import MachineCode

_SYMBOL_TABLE = 2  # SHT_SYMTAB
_MADE_BY_LOADER = frozenset({"_GLOBAL_OFFSET_TABLE_"})

_alive: WeakSet[Any] = WeakSet()


def load_object(machine: MachineCode) -> tuple[int, Any]:
    """Return the address of the kernel, and the owner of the memory it lies in.

    LLVM ends the process when a symbol is missing, so they are looked up first.
    """
    import llvmlite.binding as llvm

    with COMPILER:
        _prepare(machine)
        # Each has an engine: processes give kernels of one name different code. An
        # engine owns its target machine.
        machine_type = _target().create_target_machine(jit=True)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine_type)
        try:
            engine.add_object_file(llvm.ObjectFileRef.from_data(machine.code))
        except RuntimeError as error:
            message = f"kernel {machine.entry} does not load: {error}"
            raise CompileError(message) from error
        engine.finalize_object()
        _alive.add(engine)
        return engine.get_function_address(machine.entry), engine


@cache
def _target() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@atexit.register
def _leave_all() -> None:
    """Leave code in place at exit: a thread that nobody waits for may still run it."""
    for engine in list(_alive):
        engine.detach()


def _prepare(machine: MachineCode) -> None:
    import llvmlite.binding as llvm

    _target()
    undefined = undefined_symbols(machine.code)
    if half_support.NAME in undefined:
        half_support.install()
    if machine.entry not in defined_symbols(machine.code):
        raise CompileError(f"the object file has no function {machine.entry}")
    for name in undefined:
        if llvm.address_of_symbol(name) is None:
            known = getattr(ctypes.CDLL(None), name, None)
            if known is None:
                message = f"kernel {machine.entry} calls {name}, which is not there"
                raise CompileError(message)
            llvm.add_symbol(name, ctypes.cast(known, ctypes.c_void_p).value)


def is_portable(code: bytes) -> bool:
    """Tell whether ``code`` calls only what every process of this kind has.

    That is the C library with its mathematics, and what this room brings along. Numba's
    helpers exist only where Numba is.
    """
    known = ctypes.CDLL(None)
    try:
        names = undefined_symbols(code)
    except CompileError:
        return False
    return all(n == half_support.NAME or hasattr(known, n) for n in names)


def undefined_symbols(code: bytes) -> tuple[str, ...]:
    """Return the names that an object file expects others to define, sorted."""
    found = {name for name, section in _symbols(code) if not section}
    return tuple(sorted(found - _MADE_BY_LOADER))


def defined_symbols(code: bytes) -> frozenset[str]:
    """Return the names that an object file defines."""
    return frozenset(name for name, section in _symbols(code) if section)


def _symbols(code: bytes) -> list[tuple[str, int]]:
    """Return name and section of every symbol of a 64-bit little-endian ELF file."""
    try:
        if code[:6] != b"\x7fELF\x02\x01":
            raise CompileError("expected an ELF object file of 64 bits")
        (start,) = struct.unpack_from("<Q", code, 0x28)
        size, count = struct.unpack_from("<HH", code, 0x3A)
        # name, type, flags, address, offset, size, link, info, alignment, entry size
        sections = [
            struct.unpack_from("<IIQQQQIIQQ", code, start + size * k)
            for k in range(count)
        ]
        found: list[tuple[str, int]] = []
        for _, kind, _, _, offset, length, link, *_ in sections:
            if kind == _SYMBOL_TABLE:
                names = sections[link][4]
                for at in range(offset, offset + length, 24):
                    name, _, _, section = struct.unpack_from("<IBBH", code, at)
                    text = code[names + name : code.index(b"\0", names + name)]
                    found.append((text.decode(), section))
        return [(name, section) for name, section in found if name]
    except (struct.error, IndexError, ValueError) as error:
        raise CompileError(f"an object file makes no sense: {error}") from error
