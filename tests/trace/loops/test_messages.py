# SPDX-License-Identifier: Apache-2.0
"""What loops and branches of plain Python cannot be is said by name, with the line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import config
from nfuser.compiler.trace.loops import record
from nfuser.errors import NfuserError, VerifyError
from tests.fuzz import effect_programs
from tests.trace.loops import helpers

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(6.0)


def test_messages_name_the_variable_that_is_meant() -> None:
    def changed(x: Any) -> Any:
        count, total = 0, np.float32(0)
        for _ in range(len(x)):
            count = count + 1
            total = x
        return total + count

    def returned(x: Any) -> Any:
        if x[0] > 0:
            return x.sum()
        return x.sum(keepdims=True)

    with pytest.raises(NfuserError, match="start total with"):
        nfuser.fuse(changed)(np.ones(400))
    with pytest.raises(NfuserError, match="start a value with") as found:
        nfuser.fuse(returned)(np.ones(400))
    assert "_nf_" not in str(found.value)


@pytest.mark.parametrize("count", [100, 400])
def test_what_nfuser_itself_raises_by_mistake_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    def looped(x: Any) -> Any:
        for _ in range(len(x)):
            x = x + 1
        return x

    monkeypatch.setattr(record, "settled", None)
    with pytest.raises(VerifyError, match="a trace raised TypeError: 'NoneType'"):
        nfuser.fuse(looped)(np.ones(count))
    with config.override(verify=1):
        found = nfuser.fuse(looped)(np.ones(100))
    np.testing.assert_array_equal(found, looped(np.ones(100)))


def raises(x: Any) -> Any:
    if x.min() < 0:
        raise ValueError("negative")
    return np.sqrt(x)


def raises_when_dear(x: Any) -> Any:
    if x.min() < 0:
        total = x.sum()
        raise KeyError(float(np.pi), total)
    return np.sqrt(x)


def raises_in_a_loop(x: Any) -> Any:
    for _ in range(100):
        x = x * 0.9
        if x.sum() > 1e9:
            raise ArithmeticError
    return x


def caught(x: Any) -> Any:
    try:
        if x.min() < 0:
            raise ValueError("negative")
    except ValueError:
        return x * 0
    return np.sqrt(x)


def recursive(x: Any) -> Any:
    if x.sum() < 1e-3:
        return x
    return recursive(x / 2)


MESSAGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "raise": (raises, "return the condition, and raise after the call.*: negative"),
    "raise beside a sum": (raises_when_dear, "raise after the call.*KeyError"),
    "raise in a loop": (raises_in_a_loop, "raise after the call.*ArithmeticError"),
    "raise that is caught": (caught, "raise after the call.*ValueError"),
    "assert": (helpers.asserted, "assert it before or after the call"),
    "recursion": (recursive, "write a loop, as `while x.sum"),
    "int": (lambda x: np.zeros(int(x.max())), "pass what is to be a size.*argument"),
    "float": (lambda x: list(map(float, x)), "leave float.. out"),
    "item": (lambda x: (x[0] * 1j).item() + 1, "leave .item.. out"),
    "tolist": (lambda x: x.tolist(), "call .tolist.. of what the call returns"),
    "max": (lambda x: max(x, x[::-1]), r"write np.maximum\(a, b\)"),
    "min": (lambda x: min(x, x[::-1]), r"write np.minimum\(a, b\)"),
    "sorted": (lambda x: sorted(x), r"write np.sort\(x\)"),
    "nonzero": (lambda x: np.nonzero(x > 2)[0], r"use where\(condition, x, fill\)"),
    "where": (lambda x: np.where(x > 2), r"use where\(condition, x, fill\)"),
    "argwhere": (lambda x: np.argwhere(x > 2), r"use where\(condition, x, fill\)"),
    "a mask": (lambda x: x[x > 2], r"use where\(condition, x, fill\)"),
    "unique": (lambda x: np.unique(x), r"write y = np.sort\(x.ravel\(\)\)"),
    "a set": (lambda x: {x[0], x[1]}, "a traced array has no hash"),
    "format": (lambda x: f"{x.sum():.2f}", "format it after the call"),
    "delete": (lambda x: np.delete(x, [0, 2]), r"write np.concatenate\(\[x\[:k\]"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_it_is_said_what_to_write(name: str) -> None:
    function, message = MESSAGES[name]
    with pytest.raises(NfuserError, match=message):
        nfuser.fuse(function)(X.copy())


def test_a_branch_that_raises_is_taken_where_sizes_say_so() -> None:
    @nfuser.fuse
    def checked(x: Any) -> Any:
        if x.shape[0] < 3:
            raise ValueError("too short")
        if x.sum() > 1:
            x = x * 2
        return x

    np.testing.assert_array_equal(checked(X), X * 2)
    with pytest.raises(ValueError, match=r"^too short"):
        checked(X[:2])


def test_a_variable_may_be_bound_first_in_a_block() -> None:
    @nfuser.fuse
    def chosen(x: Any) -> Any:
        with np.errstate(all="ignore"):
            if x.sum() > 0:
                y = x / 2
            else:
                y = x * 2
        try:
            for i in range(3):
                last = y * i
                if last.sum() > 5:
                    z = last + 1
                else:
                    z = last - 1
        finally:
            w = x + 1
        return y, z, w  # pyright: ignore[reportPossiblyUnboundVariable]

    for x in (X, -X):
        wanted = chosen.__wrapped__(x)
        np.testing.assert_array_equal(chosen(x), wanted)


def test_recursion_that_ends_by_numbers_is_written_down() -> None:
    @nfuser.fuse
    def power(x: Any, n: int) -> Any:
        def of(n: int) -> Any:
            if n == 0:
                return x if x.sum() > 1 else x + 1
            return of(n - 1) * 2

        return of(n)

    np.testing.assert_array_equal(power(X, 3), X * 8)
    np.testing.assert_array_equal(power(X * 0, 3), X * 0 + 8)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # 400 turns are unrolled
def test_no_effect_is_done_once_instead_of_in_each_turn() -> None:
    tally = effect_programs.Tally()
    for seed in range(33):
        effect_programs.compare(*effect_programs.generate(seed), seed, tally)
    assert tally.agreed + tally.refused.total() == 66
