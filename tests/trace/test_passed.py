# SPDX-License-Identifier: Apache-2.0
"""What a function puts into lists and dicts that it is passed is in the caller's."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import MutationError

X = np.arange(4.0)
_KEPT = (np.ndarray, list, dict)


def alike(one: Any, other: Any) -> None:
    """Hold two nests against each other: kinds, keys in order, elements."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        alike(list(one.values()), list(other.values()))
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            alike(a, b)
    else:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def parts(nest: Any) -> list[Any]:
    """Return all objects of a nest, itself first."""
    held = nest.values() if isinstance(nest, dict) else nest
    inside = held if isinstance(nest, (dict, list, tuple)) else ()
    return [nest, *(x for part in inside for x in parts(part))]


def agree(function: Any, make: Any) -> None:
    """Hold a function against plain Python, also in what is one object with what."""
    fused = nfuser.fuse(function)
    for _ in range(3):  # a new trace, and its repetitions
        theirs, mine = make(), make()
        for _ in range(2):
            wanted, found = function(*theirs), fused(*mine)
            alike([found, mine], [wanted, theirs])
            assert same(found, mine) == same(wanted, theirs)


def same(found: Any, given: Any) -> list[bool]:
    """Return which arrays, lists and dicts are one object."""
    listed = [x for x in parts([found, given]) if isinstance(x, _KEPT)]
    return [a is b for a in listed for b in listed]


def test_an_item_is_set_in_the_dict_of_the_caller() -> None:
    def step(state: Any, x: Any) -> Any:
        state["u"] = state["u"] + x
        return state["u"] * 2

    agree(step, lambda: ({"u": X.copy(), "v": X.copy()}, X.copy()))


def test_an_array_that_is_returned_and_put_is_one() -> None:
    def step(state: Any, x: Any) -> Any:
        state["u"] = new = x * 2
        return new

    state = {"u": X}
    found = nfuser.fuse(step)(state, X)
    assert found is state["u"]


def test_arrays_that_change_places_are_the_very_arrays() -> None:
    def swap(pair: Any) -> None:
        pair[0], pair[1] = pair[1], pair[0]
        pair[0] += 1

    agree(swap, lambda: ([X.copy(), X + 5],))
    pair = [X.copy(), X + 5]
    first, second = pair
    nfuser.fuse(swap)(pair)
    assert pair[0] is second
    assert pair[1] is first


def test_lists_grow_and_shrink() -> None:
    def log(history: Any, x: Any) -> Any:
        history.append(x.sum())
        if len(history) > 2:
            history.pop(0)
        history.reverse()
        return history

    agree(log, lambda: ([], X.copy()))


def test_nests_change_at_any_depth() -> None:
    def step(tree: Any, x: Any) -> Any:
        tree["layers"][0]["w"] = tree["layers"][0]["w"] - x
        tree["new"] = {"a": [x * 3, (x + 1, None)], "b": x}
        tree.pop("old", None)
        return tree["layers"]

    agree(step, lambda: ({"old": X.copy(), "layers": [{"w": X.copy()}]}, X.copy()))


def test_numbers_are_put_as_the_numbers_they_are() -> None:
    def count(state: Any, x: Any) -> None:
        state["n"] += 1
        state["t"] = state["t"] + 0.5
        state["mean"] = x.mean()
        state["name"], state["old"] = state["old"], state["name"]

    agree(
        count,
        lambda: ({"n": 3, "t": 1.0, "mean": 0.0, "name": "a", "old": "b"}, X.copy()),
    )


def test_an_ordered_dict_keeps_the_order_of_plain_python() -> None:
    def step(state: Any, x: Any) -> None:
        first = state.pop("a")
        state["b"] = x * 2
        state["a"] = first
        state.move_to_end("b")

    agree(step, lambda: (OrderedDict(a=X.copy(), b=X.copy(), c=X.copy()), X.copy()))


def test_keywords_and_tuples_lead_to_them() -> None:
    def step(pair: Any, *, state: Any) -> None:
        pair[1]["u"] = pair[0] * 2
        state["v"] = pair[0] * 3

    fused = nfuser.fuse(step)
    for _ in range(2):
        one, other = {"u": X}, {"v": X}
        fused((X, one), state=other)
        np.testing.assert_array_equal(one["u"], X * 2)
        np.testing.assert_array_equal(other["v"], X * 3)


def test_nothing_is_changed_where_the_call_fails() -> None:
    def step(state: Any, x: Any, k: Any) -> Any:
        state["u"] = x * 2
        x[k] = 0.0

    state = {"u": X}
    with pytest.raises(IndexError):
        nfuser.fuse(step)(state, X.copy(), np.array([9]))
    assert state["u"] is X


def test_what_was_put_before_an_error_is_there() -> None:
    def step(state: Any, x: Any) -> Any:
        state["u"] = x * 2
        raise ValueError("after it")

    for _ in range(2):
        state = {"u": X}
        with pytest.raises(ValueError, match="after it"):
            nfuser.fuse(step)(state, X)
        np.testing.assert_array_equal(state["u"], X * 2)


