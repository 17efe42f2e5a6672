# SPDX-License-Identifier: Apache-2.0
"""Hunt planted faults with random programs: ``python -m tests.fuzz.hunt FAULTS.json``.

The file maps names to a file of ``nfuser``, a text that stands there once, and what it
becomes, or lists objects with ``name``, ``file``, ``old`` and ``new``. A program runs
once without any fault, and says which of them would have shown where they stand; these
alone are tried with it. One that fails without a fault, too, has found none: it is
listed as a fault of the package's own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copytree
from typing import Any, cast

from tests.fuzz import planting, switches
from tests.fuzz.mixed import GENERATORS, turns

_ROOT = Path(__file__).parents[2]
_CHUNK, _TRIED = 48, 8  # programs that a process runs without a fault, and with one
_SLOWEST = 120  # seconds of a process: what takes longer hangs
_SINGLE = ("OMP", "OPENBLAS", "MKL")  # threads of libraries, beside which others run


@dataclass
class Hunted:
    """What is known of one fault: the programs in which it shows, and their outcome."""

    waiting: list[str] = field(default_factory=list[str])
    shown: int = 0
    tried: int = 0
    is_busy: bool = False
    found: str | None = None


class Hunt:
    """Runs programs in processes of their own until the time is over."""

    def __init__(
        self,
        faults: dict[str, planting.Fault],
        folder: Path,
        seconds: float,
        first: int,
    ) -> None:
        self.folder = folder
        self._trees: dict[str, Path] = {}
        self._plain = self._copied("plain")
        self._planted = self._copied("planted")
        self._apart = planting.plant(self._planted / "nfuser", faults)
        for name in self._apart:
            file = (tree := self._copied(name)) / "nfuser" / faults[name].file
            file.write_text(planting.changed(file.read_text(), faults[name]))
            self._trees[name] = tree
        self.hunted = {name: Hunted() for name in faults}
        self.own: list[str] = []
        self.programs = 0
        self._next = first
        self._lock = threading.Lock()
        self._end = time.monotonic() + seconds

    def _copied(self, name: str) -> Path:
        for part in ("nfuser", "tests"):
            copytree(_ROOT / part, self.folder / name / part)
        return self.folder / name

    @property
    def left(self) -> float:
        """Return the seconds that are left."""
        return self._end - time.monotonic()

    def run(self, jobs: int) -> None:
        """Hunt in so many processes at a time."""
        threads = [
            threading.Thread(target=self._work, args=(jobs,)) for _ in range(jobs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, jobs: int) -> None:
        while self.left > 5 and not all(h.found for h in self.hunted.values()):
            with self._lock:
                name = self._chosen(jobs)
                if name is None:
                    chosen = [f"{g} {n} {b}" for g, n, b in turns(self._next, _CHUNK)]
                    self._next += _CHUNK
                else:
                    hunted = self.hunted[name]
                    hunted.is_busy = True
                    chosen = hunted.waiting[:_TRIED]
                    del hunted.waiting[:_TRIED]
            lines, failed = self._processed(chosen, name)
            with self._lock:
                if name is None:
                    self._note(lines, failed)
                else:
                    self._judge(name, lines, failed)

    def _chosen(self, jobs: int) -> str | None:
        """Return the fault that is tried next, or none: half of the jobs look on."""
        if sum(h.is_busy for h in self.hunted.values()) > jobs // 2:
            return None
        ready = [
            name
            for name, h in self.hunted.items()
            if h.waiting and not (h.found or h.is_busy)
        ]
        return min(ready, key=lambda name: self.hunted[name].tried, default=None)

    def _note(self, lines: list[str], failed: list[str]) -> None:
        for line in lines:
            program, _, shown = line.partition(":")
            self.programs += 1
            for name in (*shown.split(), *self._apart):
                self.hunted[name].shown += 1
                self.hunted[name].waiting.append(program)
        if self.left > 0:
            self.own += failed

    def _judge(self, name: str, lines: list[str], failed: list[str]) -> None:
        hunted = self.hunted[name]
        hunted.tried += len(lines)
        hunted.is_busy = False
        if failed and self.left > 0:
            hunted.tried += 1
            program = failed[0].partition(":")[0]
            if self._processed([program], None, self._plain)[1]:
                self.own += failed
            else:
                hunted.found = failed[0]

    def _processed(
        self, chosen: list[str], name: str | None, tree: Path | None = None
    ) -> tuple[list[str], list[str]]:
        """Return what a process told of each program that passed, and which did not."""
        tree = tree or self._trees.get(name or "", self._planted)
        environment = {
            **os.environ,
            **{f"{x}_NUM_THREADS": "1" for x in _SINGLE},
            "PYTHONPATH": os.pathsep.join(
                [str(tree), os.environ.get("PYTHONPATH", "")]
            ),
            "NFUSER_CACHE_DIR": str(self.folder / f"cache {name}"),
            "NUMBA_OPT": "0",
        }
        if name is not None:
            environment["NFUSER_TESTS_FAULT"] = name
        how = "hangs"
        limit = min(_SLOWEST, max(self.left, 10))
        command = [sys.executable, "-m", "tests.fuzz.hunt", "--run", *chosen]
        try:
            done = subprocess.run(
                command,
                cwd=tree,
                env=environment,
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
            said, how = done.stdout, done.stderr.strip().rpartition("\n")[2]
        except subprocess.TimeoutExpired as error:
            said = (error.stdout or b"").decode()
        lines = said.splitlines()
        failed = [x[7:] for x in lines if x.startswith("FAILED ")]
        lines = [x for x in lines if not x.startswith("FAILED ")]
        is_whole = name is not None and failed
        if not is_whole and (met := len(lines) + len(failed)) < len(chosen):
            failed.append(f"{chosen[met]}: {how}")
        return lines, failed

    def report(self) -> str:
        """Return a line for each fault, and what failed without any."""
        lines = [
            f"{name:24} shown {h.shown:5} tried {h.tried:5}  "
            f"{h.found[:150] if h.found else 'NOT FOUND'}"
            for name, h in self.hunted.items()
        ]
        found = sum(bool(h.found) for h in self.hunted.values())
        lines.append(f"{found} of {len(lines)} found by {self.programs} programs")
        return "\n".join([*lines, *(f"of its own: {x[:300]}" for x in self.own)])


def _run(chosen: list[str]) -> None:
    """Run programs, until one fails if a fault is on; print what showed in each."""
    warnings.simplefilter("ignore")
    for program in chosen:
        generator, number, backend = program.split()
        switches.SHOWN.clear()
        try:
            GENERATORS[generator](int(number), backend)
        except Exception as error:  # noqa: BLE001 (each is a fault to be told)
            said = f"{type(error).__name__}: {error}".replace("\n", " ")
            sys.stdout.write(f"FAILED {program}: {said[:300]}\n")
            if switches.ACTIVE is not None:
                break
            continue
        sys.stdout.write(f"{program}: {' '.join(sorted(switches.SHOWN))}\n")
        sys.stdout.flush()


def _listed(text: str) -> dict[str, planting.Fault]:
    """Return faults by name, of a mapping to lists or a list of mappings."""
    listed: Any = json.loads(text)
    if isinstance(listed, list):
        given = cast("list[dict[str, str]]", listed)
        listed = {x["name"]: [x["file"], x["old"], x["new"]] for x in given}
    return {
        name: planting.Fault(file.removeprefix("nfuser/"), text, becomes)
        for name, (file, text, becomes, *_) in listed.items()
    }


def main() -> None:
    """Hunt as long as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", type=Path, nargs="?")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--run", nargs="*", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run is not None:
        _run(asked.run)
        return
    faults = _listed(asked.faults.read_text())
    with tempfile.TemporaryDirectory() as folder:
        hunt = Hunt(faults, Path(folder), asked.seconds, asked.first)
        hunt.run(asked.jobs)
        sys.stdout.write(hunt.report() + "\n")


if __name__ == "__main__":
    main()
