# SPDX-License-Identifier: Apache-2.0
"""Random programs in two processes that share a cache: the second compiles nothing.

``python -m tests.warm --programs 200``. Results must be the same to the bit, and the
second process must not even import Numba.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tests.fuzz.arrays import is_array
from tests.fuzz.backends import BACKENDS, Fused
from tests.fuzz.drive import Task

NUMBA = ("numba", "numba_cuda")


@dataclass(frozen=True)
class Seen:
    """What one process did: a digest of each program's results, and counts."""

    digests: list[str]
    compiled: int
    loaded: int
    numba: list[str]


def observe(task: Task) -> Seen:
    """Run the programs of ``task`` in this process."""
    digests: list[str] = []
    compiled = loaded = 0
    for index in range(task.start, task.stop):
        program = task.program(index)
        run = BACKENDS[task.backend](program)
        digest = hashlib.sha256()
        for call in program.calls:
            digest.update(_outcome(run, program.arguments(call)))
        digests.append(digest.hexdigest())
        assert isinstance(run, Fused)
        info = run.function.cache_info()
        compiled += info.compiled
        loaded += info.loaded
    numba = [name for name in NUMBA if name in sys.modules]
    return Seen(digests, compiled, loaded, numba)


def _outcome(run: Any, arguments: list[Any]) -> bytes:
    try:
        outputs = run(*arguments)
    except Exception as error:  # noqa: BLE001 (a refusal is a result, too)
        return f"{type(error).__name__}: {error}".encode()
    found = b""
    for output in outputs:
        array = np.asarray(output)
        strides = array.strides if is_array(output) else ()
        found += repr((array.dtype, array.shape, strides)).encode() + array.tobytes()
    return found


def in_a_process(task: Task, folder: str) -> Seen:
    """Run the programs of ``task`` in a fresh process whose cache is ``folder``."""
    command = [sys.executable, "-m", "tests.warm", "--worker"]
    command += ["--seed", str(task.seed), "--backend", task.backend]
    command += ["--programs", str(task.stop)] + ["--shapes"] * task.shapes
    environment = {**os.environ, "NFUSER_CACHE_DIR": folder}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return Seen(**json.loads(done.stdout.splitlines()[-1]))


def problems(cold: Seen, warm: Seen) -> list[str]:
    """Return all that the second process did otherwise than it should."""
    pairs = enumerate(zip(cold.digests, warm.digests, strict=True))
    found = [f"program {k} differs" for k, (a, b) in pairs if a != b]
    if warm.compiled:
        found.append(f"the second process compiled {warm.compiled} kernels")
    if warm.numba:
        found.append(f"the second process imported {', '.join(warm.numba)}")
    if not 0 < warm.loaded <= cold.compiled:
        found.append(f"{cold.compiled} compiled, but {warm.loaded} loaded")
    return found


def main() -> int:
    """Run as the command line asks; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.warm", description=__doc__)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--shapes", action="store_true", help="chains of movements")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    task = Task(asked.seed, asked.backend, 0, asked.programs, asked.shapes)
    if asked.worker:
        sys.stdout.write(json.dumps(asdict(observe(task))) + "\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="nfuser-warm-") as folder:
        cold, warm = (in_a_process(task, folder) for _ in range(2))
    found = problems(cold, warm)
    summary = (
        f"{asked.programs} programs: {cold.compiled} kernels compiled in the first "
        f"process; {warm.compiled} compiled and {warm.loaded} loaded in the second"
    )
    sys.stdout.write("\n".join([summary, *found]) + "\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
