# SPDX-License-Identifier: Apache-2.0
"""How many threads this process may keep busy: affinity, container quota, setting.

Where somebody else runs many tasks at once, as the threads of a scheduler do, each task
takes its share of them: all if it is alone, its own if tasks keep all cores busy. So
helping threads do not push aside those that they would help.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from functools import cache
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import nfuser.config as config
from nfuser.locks import at_fork

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
    ...     share_of_threads() == num_threads()  # no other task runs
    True
    """
    me = threading.get_ident()
    _tasks[me] = inf
    try:
        yield
    finally:
        _tasks[me] = monotonic()


def share_of_threads() -> int:
    """Return the threads that a call may use now, its own among them."""
    before = monotonic() - BETWEEN
    for thread, end in list(_tasks.items()):
        if end < before:
            _tasks.pop(thread, None)
    return max(num_threads() // max(len(_tasks), 1), 1)


BETWEEN = 0.01
"""Seconds for which a thread that has run a task is taken to run the next one soon."""

_tasks: dict[int, float] = {}
"""When each thread of Python's that runs tasks was done with the last one."""
at_fork(after_in_child=_tasks.clear)


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
