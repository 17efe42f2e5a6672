# SPDX-License-Identifier: Apache-2.0
"""Forms of statements, and what is compared of their calls."""

# Arrays of any dtype have no static type.
# pyright: basic

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from nfuser.errors import CompileError, DTypeError, TraceError, VerifyError
from tests.fuzz import form_programs
from tests.fuzz.comparing import (
    Free,
    changed,
    difference,
    is_refusal,
    leaves,
    own,
    sharing,
)
from tests.fuzz.form_texts import LOOPS, VALUES, WRITES

_TABLE = np.arange(12.0).reshape(3, 4)
_READ_ONLY = _TABLE.copy()
_READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(("backend", "programs"), [("cpu", 12), ("interpret", 30)])
def test_programs_of_forms_are_right(backend: str, programs: int) -> None:
    tally: Counter[str] = Counter()
    for seed in range(500, 500 + programs):
        form_programs.compare(seed, backend, tally)
    assert tally["agreed"] > 5 * tally["refused"]


def test_each_form_can_be_run() -> None:
    missing = [
        form
        for form in (*VALUES, *WRITES, *LOOPS)
        if not any(form_programs.fits(random.Random(k), form) for k in range(9))
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (0.0, -0.0),
        (1.0, np.float64(1)),
        (1, True),
        (np.float64(1), np.float32(1)),
        (np.array([0.0, 1.0]), np.array([-0.0, 1.0])),
        (np.array([np.nan, np.inf]), np.array([np.nan, -np.inf])),
        (np.array([1e-9, 1.0]), np.array([2e-9, 1.0])),
        (np.array([1, 2]), np.array([1, 2], np.int32)),
        (np.array([1 + 1j]), np.array([1 - 1j])),
        (_TABLE, np.asfortranarray(_TABLE)),
        (_TABLE, _READ_ONLY),
        (_TABLE, _TABLE[:, :3]),
        (None, 0),
    ],
)
def test_what_differs_is_told(wanted: Any, found: Any) -> None:
    assert difference(wanted, wanted) is None
    assert difference(wanted, found) is not None


def test_what_is_free_is_not_told() -> None:
    free = Free(wide=True, signs=True, kinds=True, lies=True)
    assert difference(_TABLE, np.asfortranarray(_TABLE) * (1 + 1e-7), free) is None
    assert difference(0, np.float64(-0.0), free) is None
    assert difference(_TABLE, _TABLE + 1e-3, free) is not None


def test_containers_and_the_order_in_them_are_told() -> None:
    nests: list[Any] = [(1, 2), [1, 2], {"a": 1, "b": 2}, {"b": 1, "a": 2}, [], ()]
    told = [[name for name, _ in leaves(x, "")] for x in nests]
    assert all(told.count(x) == 1 for x in told)


def test_shared_memory_and_later_changes_are_told() -> None:
    x = np.zeros(6)
    assert sharing([x, x[1:], x[::2], x[1::2], 3]) == {
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 3),
    }
    kept = own([("", x), ("", x[:2].copy())], [])
    assert changed(kept) is None
    x[5] = 1
    assert changed(kept) is not None


def test_what_says_that_the_package_is_wrong_is_no_refusal() -> None:
    assert all(map(is_refusal, (TraceError("x"), DTypeError("x"))))
    assert not any(map(is_refusal, (VerifyError("x"), CompileError("x"), ValueError())))
