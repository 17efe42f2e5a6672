# SPDX-License-Identifier: Apache-2.0
"""A process that compiles kernels for another.

Tasks come in by standard input and machine code goes out by standard output, pickled,
one at a time. Both ends are the same program on the same machine; so that they are the
same version, too, each answer says what it was compiled with.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import TYPE_CHECKING

from nfuser.errors import CompileError
from nfuser.execution.runtime.compile.task import run
from nfuser.execution.runtime.disk.key import environment, is_current

if TYPE_CHECKING:
    from nfuser.codegen.objects.machine_code import MachineCode
    from nfuser.execution.runtime.compile.task import Task


def main() -> None:
    """Answer tasks until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what others print is no answer
    while True:
        try:
            task = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = answered(task)
        except CompileError:
            answer = None  # the parent will meet the error, and say it
        pickle.dump(answer, answers)
        answers.flush()


def answered(task: Task) -> tuple[MachineCode, str | None]:
    """Return machine code, and the digest of what made it where that is known."""
    machine = run(task)
    backend = "cpu" if task.capability is None else "cuda"
    return machine, environment(backend).digest if is_current(backend) else None
