# SPDX-License-Identifier: Apache-2.0
"""Arrays from outside are assigned to in each call, as arguments are."""

from __future__ import annotations

import ctypes
from mmap import mmap
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, MutationError, NfuserError

if TYPE_CHECKING:
    from collections.abc import Callable

GRID = np.zeros((4, 5))
TABLE = np.arange(5.0)


class Model:
    """Arrays as attributes, in a dict and in a list, and numbers beside them."""

    def __init__(self) -> None:
        self.u = np.arange(20.0).reshape(4, 5)
        self.v = np.ones((4, 5))
        self.fields = {"p": np.zeros((4, 5))}
        self.levels = [np.zeros(5), np.ones(5)]
        self.dt = 0.25


def stencil(m: Model, x: Any) -> Any:
    m.u[1:-1, 1:-1] = 0.25 * (m.u[:-2, 1:-1] + m.u[2:, 1:-1] + x[1:-1, :-2])
    return m.u.sum()


def numbers_alone(m: Model, x: Any) -> Any:
    m.u += 1
    m.v[0] = 3.0
    m.u[:, 1] *= 2
    return x * m.u


def loop(m: Model, x: Any) -> None:
    for _ in range(100):
        m.u += m.dt * (x - m.u)
        m.u[0] = m.u[1]


def alias(m: Model, x: Any) -> Any:
    u = m.u
    u[0] = x[0]
    w = u.T
    w[1] = 2
    return m.u * 1


def in_containers(m: Model, x: Any) -> None:
    m.fields["p"][1:] += x[1:]
    m.levels[0][...] = m.levels[1] + x[0]
    for level in m.levels:
        level[0] = 7


def helper(u: Any, x: Any) -> None:
    u[-1] = x[-1]


def in_helper(m: Model, x: Any) -> None:
    helper(m.u, x)
    helper(m.v, m.u)


def by_functions(m: Model, x: Any) -> None:
    np.copyto(m.u, x)
    np.copyto(m.v, 2.0, where=x > 0.5)
    m.fields["p"].fill(1.5)
    np.add(m.fields["p"], m.u, out=m.v)
    np.multiply(m.v, 2.0, m.v)
    m.levels[0][...] = x[0]
    m.levels[0].sort()
    np.put(m.levels[1], [0, -1], 9)


def into_outputs(m: Model, x: Any) -> None:
    y = m.u
    y += x
    np.exp(x, out=m.v)
    np.add(m.u, 1, m.u)


def of_globals(m: Model, x: Any) -> Any:
    GRID[1:-1] = x[1:-1] + GRID[2:]
    GRID[0, 0] += 1.0
    return GRID[0] + TABLE


def branch(m: Model, x: Any) -> None:
    if x.sum() > 5:
        m.u[0] = x[0]
    else:
        m.u[1] = x[1]


FUNCTIONS = [
    *(stencil, numbers_alone, loop, alias, in_containers, in_helper),
    *(by_functions, into_outputs, of_globals, branch),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_call_writes(function: Callable[[Model, Any], Any]) -> None:
    fused = nfuser.fuse(function)
    ours, theirs = Model(), Model()
    rng = np.random.default_rng(3)
    for _ in range(4):
        x = rng.random((4, 5))
        before = GRID.copy()
        wanted = function(theirs, x)
        after = GRID.copy()
        GRID[...] = before
        found = fused(ours, x)
        np.testing.assert_allclose(GRID, after, rtol=1e-12)
        if wanted is not None:
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
        for one, other in _arrays(ours, theirs):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert fused.cache_info().traces == 1
    GRID[...] = 0


def _arrays(one: Model, other: Model) -> list[tuple[Any, Any]]:
    pairs = [(one.u, other.u), (one.v, other.v), (one.fields["p"], other.fields["p"])]
    return [*pairs, *zip(one.levels, other.levels, strict=True)]


def test_it_comes_back_as_itself() -> None:
    class Own:
        u = np.zeros(3)

        @nfuser.fuse
        def step(self, x: Any) -> Any:
            self.u[1:] = x[1:]
            return self.u, self.u[1:]

    own = Own()
    for _ in range(3):
        whole, part = own.step(np.arange(3.0))
        assert whole is own.u
        assert part.tolist() == [1, 2]


def test_another_array_of_the_name_is_written_next() -> None:
    model = Model()
    fused = nfuser.fuse(numbers_alone)
    x = np.ones((4, 5))
    fused(model, x)
    first, model.u = model.u, np.zeros((4, 5))
    kept = first.copy()
    fused(model, x)
    assert (first == kept).all()
    assert model.u[0].tolist() == [1, 2, 1, 1, 1]


def test_a_function_met_while_tracing_writes_in_each_call() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = np.zeros(2)

        def note(self) -> None:
            self.count[0] += 1

    counters = [Counter(), Counter()]

    @nfuser.fuse
    def noted(x: Any) -> Any:
        for counter in counters:
            getattr(counter, "note")()  # noqa: B009 (what it is shows when it runs)
        return x + 1

    for _ in range(3):
        noted(np.zeros(2))
    assert [c.count[0] for c in counters] == [3, 3]


def _part_elsewhere(m: Any, x: Any) -> None:
    m.u[0] = x[0]
    m.inner[0] = x[1]


def test_what_cannot_be_followed_is_refused_before_anything_is_written() -> None:
    model: Any = Model()
    model.inner = model.u[1:-1]
    before = model.u.copy()
    with pytest.raises(ArgumentError, match="share"):
        nfuser.fuse(_part_elsewhere)(model, np.ones((4, 5)))
    model.u.flags.writeable = False
    with pytest.raises(MutationError, match="read-only"):
        nfuser.fuse(stencil)(model, np.ones((4, 5)))
    assert (model.u == before).all()


def test_an_argument_that_shares_memory_with_it_is_refused() -> None:
    model = Model()
    with pytest.raises(ArgumentError, match="share"):
        nfuser.fuse(stencil)(model, model.u)


def test_a_list_may_not_change_in_a_loop() -> None:
    model = Model()

    def listed(m: Any, x: Any, n: int) -> None:
        for _ in range(n):
            m.levels.append(x)

    with pytest.raises(NfuserError, match="loop"):
        nfuser.fuse(listed)(model, np.ones(3), 400)
    assert len(model.levels) == 2


MEMORY = (ctypes.c_double * 3)(1, 2, 3)


def test_items_of_what_cannot_be_seen_are_not_set_once() -> None:
    class Ours(ctypes.c_double * 3):
        """A class of the user's, whose items are set by its library."""

    ours = Ours(1, 2, 3)
    mapped = mmap(-1, 16)

    def of_ctypes(x: Any) -> Any:
        MEMORY[0] = 7
        return x + MEMORY[1]

    def of_a_file(x: Any) -> Any:
        mapped[0] = 7
        return x + 1

    def of_a_class_made_of_one(x: Any) -> Any:
        ours[0] += 7
        return x + 1

    for function in of_ctypes, of_a_file, of_a_class_made_of_one:
        fused = nfuser.fuse(function)
        for _ in range(2):
            with pytest.raises(MutationError, match="sets items of a") as found:
                fused(np.ones(3))
            assert "[0]" in str(found.value)
    assert (MEMORY[0], mapped[0], ours[0]) == (1, 0, 1)


def test_items_of_what_the_function_makes_are_set() -> None:
    def function(x: Any) -> Any:
        memory = (ctypes.c_double * 3)(1, 2, 3)
        memory[0] = MEMORY[1]
        return x + memory[0]

    np.testing.assert_array_equal(nfuser.fuse(function)(np.ones(3)), np.full(3, 3.0))
