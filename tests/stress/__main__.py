# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m tests.stress --threads 16 --seconds 60 --runs 10``.

Each run is a process of its own, as a crash is one of the things that it looks for. All
its threads do everything at once, and exceptions are raised in them at any moment but
inside ``os.fork`` (``forks.py`` says why). A run is bad if it crashes, if a thread or a
child does not come back, or if anything wrong is computed.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from tests.interrupts import Interrupt, raise_in
from tests.stress import forks
from tests.stress.actions import ACTIONS, call, call_large, fail

if TYPE_CHECKING:
    from collections.abc import Callable

RHYTHM = 0.03  # seconds between two exceptions
PATIENCE = 90.0  # seconds after which a thread that has not come back is stuck


class Stress:
    """One run: what its threads did, and what was wrong."""

    def __init__(self, threads: int, seed: int, weights: dict[str, float]) -> None:
        self.done: collections.Counter[str] = collections.Counter()
        self.problems: list[str] = []
        self._stop = threading.Event()
        self._raises = weights.get("raise", 1) > 0
        given = [weights.get(a.__name__, weight) for a, weight in ACTIONS]
        self._weights = np.array(given) / sum(given)
        self._places = [ctypes.c_ulong(0) for _ in range(threads)]
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
            self._look()
            if self._raises:
                raise_in(self._places[int(rng.integers(len(self._places)))])
                self.done["raise"] += 1
        self._stop.set()
        end = time.monotonic() + PATIENCE
        while self._are_there() and time.monotonic() < end:
            self._look()
        if self._are_there():
            self.problems.append("stuck: a thread")
            faulthandler.dump_traceback(all_threads=True)
        while forks.remain():
            self._look()

    def _look(self) -> None:
        time.sleep(RHYTHM)
        self.problems += forks.ended()

    def _are_there(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _live(self, seed: int, number: int) -> None:
        rng = np.random.default_rng([seed, number])
        forks.places[threading.get_ident()] = place = self._places[number]
        while not self._stop.is_set():
            try:
                place.value = threading.get_ident()
                self._act(rng)
            except Interrupt:
                pass

    def _act(self, rng: np.random.Generator) -> None:
        while not self._stop.is_set():
            action, _ = ACTIONS[int(rng.choice(len(ACTIONS), p=self._weights))]
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
            self.problems.append(f"wrong: {action.__name__}: {wrong}")


def one(threads: int, seconds: float, seed: int, weights: dict[str, float]) -> int:
    """Run in this process; return the exit code."""
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None  # where Python cannot raise it, it says so
    faulthandler.enable()
    stress = Stress(threads, seed, weights)
    stress.run(seconds)
    kinds = collections.Counter(p.partition(":")[0] for p in stress.problems)
    said = ", ".join(f"{kinds[kind]} {kind}" for kind in ("crash", "stuck", "wrong"))
    counted = ", ".join(f"{n} {name}" for name, n in stress.done.most_common())
    sys.stdout.write(f"stress: seed {seed}: {said}; {counted}\n")
    for problem in stress.problems[:5]:
        sys.stdout.write(f"  {problem}\n")
    sys.stdout.flush()
    os._exit(bool(stress.problems))


def _apart(arguments: list[str], seconds: float) -> str:
    """Run in a process of its own, whose children end with it; tell if it was bad."""
    command = [sys.executable, "-m", "tests.stress", "--here", *arguments]
    run = subprocess.Popen(command, start_new_session=True)
    try:
        code = run.wait(seconds + 4 * PATIENCE)
    except subprocess.TimeoutExpired:
        return "stuck"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    return f"crash by signal {-code}" if code < 0 else "bad" if code else ""


def _weight(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    if name not in {action.__name__ for action, _ in ACTIONS} | {"raise"}:
        raise ValueError(text)
    return name, float(number)


def main() -> int:
    """Run as often as asked for; return 1 if anything was wrong in any run."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress", description=__doc__)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--weight",
        action="append",
        default=[],
        type=_weight,
        metavar="ACTION=NUMBER",
        help="how often an action is chosen, as in --weight fork=0; or raise=0",
    )
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        return one(given.threads, given.seconds, given.seed, dict(given.weight))
    options = [f"--threads={given.threads}", f"--seconds={given.seconds}"]
    options += [f"--weight={name}={number}" for name, number in given.weight]
    found = [
        _apart([*options, f"--seed={given.seed + run}"], given.seconds)
        for run in range(given.runs)
    ]
    bad = [problem for problem in found if problem]
    sys.stdout.write(f"stress: {len(found)} runs, {len(bad)} bad {bad or ''}\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
