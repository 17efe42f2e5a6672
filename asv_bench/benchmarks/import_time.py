# SPDX-License-Identifier: Apache-2.0
"""What ``import nfuser`` costs; Numba must not be part of it."""

from __future__ import annotations

import subprocess
import sys


def _run(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Import:
    """A fresh interpreter each time."""

    def setup(self) -> None:
        _run("import nfuser")

    def time_import(self) -> None:
        _run("import nfuser")

    def time_python_and_numpy(self) -> None:
        _run("import numpy")

    def track_seconds_beyond_numpy(self) -> float:
        code = (
            "import numpy, ml_dtypes, time; t = time.perf_counter();"
            "import nfuser; nfuser.fuse; print(time.perf_counter() - t)"
        )
        return min(float(_run(code)) for _ in range(5))

    def track_numba_modules(self) -> int:
        code = (
            "import sys, nfuser; nfuser.fuse;"
            "print(sum(name.split('.')[0] == 'numba' for name in sys.modules))"
        )
        return int(_run(code))
