# SPDX-License-Identifier: Apache-2.0
"""Says on standard error what a first call does that takes more than two seconds.

One line, written anew, on a terminal; a bar in a notebook; nothing elsewhere, unless
``NFUSER_PROGRESS=1`` asks for it.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import nfuser.config as config
from nfuser.base.debug import events

if TYPE_CHECKING:
    from collections.abc import Generator

PATIENCE = 2.0  # seconds before the first word
_PAUSE = 0.2
_WORDS = {
    "trace": "tracing",
    "segment": "grouping operations",
    "schedule": "scheduling",
    "lower": "writing",
    "codegen": "writing",
    "compile": "compiling",
    "load": "loading",
    "host": "planning",
}


class Progress:
    """How far one call is: what is done now, and how many kernels there are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stage = "trace"
        self.done = 0
        self.total = 0
        self.begin = perf_counter()

    def text(self) -> str:
        """Return the line that says so."""
        seconds = perf_counter() - self.begin
        doing = _WORDS.get(self.stage, "rewriting")
        if self.total:
            kernel = min(self.done + 1, self.total)
            doing = f"{doing} kernel {kernel} of {self.total}"
        return f"nfuser: {self.name}: {doing}, {seconds:.0f} s"

    def summary(self) -> str:
        """Return what is left to read when all is done."""
        seconds = perf_counter() - self.begin
        kernels = f", {self.total} kernel{'s' * (self.total != 1)}" * bool(self.total)
        return f"nfuser: {self.name}: ready{kernels} after {seconds:.1f} s"


_running = threading.local()


def stage(name: str) -> None:
    """Note what the call of this thread does now."""
    if (progress := getattr(_running, "progress", None)) is not None:
        progress.stage = name


def kernels(done: int, total: int) -> None:
    """Note how many kernels of how many the call of this thread has."""
    if (progress := getattr(_running, "progress", None)) is not None:
        progress.done, progress.total = done, total


@contextmanager
def watching(name: str) -> Generator[dict[str, object]]:
    """Say how far the body is, if it takes long and somebody looks on.

    What is put into what this gives is told to those who watch.
    """
    with events.span(f"prepare {name}", "prepare") as told, _drawn(name):
        yield told


@contextmanager
def _drawn(name: str) -> Generator[None]:
    page = None if getattr(_running, "progress", None) is not None else _page()
    if page is None:
        yield
        return
    progress = _running.progress = Progress(name)
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(progress, page, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        _running.progress = None
        over.set()
        thread.join()


def _show(progress: Progress, page: _Page, over: threading.Event) -> None:
    if over.wait(PATIENCE):
        return
    while not over.wait(_PAUSE):
        page.draw(progress)
    page.end(progress)


class _Page:
    """A terminal, or what takes its place: each line is new there."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._last = ""

    def draw(self, progress: Progress) -> None:
        """Show how far it is."""
        line = progress.text()
        if self._stream.isatty():
            self._write(f"\r{line.ljust(len(self._last))}")
        elif line.rpartition(",")[0] != self._last.rpartition(",")[0]:
            self._write(f"{line}\n")
        self._last = line

    def end(self, progress: Progress) -> None:
        """Leave one line."""
        start = "\r" if self._stream.isatty() else ""
        self._write(f"{start}{progress.summary().ljust(len(self._last))}\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            return  # whoever closed it does not look


class _Notebook(_Page):
    """A bar in the output of a cell."""

    def __init__(self, display: Any) -> None:
        super().__init__(None)
        self._display = display
        self._handle: Any = None

    def draw(self, progress: Progress) -> None:
        """Show the bar."""
        bar = f'<progress value="{progress.done}" max="{max(progress.total, 1)}">'
        self._put(f"{bar}</progress> <small>{progress.text()}</small>")

    def end(self, progress: Progress) -> None:
        """Leave a line."""
        self._put(f"<small>{progress.summary()}</small>")

    def _put(self, html: str) -> None:
        shown = {"text/html": html, "text/plain": ""}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def _page() -> _Page | None:
    wanted = config.current().progress
    if wanted is False:
        return None
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    if type(found).__name__ == "ZMQInteractiveShell":
        return _Notebook(sys.modules["IPython.display"].display)
    stream = sys.stderr
    is_seen = stream is not None and (wanted or stream.isatty())
    return _Page(stream) if is_seen else None
