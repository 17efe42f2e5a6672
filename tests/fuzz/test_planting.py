# SPDX-License-Identifier: Apache-2.0
"""Faults that are planted show where they differ, and are on where asked for."""

# What a planted file defines has no static type.
# pyright: basic

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.fuzz import planting, switches

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = '''\
"""A file."""

from __future__ import annotations

LIMIT = 3


def sign(a, b):
    """Tell of two numbers."""
    if a > 0 and b > 0:
        return 1
    if a == b:
        return 0
    total = []
    for x in (a, b):
        total.append(x)
    if any(x < -1 for x in total):
        total = [*(x for x in total if x < -1)]
    return -1 if sum(total) < 0 else 2
'''
FAULTS = {
    "half": planting.Fault("file.py", "a > 0 and b > 0", "a > 0"),
    "equal": planting.Fault("file.py", "    if a == b:\n        return 0\n", ""),
    "first": planting.Fault("file.py", "total.append(x)", "total.insert(0, -x)"),
    "less": planting.Fault("file.py", "sum(total) < 0", "sum(total) <= 0"),
    "some": planting.Fault("file.py", "x < -1 for x", "x < -2 for x"),
    "far": planting.Fault("file.py", "if x < -1)", "if x < -3)"),
    "limit": planting.Fault("file.py", "LIMIT = 3", "LIMIT = 4"),
}


def planted(folder: Path) -> Any:
    (folder / "file.py").write_text(SOURCE)
    assert planting.plant(folder, FAULTS) == ["limit"]
    space: dict[str, Any] = {}
    exec((folder / "file.py").read_text(), space)  # noqa: S102 (our own)
    return space["sign"]


def changed(name: str) -> Any:
    space: dict[str, Any] = {}
    exec(planting.changed(SOURCE, FAULTS[name]), space)  # noqa: S102 (our own)
    return space["sign"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((1, 2), set[str]()),
        ((1, 0), {"half", "first"}),
        ((0, 0), {"equal"}),
        ((-1, 1), {"first", "less"}),
        ((-2, 1), {"first", "some", "far"}),
    ],
)
def test_faults_show_where_both_ways_differ(
    given: tuple[int, int], shown: set[str], tmp_path: Path
) -> None:
    sign = planted(tmp_path)
    switches.SHOWN.clear()
    assert sign(*given) == changed("limit")(*given)
    assert shown == switches.SHOWN


@pytest.mark.parametrize("name", ["half", "equal", "first", "less", "some", "far"])
def test_a_fault_that_is_on_is_the_text_that_was_planted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign, wrong = planted(tmp_path), changed(name)
    monkeypatch.setattr(switches, "ACTIVE", name)
    for given in ((1, 2), (1, 0), (0, 0), (-1, 1), (-2, 1)):
        assert sign(*given) == wrong(*given)


def test_a_text_that_does_not_stand_there_once_is_refused() -> None:
    with pytest.raises(ValueError, match=r"file\.py has 2 times"):
        planting.changed("a a", planting.Fault("file.py", "a", "b"))
