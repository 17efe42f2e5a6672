# SPDX-License-Identifier: Apache-2.0
"""Load the object file of a CPU kernel: Numba takes no part, and mostly not LLVM.

Every CPU kernel comes to life here, compiled just now or in another process, so what
is stored on disk is what was tested.
"""

# llvmlite ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import atexit
import ctypes
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import nfuser.base.system as system
from nfuser.codegen.numba.compiler_lock import COMPILER
from nfuser.codegen.numba.llvm import half_support
from nfuser.codegen.objects.elf import read_object
from nfuser.codegen.objects.map_object import can_map, map_object
from nfuser.errors import CompileError

if TYPE_CHECKING:
    from nfuser.codegen.objects.elf import ElfObject
    from nfuser.codegen.objects.machine_code import MachineCode

_alive: WeakSet[Any] = WeakSet()


def load_object(machine: MachineCode) -> tuple[int, Any]:
    """Return the address of the kernel, and the owner of the memory it lies in."""
    if not system.has("object_files"):
        return link_object(machine, None)
    read = read_object(machine.code)
    if machine.entry not in read.defined:
        raise CompileError(f"the object file has no function {machine.entry}")
    _check_symbols(read, machine.entry)
    if can_map(read) and half_support.NAME not in read.undefined:
        return map_object(machine.code, read, machine.entry)
    return link_object(machine, read)


def is_portable(code: bytes) -> bool:
    """Tell whether ``code`` calls only what every process of this kind has.

    That is the C library with its mathematics, and what this room brings along. Numba's
    helpers exist only where Numba is. Nothing is known of a file that cannot be read.
    """
    if not system.has("object_files"):
        return False
    try:
        _check_symbols(read_object(code), "")
    except CompileError:
        return False
    return True


def _check_symbols(read: ElfObject, entry: str) -> None:
    known = ctypes.CDLL(None)
    for name in read.undefined:
        if name != half_support.NAME and not hasattr(known, name):
            raise CompileError(f"kernel {entry} calls {name}, which is not there")


def link_object(machine: MachineCode, read: ElfObject | None) -> tuple[int, Any]:
    """Load through llvmlite what asks for more than addresses.

    LLVM ends the process when a symbol is missing, so all of them were looked up, but
    for those of a file that was not read.
    """
    with COMPILER:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        if read is None or half_support.NAME in read.undefined:
            half_support.install()
        for name in () if read is None else read.undefined:
            if llvm.address_of_symbol(name) is None:
                known = getattr(ctypes.CDLL(None), name)
                llvm.add_symbol(name, ctypes.cast(known, ctypes.c_void_p).value)
        # Each has an engine: processes give kernels of one name different code. An
        # engine owns its target machine.
        target = llvm.Target.from_default_triple().create_target_machine(jit=True)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
        try:
            engine.add_object_file(llvm.ObjectFileRef.from_data(machine.code))
        except RuntimeError as error:
            message = f"kernel {machine.entry} does not load: {error}"
            raise CompileError(message) from error
        engine.finalize_object()
        _alive.add(engine)
        return engine.get_function_address(machine.entry), engine


@atexit.register
def _leave_all() -> None:
    """Leave code in place at exit: a thread that nobody waits for may still run it."""
    for engine in list(_alive):
        engine.detach()