def test_a_dict_that_is_passed_twice_is_refused() -> None:
    def step(one: Any, other: Any) -> Any:
        one["u"] = one["u"] * 2
        return other["u"]

    fused = nfuser.fuse(step)
    state = {"u": X}
    with pytest.raises(MutationError, match="passed twice"):
        fused(state, state)
    assert state["u"] is X
    np.testing.assert_array_equal(fused({"u": X}, {"u": X + 1}), X + 1)


def test_what_maps_or_differentiates_refuses_it() -> None:
    def step(state: Any) -> Any:
        state["u"] = state["u"] * 2
        return state["u"].sum()

    with pytest.raises(MutationError, match="return what is put"):
        nfuser.grad(step)({"u": X})
    with pytest.raises(MutationError, match="return what is put"):
        nfuser.vmap(step)({"u": np.ones((3, 2))})


def test_a_dict_beside_what_is_differentiated_is_changed() -> None:
    def loss(x: Any, seen: Any) -> Any:
        seen["x"] = x * 2
        return (x * x).sum()

    seen: dict[str, Any] = {}
    np.testing.assert_array_equal(nfuser.grad(loss)(X, seen), X * 2)
    np.testing.assert_array_equal(seen["x"], X * 2)


def test_outputs_that_are_given_are_refused() -> None:
    def step(state: Any, x: Any) -> Any:
        state["u"] = x * 2
        return x + 1

    with pytest.raises(MutationError, match="out="):
        nfuser.fuse(step).bind({"u": X}, X, out=np.empty(4))
    bound = nfuser.fuse(step).bind(state := {"u": X}, X)
    bound()
    np.testing.assert_array_equal(state["u"], X * 2)


def a_program(seed: int) -> Any:
    """Return a function that changes a nest in ways that ``seed`` says."""

    rng = np.random.default_rng(seed)
    steps = tuple(map(int, rng.integers(9, size=rng.integers(1, 7))))
    last = int(rng.integers(3))

    def change(state: Any, more: Any, x: Any) -> Any:
        made = [x * 2, more[0]]
        for k, step in enumerate(steps):
            match step:
                case 0:
                    state["u"] = made[-1] + k
                case 1:
                    more.append(made[k % len(made)])
                case 2:
                    state["inner"]["v"], more[0] = more[0], state["inner"]["v"]
                case 3:
                    made.append(more.pop() if len(more) > 1 else state["u"] * 3)
                case 4:
                    state["u"] += 1
                case 5:
                    state[f"new{k}"] = [made[0], {"deep": (made[-1], k, 2.5)}]
                case 6:
                    state["inner"] = dict(state["inner"], again=state["inner"])
                case 7:
                    more.insert(0, state.pop("w", x - k))
                case _:
                    state["list"] = more
        return [state["inner"], more, made[0]][last]

    return change


@pytest.mark.parametrize("seed", range(40))
def test_random_changes_are_those_of_plain_python(seed: int) -> None:
    def make() -> Any:
        state = {"u": X.copy(), "inner": {"v": X + 1}, "w": X + 2}
        return state, [X + 3, X + 4], X + 5

    fused, plain = nfuser.fuse(a_program(seed)), a_program(seed)
    for _ in range(2):
        theirs, mine = make(), make()
        wanted, found = plain(*theirs), fused(*mine)
        alike([found, *mine], [wanted, *theirs])


OUTSIDE: dict[str, Any] = {"u": X}
LOGGED: list[Any] = []


def test_a_dict_that_is_known_from_outside_as_well_is_refused() -> None:
    def step(state: Any, x: Any) -> Any:
        state["u"] = x * 2
        return OUTSIDE["u"]

    fused = nfuser.fuse(step)
    for _ in range(2):
        with pytest.raises(MutationError, match="by a name from outside"):
            fused(OUTSIDE, X)
        assert OUTSIDE["u"] is X
    other = {"u": X}
    np.testing.assert_array_equal(fused(other, X + 1), X)
    np.testing.assert_array_equal(other["u"], X * 2 + 2)


class Model:
    def __init__(self) -> None:
        self.state = {"u": X}

    def step(self, state: Any, x: Any) -> Any:
        state["u"] = x * 2
        return self.state["u"] + 1


def test_so_is_a_dict_of_an_object_that_is_passed() -> None:
    model, fused = Model(), nfuser.fuse(Model.step)
    with pytest.raises(MutationError, match="by a name from outside"):
        fused(model, model.state, X)
    np.testing.assert_array_equal(fused(model, {"u": X}, X), X + 1)


@pytest.mark.filterwarnings("ignore:log keeps a traced array")
def test_a_list_that_is_changed_under_another_name_is_refused_and_put_back() -> None:
    def log(history: Any, x: Any) -> None:
        history.append(x)
        LOGGED.append(x * 2)

    LOGGED[:] = [X]
    with pytest.raises(MutationError, match="under the name of the argument"):
        nfuser.fuse(log)(LOGGED, X)
    assert len(LOGGED) == 1
    assert LOGGED[0] is X


def test_what_only_changes_places_takes_no_kernel() -> None:
    def turn(pair: Any) -> None:
        pair.reverse()

    def turn_and_raise(pair: Any) -> None:
        pair.reverse()
        raise ValueError("after it")

    pair = [X, X + 1]
    first, second = pair
    nfuser.fuse(turn)(pair)
    assert pair[0] is second
    with pytest.raises(ValueError, match="after it"):
        nfuser.fuse(turn_and_raise)(pair)
    assert pair[0] is first
