# SPDX-License-Identifier: Apache-2.0
"""Where numbers come from: the command, the day, the commit, and the machine.

Every file of results begins with it, and every picture says it below.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def provenance(versions: str, backend: str = "cpu") -> dict[str, str]:
    """Return what a file of results says about the run of this process."""
    return {
        "command": _command(),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "machine": machine(backend),
        "versions": versions,
    }


def machine(backend: str) -> str:
    """Return the GPU, or the processor and how many cores of it may be used here."""
    if backend == "cuda":
        torch: Any = import_module("torch")
        return torch.cuda.get_device_name()
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores of {_processor()}"


def _command() -> str:
    given = sys.argv[1:]
    if "--json" in given:  # where to is another matter
        at = given.index("--json")
        given = [*given[:at], *given[at + 2 :]]
    file = Path(sys.argv[0]).resolve()
    path = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    named = ".".join(path.with_suffix("").parts).removesuffix(".__main__")
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    how = ["python", "-m", named] if spec else ["python", str(path)]
    return shlex.join([*how, *given])


def _commit() -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in told.splitlines())
    lines = zip(told.splitlines(), names, strict=True)
    found = next((n for line, n in lines if line.startswith("model name")), "")
    return f"{found} ({platform.machine()})" if found else platform.machine()
