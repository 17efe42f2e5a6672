# SPDX-License-Identifier: Apache-2.0
"""How many threads this process may keep busy: affinity, container quota, setting."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import nfuser.config as config

_ROOT = Path("/sys/fs/cgroup")


def num_threads() -> int:
    """Return the threads that one call may use: the setting, or all there are."""
    setting = config.current().num_threads
    return setting or available_threads()


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
