# SPDX-License-Identifier: Apache-2.0
"""What the first call of a body of 600 operations and 40 assignments takes.

``python asv_bench/benchmarks/long_body.py`` prints the kernels of nfuser, and the
seconds of first calls in fresh processes: nfuser with an empty cache and with a full
one, ``jax.jit`` and Numba's loops where they are there. What a process does once,
whatever it compiles, is done before: a short function is called.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

_ROOT = str(Path(__file__).parents[2])  # after the nfuser that is measured
_COMPILERS = ("nfuser", "jax", "numba")


def _first_call(compiler: str) -> dict[str, Any]:
    """Make the first call in this process; return what it took."""
    sys.path.append(_ROOT)
    numpy = import_module("numpy")
    program = import_module("asv_bench.programs.program").LONG_BODY
    runners = import_module("asv_bench.programs.peers.runners")
    short = numpy.ones(100)
    if compiler == "nfuser":
        nfuser = import_module("nfuser")
        nfuser.fuse(lambda x: x * 2.0 + 1.0)(short)
        runner = runners.Runner(nfuser.fuse(program.plain))
    elif compiler == "jax":
        jax = import_module("jax")
        jax.config.update("jax_enable_x64", True)
        jax.jit(lambda x: x * 2.0 + 1.0)(short)
        runner = runners.JaxRunner(program.peer("jax"))
    else:
        import_module("numba").njit(lambda x: x * 2.0 + 1.0)(short)
        runner = runners.Runner(program.peer("numba"))
    given = runner.prepared(program.given(program.large))
    begin = perf_counter()
    runner.run(given)
    found: dict[str, Any] = {"seconds": perf_counter() - begin}
    if compiler == "nfuser":
        found["kernels"] = runner.function.explain(*given).kernels
        timing: Any = import_module("nfuser.base.debug.timing")
        found["stages"] = {k: v for k, v in timing.table().items() if v > 0.05}
    return found


def measure(compiler: str, folder: str) -> dict[str, Any]:
    """Make a first call in a fresh process whose cache lies in ``folder``."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--one", compiler],
        env={**os.environ, "NFUSER_CACHE_DIR": folder},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


class LongBody:
    """Kernels, and seconds to the result of a first call."""

    timeout = 300

    def track_kernels(self) -> int:
        with tempfile.TemporaryDirectory(prefix="nfuser-body-") as folder:
            return measure("nfuser", folder)["kernels"]

    def track_first_call(self) -> float:
        with tempfile.TemporaryDirectory(prefix="nfuser-body-") as folder:
            return measure("nfuser", folder)["seconds"]

    track_first_call.unit = "s"


def main() -> None:
    """Print what was found, or measure one call in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", choices=_COMPILERS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        sys.stdout.write(json.dumps(_first_call(given.one)) + "\n")
        return
    with tempfile.TemporaryDirectory(prefix="nfuser-body-") as folder:
        for name in ("nfuser", "nfuser", "jax", "numba"):
            if find_spec(name) is not None:
                sys.stdout.write(f"{name} {measure(name, folder)}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
