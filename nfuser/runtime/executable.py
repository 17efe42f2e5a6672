# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels: one a source, shared by everything in the process."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

from nfuser.codegen.compiler_lock import COMPILER
from nfuser.codegen.cpu import print_cpu
from nfuser.codegen.cuda import print_cuda
from nfuser.debug import timing
from nfuser.runtime.memo import Memo

if TYPE_CHECKING:
    from nfuser.codegen.source import Source
    from nfuser.lower.kernel_ir import Kernel

_log = logging.getLogger("nfuser")


class Executable(Protocol):
    """Machine code of one kernel."""

    source: Source


class KernelCache:
    """Executables by the digest of their source; each is compiled once."""

    def __init__(self) -> None:
        self._found: Memo[tuple[str, str, int], Any] = Memo()

    def get(self, source: Source, backend: str, device: int) -> tuple[Any, bool]:
        """Return the executable of ``source``, and whether it was compiled just now.

        Threads that ask for the same one wait for each other; Numba's compiler takes
        the others one after another.
        """

        def compiled() -> Any:
            with timing.timed("compile"), COMPILER:  # modules imported here, too
                made = _COMPILE[backend](source, device)
            _log.info("compiled %s for %s", source.entry, backend)
            return made

        return self._found.get((backend, source.digest, device), compiled)

    def clear(self) -> None:
        """Forget everything; running programs keep what they hold."""
        self._found.clear()


def print_kernel(kernel: Kernel) -> Source:
    """Print ``kernel`` for its target."""
    with timing.timed("codegen"):
        is_cuda = kernel.scheduled.target.kind == "cuda"
        return (print_cuda if is_cuda else print_cpu)(kernel)


def _compile_cpu(source: Source, device: int) -> Any:
    from nfuser.codegen.compile_cpu import compile_cpu  # noqa: PLC0415 (Numba)
    from nfuser.device.cpu_kernel import CpuKernel  # noqa: PLC0415

    binary = compile_cpu(source)
    return CpuKernel(binary.address, source.kinds, keep=binary)


def _compile_cuda(source: Source, device: int) -> Any:
    from nfuser.codegen.compile_cuda import compile_cuda  # noqa: PLC0415 (Numba)
    from nfuser.device.module import load_cubin  # noqa: PLC0415

    target = source.kernel.scheduled.target
    binary = compile_cuda(
        source.text, source.entry, source.signature, cc=target.compute_capability
    )
    return load_cubin(binary.cubin, source.entry, device)


def _interpret(source: Source, device: int) -> Any:
    return source


_COMPILE = {"cpu": _compile_cpu, "cuda": _compile_cuda, "interpret": _interpret}
KERNELS = KernelCache()
