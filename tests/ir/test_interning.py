# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_FORKS_WHILE_ONE_COMPILES = """
import os, threading
import nfuser
from nfuser.codegen.numba.compiler_lock import COMPILER
from nfuser.compiler.ir.scalars.scalar import const

holds, forks = threading.Event(), threading.Event()

def compiles():
    with COMPILER:
        holds.set()
        forks.wait()
        threading.Event().wait(0.3)  # the fork takes what it can of the locks
        const(987654321)

thread = threading.Thread(target=compiles, daemon=True)
thread.start()
holds.wait()
forks.set()
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_waits_for_who_makes_scalars_while_it_compiles() -> None:
    command = [sys.executable, "-W", "ignore", "-c", _FORKS_WHILE_ONE_COMPILES]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "done\n"
