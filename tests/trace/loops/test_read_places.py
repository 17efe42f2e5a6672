# SPDX-License-Identifier: Apache-2.0
"""Elements that turns of loops read are there, or IndexError is raised as by NumPy."""

# Programs are given, and give, what has no static type.
# pyright: basic

from __future__ import annotations

import itertools
import linecache
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (1, 2, 3, 4, 5, 7, 9)
ONE = """\
def program(x, n, m):
    s = x[0] * 0
    for i in range(n):
        s = s * 0.5 + x[{}]
    return s
"""
TWO = """\
def program(x, n, m):
    s = x[0] * 0
    for i in range(n):
        for j in range(m):
            s = s * 0.5 + x[{}]
    return s
"""
COUNTED = (
    "i", "-i - 1", "-2 * i", "i % 3", "(i + 1) % 3", "(5 - i) % 4",
    "i // 2", "(i + 1) // 2 - 2", "-(i // 2)", "i * i", "n * i", "m * i - 3",
    "i % 3 - 2", "np.minimum(i, 2)", "np.maximum(i, m) - 1", "n - i",
    "4 - i % 2", "2 * (i % 3)", "i & 1", "i & 3", "(i + 5) & 3", "(2 - i) & 1",
    "i >> 1", "i >> 2", "(i - 9) >> 1", "(i << 1) - 3", "min(i, 2)", "max(i, m) - 1",
    "min(n, i + 1)", "max(2 - i, 0)", "min(2, i)", "max(i, 2)", "i % n", "3 & i",
    "(i + 1) % (m + 1)", "(4 - i) % (m + 2)", "min(max(i, 1), 3)",
)  # fmt: skip
TOGETHER = (
    "i + j", "i - j", "2 * i + j", "i + m * j", "(i + j) % 3", "j - 2 * i - 1",
    "j % 2 + i", "i - i + j",
)  # fmt: skip


def made(template: str, index: str) -> Callable[..., Any]:
    text = template.format(index)
    file = f"<reads {index}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"np": np}
    exec(compile(text, file, "exec"), space)  # noqa: S102 (our own)
    return space["program"]


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return float(function(*args))
    except IndexError:
        return "IndexError"


@pytest.mark.parametrize(
    ("template", "index"),
    [(ONE, x) for x in COUNTED] + [(TWO, x) for x in TOGETHER],
)
def test_a_place_that_is_not_there_raises(template: str, index: str) -> None:
    plain = made(template, index)
    fused = nfuser.fuse(plain, backend="interpret")
    for size, n, m in itertools.product(SIZES, (0, 1, 2, 3, 5), (0, 1, 3)):
        x = np.arange(size) * 1.0 + 1
        expected = outcome(plain, x, n, m)
        sums = isinstance(expected, float)
        found = outcome(fused, x, n, m)
        assert found == (pytest.approx(expected) if sums else expected), (size, n, m)


@pytest.mark.parametrize(
    "index",
    [
        "np.asarray(i).astype(np.uint8)",
        "np.asarray(100 * i).astype(np.int8)",
        "np.asarray(i).astype(bool).astype(int)",
        "-np.asarray(i).astype(np.uint8)",
    ],
)
def test_integers_that_wrap_have_no_ends(index: str) -> None:
    plain = made(ONE, index)
    fused = nfuser.fuse(plain, backend="interpret")
    x = np.arange(256.0)
    assert fused(x, 600, 0) == plain(x, 600, 0)


def test_places_computed_in_many_steps_are_looked_at_once_each() -> None:
    lines = "".join("        a = a + a // 2\n" for _ in range(40))
    text = (
        "def program(x, n, m):\n    s = x[0] * 0\n    for i in range(n):\n"
        f"        a = i\n{lines}        s = s + x[np.minimum(a, 3)]\n    return s\n"
    )
    plain = made(text, "steps")
    x = np.arange(4.0)
    assert nfuser.fuse(plain, backend="interpret")(x, 3, 0) == plain(x, 3, 0)


def _row_of_others(x: Any) -> Any:
    for k in range(len(x)):
        x[k] = x[2]
        x[k] += 1
    return x


def _part_of_others(x: Any) -> Any:
    for k in range(len(x)):
        x[k, 1:] = x[2, 1:]
        x[k, 1:] *= 2
    return x


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("shape", [(5,), (5, 3)])
def test_a_row_that_is_put_into_others_is_read_as_it_is_by_then(
    backend: str, shape: tuple[int, ...]
) -> None:
    for program in (_row_of_others, _part_of_others)[: len(shape)]:
        given = np.arange(1.0 * math.prod(shape)).reshape(shape)
        got = nfuser.fuse(program, backend=backend)(given.copy())
        np.testing.assert_array_equal(got, program(given.copy()))
