# SPDX-License-Identifier: Apache-2.0
"""A process that compiles kernels for another: ``python -m`` this module.

Tasks come in by standard input and machine code goes out by standard output, pickled,
one at a time. Both ends are the same program on the same machine.
"""

from __future__ import annotations

import os
import pickle
import sys

from nfuser.errors import CompileError
from nfuser.runtime.compile_task import run


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
            answer = run(task)
        except CompileError:
            answer = None  # the parent will meet the error, and say it
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
