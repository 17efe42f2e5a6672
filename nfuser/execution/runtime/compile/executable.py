# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels: one a source, shared by everything in the process."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import nfuser.config as config
from nfuser.base.debug import timing
from nfuser.codegen.numba.compiler_lock import Later, holds_compiler, undisturbed
from nfuser.codegen.printers.cpu import print_cpu
from nfuser.codegen.printers.cuda import print_cuda
from nfuser.compiler.ir.base import value
from nfuser.errors import NfuserError
from nfuser.execution.runtime.compile.task import Task, begin, task_of
from nfuser.execution.runtime.disk.cache import (
    drop_machine_code,
    find_machine_code,
    keep_machine_code,
)
from nfuser.execution.runtime.tables.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.codegen.objects.machine_code import MachineCode
    from nfuser.codegen.printers.source import Source
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel

_log = logging.getLogger("nfuser")


@value
class Backend:
    """How machine code of a kernel is made, and how it becomes something to launch."""

    begin: Callable[[Task], Callable[[], MachineCode]]
    load: Callable[[MachineCode, Source, int], Any]


Origin: TypeAlias = Literal["compiled", "loaded", "reused"]


class _Made(NamedTuple):
    executable: Any
    origin: Origin
    kept: list[MachineCode]  # what is to be kept by who waits first


_Later = Later[_Made]


class KernelCache:
    """Executables by the digest of their source; each is made once."""

    def __init__(self) -> None:
        self._found: Memo[tuple[str, str, int, str], _Later] = Memo()

    def get(self, source: Source, backend: str, device: int) -> tuple[Any, Origin]:
        """Return the executable of ``source``, and where it came from for this call.

        Threads that ask for the same one wait for each other; Numba's compiler takes
        the others one after another.
        """
        return self.begin(source, backend, device)()

    def begin(
        self, source: Source, backend: str, device: int
    ) -> Callable[[], tuple[Any, Origin]]:
        """Return what waits for the same: LLVM finishes one while others are begun."""

        def make() -> _Later:
            if holds_compiler():
                return _begun(source, backend, device, _done)
            return undisturbed(partial(_begun, source, backend, device))

        key = (backend, source.digest, device, config.current().numba)
        begun, is_new = self._found.get(key, make)

        def wait() -> tuple[Any, Origin]:
            later = begun
            if holds_compiler() and not begun.is_done:  # nor is it while this waits
                later = _begun(source, backend, device, _done)
            try:
                made = later.wait()
            finally:
                if begun.has_failed:
                    self._found.forget(key, begun)
            _keep(made, source, backend)
            is_own = is_new or later is not begun
            return made.executable, made.origin if is_own else "reused"

        return wait

    def clear(self) -> None:
        """Forget everything; running programs keep what they hold."""
        self._found.clear()


def _begun(
    source: Source,
    backend: str,
    device: int,
    later: Callable[[Callable[[], _Made]], _Later] = _Later,
) -> _Later:
    if backend == "interpret":
        return _Later.known(_Made(source, "compiled", []))
    room = _BACKENDS[backend]
    with timing.timed("load", source.entry):
        machine = find_machine_code(source, backend)
        if machine is not None:
            try:
                found = room.load(machine, source, device)
                return _Later.known(_Made(found, "loaded", []))
            except NfuserError as error:
                drop_machine_code(source, backend, str(error))
    with timing.timed("compile", source.entry):
        finish = room.begin(task_of(source, backend))
    return later(partial(_finished, source, backend, device, finish))


def _done(work: Callable[[], _Made]) -> _Later:
    return _Later.known(work())


def _finished(
    source: Source, backend: str, device: int, finish: Callable[[], MachineCode]
) -> _Made:
    room = _BACKENDS[backend]
    with timing.timed("compile", source.entry):
        machine = finish()
    _log.info("compiled %s for %s", source.entry, backend)
    with timing.timed("load", source.entry):
        return _Made(room.load(machine, source, device), "compiled", [machine])


def _keep(made: _Made, source: Source, backend: str) -> None:
    """Keep the machine code, while LLVM is at work on the next."""
    try:
        machine = made.kept.pop()
    except IndexError:
        return
    with timing.timed("load", source.entry):
        keep_machine_code(source, backend, machine)


def print_kernel(kernel: Kernel) -> Source:
    """Print ``kernel`` for its target."""
    with timing.timed("codegen", kernel.name):
        return _PRINTERS[kernel.scheduled.target.kind](kernel)


def _load_cpu(machine: MachineCode, source: Source, device: int) -> Any:
    from nfuser.codegen.objects.load_object import load_object  # noqa: PLC0415 (llvmlite)
    from nfuser.execution.device.cpu.kernel import CpuKernel  # noqa: PLC0415

    address, owner = load_object(machine)
    return CpuKernel(address, source.kinds, keep=owner)


def _load_cuda(machine: MachineCode, source: Source, device: int) -> Any:
    from nfuser.execution.device.cuda.module import load_cubin  # noqa: PLC0415 (loads libcuda)

    return load_cubin(machine.code, machine.entry, device)


_PRINTERS = {"cpu": print_cpu, "cuda": print_cuda}
_BACKENDS = {
    "cpu": Backend(begin, _load_cpu),
    "cuda": Backend(begin, _load_cuda),
}
KERNELS = KernelCache()
