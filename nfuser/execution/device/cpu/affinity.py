# SPDX-License-Identifier: Apache-2.0
"""How many threads this process may keep busy: affinity, container quota, setting.

Where somebody else runs many tasks at once, as the threads of a scheduler do, each task
takes its share of them: all if it is alone, its own if tasks keep all cores busy. What
else the process does between such tasks, reading and compressing say, is seen by the
processor's time. So helping threads do not push aside those that they would help.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from functools import cache
from math import inf
from pathlib import Path
from time import monotonic, process_time
from typing import TYPE_CHECKING

import nfuser.config as config
from nfuser.base.locks import at_fork

if TYPE_CHECKING:
    from collections.abc import Generator

_ROOT = Path("/sys/fs/cgroup")


def num_threads() -> int:
    """Return the threads that one call may use: the setting, or all there are."""
    setting = config.current().num_threads
    return setting or available_threads()


@contextmanager
def as_one_of_many() -> Generator[None]:
    """Run calls of this thread as a task, beside those of other threads.

    >>> with as_one_of_many():
    ...     1 <= share_of_threads() <= num_threads()
    True
    """
    me = threading.get_ident()
    if not _is_inside():
        _between.end()
    _tasks[me] = inf
    try:
        yield
    finally:
        _tasks[me] = monotonic()
        if not _is_inside():
            _between.begin()


def share_of_threads() -> int:
    """Return the threads that a call may use now, its own among them."""
    before = monotonic() - BETWEEN
    for thread, end in list(_tasks.items()):
        if end < before:
            _tasks.pop(thread, None)
    free = num_threads() - _between.others
    return max(min(num_threads() // max(len(_tasks), 1), free), 1)


BETWEEN = 0.01
"""Seconds for which a thread that has run a task is taken to run the next one soon."""


class _Between:
    """The time between tasks, in which a process does something else.

    ``others`` are the threads that were busy beside the one that now runs a task. They
    are 0 after a short time, in which the tasks themselves are remembered.
    """

    def __init__(self) -> None:
        self.others = 0
        self._since = monotonic(), process_time()

    def begin(self) -> None:
        """Note that the last task is done."""
        self._since = monotonic(), process_time()

    def end(self) -> None:
        """Note that a task begins where none runs."""
        passed = monotonic() - self._since[0]
        busy = process_time() - self._since[1]
        self.others = max(round(busy / passed) - 1, 0) if passed > BETWEEN else 0


def _is_inside() -> bool:
    """Tell whether any thread runs a task now."""
    return inf in list(_tasks.values())


def forget_tasks() -> None:
    """Begin anew: no task has run."""
    global _between
    _tasks.clear()
    _between = _Between()


_tasks: dict[int, float] = {}
"""When each thread of Python's that runs tasks was done with the last one."""
_between = _Between()
at_fork(after_in_child=forget_tasks)


@cache
def available_threads() -> int:
    """Return the processors of this process, less what a container's quota takes."""
    allowed = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    processors = len(allowed(0)) if allowed else os.cpu_count() or 1
    quota = cgroup_quota(_ROOT, Path("/proc/self/cgroup"))
    return max(1, processors if quota is None else min(processors, quota))


def cgroup_quota(root: Path, membership: Path) -> int | None:
    """Return the processors that control groups allow, rounded up, or None if all.

    A quota binds every group below it, so the tightest one on the way up counts.
    """
    shares = [
        share
        for folder in _groups(root, membership)
        if (share := _share(folder)) is not None
    ]
    return max(1, -int(-min(shares) // 1)) if shares else None


def _groups(root: Path, membership: Path) -> list[Path]:
    folders = [root, root / "cpu"]
    for line in _text(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        base = root / "cpu" if controllers else root
        group = base / path.lstrip("/")
        while group != base and base in group.parents:
            folders.append(group)
            group = group.parent
    return folders


def _share(folder: Path) -> float | None:
    version2 = _text(folder / "cpu.max").split()
    if len(version2) == 2:
        quota, period = version2
    else:
        quota = _text(folder / "cpu.cfs_quota_us").strip()
        period = _text(folder / "cpu.cfs_period_us").strip()
    if not quota.isdecimal() or not period.isdecimal() or not int(period):
        return None
    return int(quota) / int(period)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
