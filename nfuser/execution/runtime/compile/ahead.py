# SPDX-License-Identifier: Apache-2.0
"""Compile many kernels in several processes, and leave them on disk.

Numba compiles one kernel at a time in a process, and another process has to import it
first, which takes as long as some five kernels do. So this is for many kernels.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from nfuser.base.debug import events
from nfuser.execution.device.cpu.affinity import available_threads
from nfuser.execution.runtime.compile.task import task_of
from nfuser.execution.runtime.disk.cache import (
    BACKENDS,
    current_store,
    find_machine_code,
    keep_machine_code,
)
from nfuser.execution.runtime.disk.key import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nfuser.codegen.printers.source import Source

KERNELS_A_PROCESS = 8
"""What a process must compile to be worth its start."""

_MOST_PROCESSES = 16
_WORKER = """\
import sys, json
sys.path[:] = json.loads(sys.argv[1])
from nfuser.execution.runtime.compile.worker import main
main()
"""


def missing_kernels(
    sources: Iterable[tuple[Source, str]],
) -> list[tuple[Source, str]]:
    """Return those of ``sources``, each with its backend, that are not on disk."""
    store = current_store()
    if store is None or not store.is_usable:
        return []
    fresh = {(source.digest, backend): source for source, backend in sources}
    return [
        (source, backend)
        for (_, backend), source in fresh.items()
        if backend in BACKENDS and find_machine_code(source, backend) is None
    ]


def compile_ahead(missing: list[tuple[Source, str]], step: Callable[[], None]) -> None:
    """Compile ``missing`` if they are many; call ``step`` after each.

    What is left out, or fails, is compiled where it is used, as always.
    """
    processes = min(
        available_threads(), len(missing) // KERNELS_A_PROCESS, _MOST_PROCESSES
    )
    if processes < 2 or not sys.executable:
        return
    queue: SimpleQueue[tuple[Source, str]] = SimpleQueue()
    for pair in missing:
        queue.put(pair)
    with ThreadPoolExecutor(processes) as pool:
        drives = [pool.submit(_drive, queue, step) for _ in range(processes)]
    for drive in drives:
        with contextlib.suppress(OSError):  # its process is gone, or never came
            drive.result()


def _drive(queue: SimpleQueue[tuple[Source, str]], step: Callable[[], None]) -> None:
    """Hand tasks to one process until there are none, or it is gone."""
    pipe = subprocess.PIPE
    with subprocess.Popen(worker_command(), stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while True:
            try:
                source, backend = queue.get_nowait()
            except Empty:
                process.stdin.close()
                return
            try:
                with events.span(f"compile {source.entry}", "compile"):
                    pickle.dump(task_of(source, backend), process.stdin)
                    process.stdin.flush()
                    answer = pickle.load(process.stdout)
            except (OSError, EOFError, pickle.UnpicklingError):
                return
            if answer is not None and answer[1] == environment(backend).digest:
                keep_machine_code(source, backend, answer[0])
            step()


def worker_command() -> list[str]:
    """Return what starts a process that compiles.

    It imports from where this one does, but not from the folder it happens to be in:
    anybody may have put a ``numpy.py`` there. Isolated, Python looks at no folder and
    no variable of its own accord.
    """
    path = [entry for entry in sys.path if os.path.isabs(entry)]
    return [sys.executable, "-I", "-c", _WORKER, json.dumps(path)]
