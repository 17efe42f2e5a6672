# SPDX-License-Identifier: Apache-2.0
"""Many threads at once: ``python -m tests.threads --seconds 30 --threads 8``.

Each round makes new functions and definitions that say one of a few things, and all
threads call them with shapes of their own. Results are compared with NumPy, compiled
kernels are counted, and threads that do not come back are a deadlock.
"""

# Functions of arrays whose types only a trace knows.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import faulthandler
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.execution.runtime.compile import executable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

PATIENCE = 90.0  # seconds that a round may go on after its time is up
ROUND = 1.0
SIZES = (0, 1, 2, 3, 8, 17, 64, 100)


@dataclass
class Report:
    """What the threads saw: calls, what was wrong, how often a kernel was compiled."""

    calls: int = 0
    problems: list[str] = field(default_factory=list[str])
    compiled: Counter[str] = field(default_factory=Counter[str])

    @property
    def repeated(self) -> list[str]:
        """The kernels that were compiled more than once."""
        return [digest for digest, times in self.compiled.items() if times > 1]


def affine(x: Any, y: Any) -> Any:
    """Elementwise, with a row that stretches."""
    return x * 2 + y


def shares(x: Any, y: Any) -> Any:
    """A reduction and what reads it."""
    e = np.exp(0.1 * (x - x.sum(axis=-1, keepdims=True) / 100)) + y * y
    return e / (e.sum(axis=-1, keepdims=True) + 1)


def pieces(x: Any, y: Any) -> Any:
    """Several kernels."""
    return np.sin(x).sum(axis=0) + y, x - y


FUNCTIONS: tuple[Callable[..., Any], ...] = (affine, shares, pieces)


def defined(x: Any, y: Any) -> Any:
    """Record a definition equal to ``affine`` and execute it."""
    with nfuser.FusionDefinition() as fd:
        a, b = (fd.define_tensor(shape=[-1] * v.ndim) for v in (x, y))
        fd.add_output(fd.ops.add(fd.ops.mul(a, 2), b))
    return fd.execute([x, y])[0]


def storm(seconds: float, threads: int = 8, seed: int = 0) -> Report:
    """Call from ``threads`` threads for ``seconds`` and return what happened."""
    report = Report()
    forget_all()
    end = time.monotonic() + seconds
    with _counting(report.compiled):
        number = seed
        while time.monotonic() < end and not report.problems:
            number += 1
            until = min(end, time.monotonic() + ROUND)
            _round(report, number, threads, until)
    return report


def _round(report: Report, number: int, threads: int, until: float) -> None:
    calls: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (plain, nfuser.fuse(plain)) for plain in FUNCTIONS
    ]
    calls.append((affine, defined))
    barrier = threading.Barrier(threads)

    def work(k: int) -> None:
        rng = np.random.default_rng([number, k])
        barrier.wait(PATIENCE)
        rounds = 0
        while not report.problems:
            _call(report, rng, *calls[int(rng.integers(len(calls)))])
            rounds += 1
            if rounds > 1 and time.monotonic() > until:
                return  # on a busy machine, too, some call meets what another built

    started = [
        threading.Thread(target=work, args=(k,), daemon=True) for k in range(threads)
    ]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(max(0.0, until - time.monotonic()) + PATIENCE)
        if thread.is_alive():
            faulthandler.dump_traceback(all_threads=True)
            report.problems.append(f"a thread did not come back in round {number}")
            return


def _call(
    report: Report,
    rng: np.random.Generator,
    plain: Callable[..., Any],
    fused: Callable[..., Any],
) -> None:
    rows, columns = (int(n) for n in rng.choice(SIZES, 2))
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    y = rng.standard_normal(columns).astype(np.float32)
    try:
        with np.errstate(all="ignore"):
            expected = plain(x, y)
        found = fused(x, y)
        if not isinstance(expected, tuple):
            found, expected = (found,), (expected,)
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
            assert got.shape == want.shape
    except Exception as error:  # noqa: BLE001 (any is a finding)
        report.problems.append(f"{plain.__name__} of {x.shape}: {error!r}")
    report.calls += 1


@contextmanager
def _counting(compiled: Counter[str]) -> Generator[None]:
    table = executable._BACKENDS  # pyright: ignore[reportPrivateUsage]
    real, lock = table["cpu"], threading.Lock()

    def counted(task: Any) -> Any:
        with lock:
            compiled[task.text] += 1
        return real.begin(task)

    table["cpu"] = replace(real, begin=counted)
    try:
        yield
    finally:
        table["cpu"] = real


def main() -> int:
    """Run as the command line asks; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.threads")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    report = storm(asked.seconds, asked.threads, asked.seed)
    summary = (
        f"{report.calls} calls, {len(report.compiled)} kernels, "
        f"{len(report.repeated)} of them compiled more than once"
    )
    sys.stdout.write("\n".join([summary, *report.problems]) + "\n")
    return int(bool(report.problems or report.repeated))


if __name__ == "__main__":
    raise SystemExit(main())
