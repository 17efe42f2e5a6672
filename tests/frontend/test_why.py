# SPDX-License-Identifier: Apache-2.0
"""``why`` says the one thing that was new about the last call that compiled."""

# Arguments of the functions here may be anything.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import gc
from typing import Any, NamedTuple

import numpy as np
import pytest

import nfuser
from nfuser import config

X = np.ones(5)
SCALE: Any = 2.0
WEIGHT = np.ones(5)


class Pair(NamedTuple):
    left: Any
    right: Any


def summed(x: Any, *rest: Any, **named: Any) -> Any:
    while not hasattr(x, "shape"):
        x = next(iter(x.values() if isinstance(x, dict) else x))
    return x * 2


def sliced(x: Any, where: Any = None, *, scale: Any = 1) -> Any:
    return (x if where is None or isinstance(where, str) else x[where]) * scale


CASES: dict[str, tuple[Any, tuple[Any, dict[str, Any]], tuple[Any, dict[str, Any]]]] = {
    "the dtype of x is float32, traced before as float64": (
        sliced,
        ((X,), {}),
        ((X.astype(np.float32),), {}),
    ),
    "x has 2 axes, traced before with 1": (sliced, ((X,), {}), ((X[:, None],), {})),
    "the dtype of x is int64, traced before as float64; x has 1 axis, "
    "traced before with 3": (
        sliced,
        ((X[:, None, None],), {}),
        ((X.astype(int),), {}),
    ),
    "where is slice(1, 3, None), traced before as slice(0, 2, None)": (
        sliced,
        ((X, slice(0, 2)), {}),
        ((X, slice(1, 3)), {}),
    ),
    "where is 'b', traced before as 'a'": (sliced, ((X, "a"), {}), ((X, "b"), {})),
    "where is given, traced before without it": (sliced, ((X,), {}), ((X, "a"), {})),
    "where is None, traced before as 'a'": (sliced, ((X, "a"), {}), ((X, None), {})),
    "scale is not given, traced before with it": (
        sliced,
        ((X,), {"scale": 2}),
        ((X,), {}),
    ),
    "scale is of class float, traced before as of class int": (
        sliced,
        ((X,), {"scale": 2}),
        ((X,), {"scale": 2.0}),
    ),
    "scale is an array of numpy, traced before as of class int": (
        sliced,
        ((X,), {"scale": 2}),
        ((X,), {"scale": X}),
    ),
    "x is a tuple, traced before as a list": (summed, (([X],), {}), (((X,),), {})),
    "the dtype of x['a'][1] is float32, traced before as float64": (
        summed,
        (({"a": [X, X]},), {}),
        (({"a": [X, X.astype(np.float32)]},), {}),
    ),
    "x['b'] is given, traced before without it": (
        summed,
        (({"a": X},), {}),
        (({"a": X, "b": [X, X]},), {}),
    ),
    "the keys of x come in another order": (
        summed,
        (({"a": X, "b": X},), {}),
        (({"b": X, "a": X},), {}),
    ),
    "the named arguments come in another order": (
        summed,
        ((X,), {"a": X, "b": X}),
        ((X,), {"b": X, "a": X}),
    ),
    "x.right is of class int, traced before as an array of numpy": (
        summed,
        ((Pair(X, X),), {}),
        ((Pair(X, 1),), {}),
    ),
    "rest[1] is given, traced before without it": (
        summed,
        ((X, 1), {}),
        ((X, 1, X), {}),
    ),
}


@pytest.mark.parametrize("wanted", CASES)
def test_what_is_new_of_arguments_is_named(wanted: str) -> None:
    function, (args, kwargs), (other, named) = CASES[wanted]
    fused = nfuser.fuse(function)
    fused(*args, **kwargs)
    fused(*other, **named)
    assert fused.cache_info().traces == 2
    assert fused.why() == wanted


def test_the_nearest_of_all_that_was_traced_says_what_is_new() -> None:
    fused = nfuser.fuse(sliced)
    for x, where in ((X, "a"), (X[None].astype(int), "b"), (X[None], "c")):
        fused(x, where)
    fused(X, "b")
    assert fused.why() == "where is 'b', traced before as 'a'"


