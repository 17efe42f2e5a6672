# SPDX-License-Identifier: Apache-2.0
"""Random numbers and clocks are refused where the traced function asks for them.

What other threads draw, what the garbage collector runs and what handles signals is no
concern of a trace.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import datetime
import functools
import gc
import importlib
import os
import random
import secrets
import signal
import sys
import threading
import time
import types
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.trace import call_of, trace_function
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

X = np.ones((4, 8), np.float32)
RNG = np.random.default_rng(0)
OLD = np.random.RandomState(0)
BITS = np.random.PCG64(0)
OWN = random.Random(0)
draw = np.random.standard_normal
numbers = np.random
now = time.perf_counter
NOW = "random"

LIBRARY = """
import random
import numpy as np
from random import gauss as some
from numpy.random import standard_normal as normal

def by_module(): return np.random.rand()
def by_function(): return normal()
def of_python(): return random.choice([1.0, 2.0])
def by_import():
    import random as other
    return other.gauss(0, 1)
def by_another_name(): return some(0, 1)
def of_a_given(generator): return _inner(generator)
def _inner(generator): return generator.normal(0, 1)
def nothing_drawn(x): return x * len([random]) + isinstance(x, np.random.Generator)
"""


def trace(function: Callable[[Any], Any]) -> None:
    trace_function(function, call_of((X,)))


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return an installed module whose functions draw."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "drawing_library.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(folder))
    found = importlib.import_module("drawing_library")
    monkeypatch.delitem(sys.modules, "drawing_library")
    return found


def _by_import(x: Any) -> Any:
    from numpy import random as numbers

    return x * getattr(numbers, "ra" + "nd")()


def _by_a_name_made_up(x: Any) -> Any:
    module = getattr(np, NOW)
    return x * getattr(module, NOW)()


HONEST: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda x: x + np.random.rand(),
    "a function of numpy's": lambda x: x + draw(),
    "numpy's module": lambda x: x + numbers.rand(),
    "the older generator": lambda x: x * OLD.rand(),
    "bits": lambda x: x * float(BITS.random_raw()),
    "an import": _by_import,
    "a name made up": _by_a_name_made_up,
    "python": lambda x: x * random.random(),
    "a generator of python's": lambda x: x * OWN.gauss(0, 1),
    "a partial": lambda x: x * functools.partial(OWN.uniform, 0, 1)(),
    "time": lambda x: x + time.time(),
    "another clock": lambda x: x + now(),
    "the system": lambda x: x + os.urandom(1)[0],
    "secrets": lambda x: x + secrets.randbelow(3),
    "uuid": lambda x: x + uuid.uuid4().int,
    "datetime": lambda x: x + datetime.datetime.now().year,
    "a new generator": lambda x: x * np.random.default_rng().normal(),
}
OF_THE_LIBRARY: dict[str, Callable[[Any, Any], Any]] = {
    "by its module": lambda x, library: x * library.by_module(),
    "by a function": lambda x, library: x * library.by_function(),
    "of python": lambda x, library: x * library.of_python(),
    "by an import": lambda x, library: x * library.by_import(),
    "by another name": lambda x, library: x * library.by_another_name(),
    "of a given generator": lambda x, library: x * library.of_a_given(RNG),
}


def plain(x: Any) -> Any:
    """Draw nothing."""
    y = np.maximum(x * 2 + 1, 0)
    return np.where(y > 1, y, np.exp(-y)).sum(-1)


class Network:
    """An object that holds a generator for others."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)
        self.weight = np.full(8, 2.0, np.float32)

    def apply(self, x: Any) -> Any:
        """Draw nothing."""
        return plain(x * self.weight)


@contextmanager
def threads_that_draw(count: int) -> Generator[None]:
    """Let other threads draw, and take turns often."""
    stop = threading.Event()

    def drawing() -> None:
        while not stop.is_set():
            np.random.random()
            random.random()

    threads = [threading.Thread(target=drawing) for _ in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)


@contextmanager
def collector_with_a_clock() -> Generator[list[float]]:
    """Let the garbage collector run all the time, and look at a clock."""
    seen: list[float] = []

    def note(phase: str, info: dict[str, int]) -> None:
        seen.append(time.perf_counter() + random.random())

    before = gc.get_threshold()
    gc.callbacks.insert(0, note)
    gc.set_threshold(1, 1, 1)
    try:
        yield seen
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)


def test_who_waits_is_told_that_later_calls_would_not() -> None:
    with pytest.raises(TraceError, match=r"call time.sleep outside: .* no later call"):
        trace_function(lambda x: (time.sleep(0), x)[1], call_of([X]))


@pytest.mark.parametrize("name", HONEST)
def test_a_function_that_draws_or_reads_a_clock_is_refused(name: str) -> None:
    with pytest.raises(TraceError, match="random numbers"):
        trace(HONEST[name])


@pytest.mark.parametrize("name", OF_THE_LIBRARY)
def test_what_a_library_draws_for_the_function_is_refused(
    name: str, library: Any
) -> None:
    with pytest.raises(TraceError, match="random numbers were drawn"):
        trace(lambda x: OF_THE_LIBRARY[name](x, library))


def test_draws_of_a_library_of_statistics_are_refused() -> None:
    stats = pytest.importorskip("scipy.stats")
    for given in (None, RNG):
        with pytest.raises(TraceError, match="random numbers were drawn"):
            trace(lambda x, given=given: x * stats.norm.rvs(random_state=given))


def test_threads_that_draw_do_not_disturb_and_do_not_hide(library: Any) -> None:
    network = Network()
    with threads_that_draw(8):
        for _ in range(20):
            trace(plain)
            trace(network.apply)
            trace(lambda x: library.nothing_drawn(x) * 2)
        for function in HONEST.values():
            with pytest.raises(TraceError, match="random numbers"):
                trace(function)
        for drawing in OF_THE_LIBRARY.values():
            with pytest.raises(TraceError, match="random numbers"):
                trace(lambda x, drawing=drawing: drawing(x, library))


def test_a_module_that_another_thread_is_importing_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("numpy.random", "numpy.random.mtrand"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    trace(plain)


def test_what_the_garbage_collector_runs_does_not_disturb() -> None:
    class Timed:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            ended.append(time.time() + np.random.random())

    ended: list[float] = []

    def dropping(x: Any) -> Any:
        Timed()  # only the collector can free it
        gc.collect()
        return plain(x)

    trace(dropping)
    assert len(ended) == 1
    with collector_with_a_clock() as seen:
        for _ in range(10):
            trace(plain)
            with pytest.raises(TraceError, match="random numbers"):
                trace(HONEST["time"])
            with pytest.raises(TraceError, match="random numbers"):
                trace(HONEST["the older generator"])
    assert len(seen) > 100


def test_a_signals_handler_does_not_disturb() -> None:
    seen: list[float] = []

    def handle(number: int, frame: Any) -> None:
        seen.append(time.time() + number)

    def interrupted(x: Any) -> Any:
        os.kill(os.getpid(), signal.SIGUSR1)
        return plain(x)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        trace(interrupted)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(seen) == 1


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.PCG64])
def test_old_generators_are_refused_as_arguments_too(make: Any) -> None:
    def drawn(x: Any, r: Any) -> Any:
        return x + (r.normal() if hasattr(r, "normal") else r.random_raw())

    for given, function in (
        (make(0), drawn),
        ({"r": make(0)}, lambda x, r: drawn(x, r["r"])),
        ([make(0)], lambda x, r: drawn(x, r[0])),
    ):
        with pytest.raises(TraceError, match="random numbers were drawn"):
            nfuser.fuse(function)(np.ones(4), given)
