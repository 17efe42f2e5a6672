# SPDX-License-Identifier: Apache-2.0
"""What a compiler needs of a kernel, in this process or in another."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.codegen.printers.source import Source


@value
class Task:
    """A kernel to compile; ``capability`` is of the GPU, None for the CPU."""

    text: str
    entry: str
    signature: str
    capability: tuple[int, int] | None


def task_of(source: Source, backend: str) -> Task:
    """Return what there is to compile of ``source``."""
    capability = source.form.target.compute_capability
    is_cuda = backend == "cuda"
    text, entry, signature = source.text, source.entry, source.signature
    return Task(text, entry, signature, capability if is_cuda else None)


def begin(task: Task) -> Callable[[], MachineCode]:
    """Begin with ``run``; what this returns ends it, while others may begin."""
    if task.capability is not None:
        return partial(run, task)
    from nfuser.codegen.numba.compile_cpu import begin_cpu  # noqa: PLC0415 (Numba)

    return begin_cpu(task.text, task.entry, task.signature)


def run(task: Task) -> MachineCode:
    """Compile in this process."""
    kernel = task.text, task.entry, task.signature
    if task.capability is None:
        from nfuser.codegen.numba.compile_cpu import compile_cpu  # noqa: PLC0415 (Numba)

        return compile_cpu(*kernel)
    from nfuser.codegen.numba.compile_cuda import compile_cuda  # noqa: PLC0415 (Numba)

    return MachineCode(compile_cuda(*kernel, cc=task.capability).cubin, task.entry)