def test_many_things_that_are_new_are_counted() -> None:
    fused = nfuser.fuse(summed)
    fused(X, 1, 2, 3, 4, 5)
    fused(X, 1.0, 2.0, 3.0, 4.0, 5.0)
    first, *_, more = fused.why().split("; ")
    assert first == "rest[0] is of class float, traced before as of class int"
    assert more == "2 more"


def test_objects_are_told_apart_by_their_class() -> None:
    class Layer:
        def __init__(self, weight: float) -> None:
            self.weight = weight

        @nfuser.fuse
        def apply(self, x: Any) -> Any:
            return x * self.weight

    one, other = Layer(2.0), Layer(3.0)
    one.apply(X)
    other.apply(X)
    why: Any = Layer.apply.why
    assert why() == "self is an object of class Layer that was not traced before"
    one.weight = 4.0
    one.apply(X)
    assert why() == "self.weight, which it reads outside of its arguments, changed"
    del one, other
    gc.collect()
    Layer(1.0).apply(X)
    assert why() == "the objects that it was traced for are gone"


def test_a_value_that_python_read_is_named_with_its_line() -> None:
    def repeated(x: Any, count: int) -> Any:
        return x * int(format(count))  # a line

    fused = nfuser.fuse(repeated)
    fused(X, 3)
    fused(X, 4)
    head, _, line = fused.why().partition(", read by ")
    assert head == "count is 4, traced before as 3"
    assert line.startswith("`return x * int(format(count))  # a line` at ")


def test_a_size_that_python_asked_for_is_told_by_its_line() -> None:
    def chosen(x: Any) -> Any:
        return x * 2 if x.shape[0] > 3 else x

    fused = nfuser.fuse(chosen)
    fused(X)
    fused(X[:2])
    head, _, line = fused.why().partition(", read by ")
    assert head == "3 < x.shape[0] is False, traced before as True"
    assert line.startswith("`return x * 2 if x.shape[0] > 3 else x` at ")


def test_what_is_read_from_outside_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = nfuser.fuse(lambda x: x * SCALE + WEIGHT)
    fused(X)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    fused(X)
    assert fused.why() == "SCALE, which it reads outside of its arguments, changed"
    monkeypatch.setitem(globals(), "WEIGHT", np.ones(5, np.float32))
    fused(X)
    assert fused.why() == "the dtype of WEIGHT is float32, traced before as float64"


def test_a_first_call_after_a_clear_and_one_whose_trace_had_to_go_say_so() -> None:
    fused = nfuser.fuse(sliced)
    fused(X)
    fused.cache_clear()
    fused(X)
    assert fused.why() == "sliced was called for the first time since cache_clear()"
    with config.override(cache_size=1):
        fused(X, "a")
        fused(X, "b")
        fused(X, "a")
        assert fused.why() == "its trace had to go: NFUSER_CACHE_SIZE is 1"


def test_an_equal_function_says_what_was_new_to_it() -> None:
    one, other = (nfuser.fuse(lambda x: np.tanh(x) * 1.25) for _ in range(2))
    for fused in (one, other):
        fused(X)
        fused(X[:1])
        assert fused.why() == (
            "a new concretization: the size of argument 0 along axis 0 is 1"
        )
    assert other.cache_info().compiled == 0


def test_a_heuristic_says_what_it_was_before() -> None:
    fused = nfuser.fuse(lambda x: x.sum(axis=1))
    x = np.ones((40, 50), np.float32)
    fused(x)
    fused(x.T)
    told = fused.why()
    assert told.startswith("a new heuristic: reduction(")
    new, _, old = told.partition(": ")[2].partition(", before reduction(")
    assert old
    assert new != f"reduction({old}"


def test_a_definition_that_shares_says_what_was_new_to_it() -> None:
    def made() -> nfuser.FusionDefinition:
        with nfuser.FusionDefinition() as fd:
            x = fd.define_tensor([-1], [True], nfuser.DataType.Double)
            fd.add_output(fd.ops.add(fd.ops.exp(x), 3.5))
        return fd

    made().execute([X])
    second = made()
    second.execute([X])
    second.execute([X[:1]])
    assert second.why() == (
        "a new concretization: the size of argument 0 along axis 0 is 1"
    )
