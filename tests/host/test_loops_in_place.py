# SPDX-License-Identifier: Apache-2.0
"""Loops change the caller's arrays in place, where nobody else has them meanwhile."""

# Carried values have no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.dtypes import DType
from nfuser.execution.host.call.loops_in_place import loops_in_place
from nfuser.execution.host.call.program import (
    AllocateSlot,
    CallLibrary,
    CallProgram,
    FreeSlot,
    Operand,
    Repeat,
    Slot,
    SlotPart,
    text,
)
from tests.host.launches import launch

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.execution.host.call.program import LaunchKernel

A, T, U = (Slot(name, (4,), (1,), DType.F32) for name in ("a", "t", "u"))


def copy(source: Slot, target: Slot) -> LaunchKernel:
    return launch(source, target, is_copy=True)


def loop(*body: Any, home: Slot = A, swaps: Any = ()) -> Repeat:
    return Repeat(body, swaps, None, None, 0, None, ((T, SlotPart(home)),))


def changed(*body: Any, odd: frozenset[Slot] = frozenset()) -> list[str] | None:
    """Return the lines of a program in its new form, or None if it is the old one."""
    program = CallProgram((A,), (A,), (AllocateSlot(T), *body, FreeSlot(T)))
    found = loops_in_place(program, odd)
    if found is program:
        return None
    return [line.split(" grid")[0].strip() for line in text(found).splitlines()[1:-1]]


def test_a_loop_has_the_array_instead_of_its_copy() -> None:
    found = changed(copy(A, T), loop(launch(T, U, T)), copy(T, A))
    assert found == ["repeat :", "launch kernel(a, u, a)"]


def test_what_is_done_if_a_turn_fails_is_done_already() -> None:
    body = (AllocateSlot(T), copy(A, T), loop(launch(T, T)), copy(T, A), FreeSlot(T))
    (found,) = loops_in_place(CallProgram((A,), (A,), body), ()).body
    assert isinstance(found, Repeat)
    assert found.homes == ()


SOLVE = CallLibrary("solve", (Operand(SlotPart(U)),), U)


@pytest.mark.parametrize(
    "body",
    [
        (copy(A, T), loop(launch(A, T)), copy(T, A)),  # what was there before is read
        (copy(A, T), loop(launch(T, T)), launch(A, U), copy(T, A)),
        (copy(A, T), loop(launch(T, T), swaps=((T, U),)), copy(T, A)),
        (copy(A, T), loop(launch(T, T), home=U), copy(T, A)),
        (copy(A, T), loop(launch(T, T)), SOLVE, copy(T, A)),  # may come before the loop
        (copy(A, T), launch(T, T), SOLVE, loop(launch(T, T)), copy(T, A)),
        (copy(A, T), loop(launch(T, T)), copy(T, A), launch(T, U)),
        (launch(A, T), loop(launch(T, T)), copy(T, A)),
    ],
)
def test_an_array_that_something_else_sees_keeps_its_copy(
    body: tuple[Any, ...],
) -> None:
    assert changed(*body) is None


def test_what_fails_before_the_loop_has_changed_nothing() -> None:
    found = changed(copy(A, T), SOLVE, loop(launch(T, T)), copy(T, A))
    assert found is not None
    assert "launch kernel(a, a)" in found


def test_kernels_made_for_even_addresses_get_no_others() -> None:
    body = (copy(A, T), loop(launch(T, T)), copy(T, A))
    assert changed(*body) is not None
    assert changed(*body, odd=frozenset({A})) is None


def relaxed(n: int, a: Any, b: Any) -> None:
    for _ in range(n):
        b[1:-1] = 0.5 * (a[2:] + a[:-2])
        a[1:-1] = 0.5 * (b[2:] + b[:-2])


def kept(n: int, a: Any, b: Any) -> Any:
    before = a * 2
    for _ in range(n):
        b[1:-1] = 0.5 * (a[2:] + a[:-2])
        a[1:-1] = 0.5 * (b[2:] + b[:-2])
    return before + a, a[::-1] - b


def twice(n: int, a: Any, b: Any) -> Any:
    relaxed(n, a, b)
    c = a - b
    relaxed(n, b, a)
    return c


def first(n: int, a: Any, b: Any) -> Any:
    c = np.linalg.inv(a[:4].reshape(2, 2))
    relaxed(n, a, b)
    return c


def last(n: int, a: Any, b: Any) -> Any:
    relaxed(n, a, b)
    return np.linalg.inv(np.outer(a[:3], b[:3]))


@pytest.mark.parametrize("function", [relaxed, kept, twice, first, last])
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_arrays_are_what_numpy_leaves(
    function: Callable[..., Any], offset: int, step: int
) -> None:
    fused = nfuser.fuse(function)
    for n in (70, 0, 71):
        for fill in (0.0, 1.0):  # an array of zeros has no inverse
            states: list[list[np.ndarray[Any, Any]]] = []
            for call in (function, fused):
                memory = np.linspace(0.0, 1.0, 200) ** 2 * fill
                a, b = memory[offset:90:step], memory[100 + offset : 190 : step]
                a, b = a[:40], b[:40] if step > 0 else memory[190:100:-1][:40]
                a = a if step > 0 else memory[89 - offset :: -1][:40]
                try:
                    found = call(n, a, b)
                except np.linalg.LinAlgError:
                    found = None
                made = found if isinstance(found, tuple) else (found,)
                states.append([memory, *(x for x in made if x is not None)])
            for one, other in zip(*states, strict=True):
                np.testing.assert_array_equal(one, other)
