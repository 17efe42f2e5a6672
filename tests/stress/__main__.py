# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m tests.stress --threads 16 --seconds 60 --runs 10``.

Each run is a process of its own, as a crash is one of the things that it looks for. All
its threads do everything at once, and exceptions are raised in them at any moment.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import os
import subprocess
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tests.interrupts import Interrupt, raise_in
from tests.stress.actions import ACTIONS, call, call_large, fail

if TYPE_CHECKING:
    from collections.abc import Callable

RHYTHM = 0.03  # seconds between two exceptions
PATIENCE = 40.0  # seconds after which a thread that has not come back is stuck


class Stress:
    """One run: what its threads did, and what was wrong."""

    def __init__(self, threads: int, seed: int) -> None:
        self.done: collections.Counter[str] = collections.Counter()
        self.problems: list[str] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._live, args=(seed, k), daemon=True)
            for k in range(threads)
        ]

    def run(self, seconds: float) -> None:
        """Let all threads act, and raise in one after another."""
        rng = np.random.default_rng(0)
        for action in (call, call_large, fail):  # what is imported late, and compiled
            for _ in range(12):
                action(rng)
        for thread in self._threads:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.problems:
            time.sleep(RHYTHM)
            raise_in(self._threads[int(rng.integers(len(self._threads)))].ident or 0)
            self.done["raise"] += 1
        self._stop.set()
        end = time.monotonic() + PATIENCE
        for thread in self._threads:
            thread.join(max(end - time.monotonic(), 0))
        if any(thread.is_alive() for thread in self._threads):
            self.problems.append("a thread is stuck")
            faulthandler.dump_traceback(all_threads=True)

    def _live(self, seed: int, number: int) -> None:
        rng = np.random.default_rng([seed, number])
        weights = np.array([weight for _, weight in ACTIONS])
        own = os.getpid()
        while True:
            try:
                self._act(rng, weights / weights.sum())
                return
            except Interrupt:
                pass
            finally:
                if os.getpid() != own:  # a child that was raised in
                    os._exit(0)

    def _act(self, rng: np.random.Generator, weights: object) -> None:
        while not self._stop.is_set():
            action, _ = ACTIONS[int(rng.choice(len(ACTIONS), p=cast("Any", weights)))]
            self._try(action, rng)

    def _try(
        self, action: Callable[[np.random.Generator], str], rng: np.random.Generator
    ) -> None:
        try:
            wrong = action(rng)
        except Interrupt:
            self.done["interrupted"] += 1
            return
        except Exception as error:  # noqa: BLE001 (any is a finding)
            wrong = repr(error)
        self.done[action.__name__] += 1
        if wrong:
            self.problems.append(f"{action.__name__}: {wrong}")


def one(threads: int, seconds: float, seed: int) -> int:
    """Run in this process; return the exit code."""
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None  # where Python cannot raise it, it says so
    faulthandler.enable()
    stress = Stress(threads, seed)
    stress.run(seconds)
    counted = ", ".join(f"{n} {name}" for name, n in stress.done.most_common())
    sys.stdout.write(f"stress: {len(stress.problems)} problems; {counted}\n")
    for problem in stress.problems[:5]:
        sys.stdout.write(f"  {problem}\n")
    sys.stdout.flush()
    os._exit(bool(stress.problems))


def main() -> int:
    """Run as often as asked for; return 1 if anything was wrong in any run."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        return one(given.threads, given.seconds, given.seed)
    codes: list[int] = []
    for run in range(given.runs):
        options = {"threads": given.threads, "seconds": given.seconds}
        command = [sys.executable, "-m", "tests.stress", "--here"]
        command += [f"--{name}={n}" for name, n in options.items()]
        command += [f"--seed={given.seed + run}"]
        codes.append(subprocess.run(command, check=False).returncode)
    bad = [code for code in codes if code]
    sys.stdout.write(f"stress: {len(codes)} runs, {len(bad)} bad {bad or ''}\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
