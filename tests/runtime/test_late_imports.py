# SPDX-License-Identifier: Apache-2.0
"""What is imported with the first call is never half imported in a child process."""

from __future__ import annotations

import subprocess
import sys

_FORK_AT_IMPORT = """
import os, signal, sys, threading, time
import numpy as np
import nfuser

begun = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "nfuser.execution.runtime.caches.shared_cache":
            begun.set()
            time.sleep(0.3)

sys.meta_path.insert(0, Slow())
double = nfuser.fuse(lambda x: x + x)
first = threading.Thread(target=double, args=(np.ones(3),))
first.start()
assert begun.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if (double(np.ones(3)) == 2).all() else 1)
first.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_waits_for_the_import() -> None:
    command = [sys.executable, "-c", _FORK_AT_IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
