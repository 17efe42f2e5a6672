# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from nfuser import config
from nfuser.execution.device.cpu.affinity import (
    available_threads,
    cgroup_quota,
    num_threads,
)

if TYPE_CHECKING:
    from pathlib import Path


def quota(tmp_path: Path, files: dict[str, str], membership: str) -> int | None:
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "membership").write_text(membership)
    return cgroup_quota(tmp_path / "cgroup", tmp_path / "membership")


@pytest.mark.parametrize(
    ("files", "membership", "expected"),
    [
        ({}, "", None),
        ({"cpu.max": "max 100000\n"}, "0::/\n", None),
        ({"cpu.max": "200000 100000\n"}, "0::/\n", 2),
        ({"cpu.max": "150000 100000\n"}, "0::/\n", 2),
        ({"cpu.max": "5000 100000\n"}, "0::/\n", 1),
        (
            {"a/cpu.max": "300000 100000\n", "a/b/cpu.max": "max 100000\n"},
            "0::/a/b\n",
            3,
        ),
        (
            {"a/cpu.max": "300000 100000\n", "a/b/cpu.max": "200000 100000\n"},
            "0::/a/b\n",
            2,
        ),
        ({"c/cpu.max": "100000 100000\n"}, "0::/a\n", None),
        (
            {
                "cpu/d/cpu.cfs_quota_us": "400000\n",
                "cpu/d/cpu.cfs_period_us": "100000\n",
            },
            "4:memory:/x\n3:cpu,cpuacct:/d\n",
            4,
        ),
        (
            {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
            "3:cpu:/\n",
            None,
        ),
    ],
)
def test_the_tightest_group_counts(
    tmp_path: Path, files: dict[str, str], membership: str, expected: int | None
) -> None:
    assert quota(tmp_path, files, membership) == expected


def test_no_control_groups(tmp_path: Path) -> None:
    assert cgroup_quota(tmp_path / "none", tmp_path / "none") is None


def test_affinity_bounds_the_threads() -> None:
    before = os.sched_getaffinity(0)
    one = {min(before)}
    try:
        os.sched_setaffinity(0, one)
        available_threads.cache_clear()
        assert available_threads() == 1
    finally:
        os.sched_setaffinity(0, before)
        available_threads.cache_clear()
    assert 1 <= available_threads() <= len(before)


def test_the_setting_wins() -> None:
    with config.override(num_threads=7):
        assert num_threads() == 7
    assert num_threads() == available_threads()
