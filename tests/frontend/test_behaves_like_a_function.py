# SPDX-License-Identifier: Apache-2.0
"""A fused function behaves as the function that it was."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import sys
import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import nfuser

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@nfuser.fuse
def scaled(x: Any, a: float = 2.0, *rest: Any, shift: float = 0.0, **more: Any) -> Any:
    """Scale and shift."""
    return x * a + shift + sum(rest) + sum(more.values())


class Layer:
    """Something with a fused method of each kind."""

    factor = 10.0

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.weight = np.full(3, scale, np.float32)

    @nfuser.fuse
    def apply(self, x: Any, shift: float = 1.0) -> Any:
        """Scale by what the layer holds."""
        return x * self.scale + self.weight + shift

    @classmethod
    @nfuser.fuse
    def of_class(cls, x: Any) -> Any:
        """Scale by the class's factor."""
        return x * cls.factor

    @nfuser.fuse
    @classmethod
    def of_class_too(cls, x: Any) -> Any:
        """Shift by the class's factor."""
        return x + cls.factor

    @staticmethod
    @nfuser.fuse
    def of_none(x: Any) -> Any:
        """Double."""
        return x * 2

    @nfuser.fuse
    @staticmethod
    def of_none_too(x: Any) -> Any:
        """Triple."""
        return x * 3


class Steeper(Layer):
    """A subclass with another factor."""

    factor = 100.0


def test_a_method_is_bound_to_its_instance() -> None:
    first, second = Layer(2.0), Layer(5.0)
    for _ in range(2):
        np.testing.assert_array_equal(first.apply(X), X * 2 + 2 + 1)
        np.testing.assert_array_equal(second.apply(X, shift=0.0), X * 5 + 5)
        np.testing.assert_array_equal(Layer.apply(first, X), X * 2 + 2 + 1)
    first.scale = 3.0
    np.testing.assert_array_equal(first.apply(X), X * 3 + 2 + 1)
    first.weight = np.zeros(3, np.float32)
    np.testing.assert_array_equal(first.apply(X), X * 3 + 1)
    assert Layer.apply is Layer.__dict__["apply"]
    assert first.apply.__self__ is first


def test_class_methods_see_their_class() -> None:
    kinds: list[tuple[Any, int]] = [(Layer, 10), (Steeper, 100), (Layer, 10)]
    for cls, factor in kinds:
        np.testing.assert_array_equal(cls.of_class(X), X * factor)
        np.testing.assert_array_equal(cls.of_class_too(X), X + factor)
        np.testing.assert_array_equal(cls(1.0).of_class(X), X * factor)


def test_static_methods_see_nothing() -> None:
    for holder in (Layer, Layer(1.0)):
        np.testing.assert_array_equal(holder.of_none(X), X * 2)
        np.testing.assert_array_equal(holder.of_none_too(X), X * 3)


def test_an_instance_is_not_kept_alive() -> None:
    layer = Layer(2.0)
    layer.apply(X)
    layer.apply(X)
    dead = weakref.ref(layer)
    del layer
    gc.collect()
    assert dead() is None


def test_a_new_instance_is_not_taken_for_a_dead_one() -> None:
    class Short:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @nfuser.fuse
        def apply(self, x: Any) -> Any:
            return x * self.scale

    for scale in range(6):
        np.testing.assert_array_equal(Short(scale).apply(X), X * scale)
    gc.collect()
    assert len(Short.apply.cache_table().splitlines()) <= 3


def test_instances_that_compare_equal_stay_apart() -> None:
    @dataclass(frozen=True)
    class Equal:
        name: str
        scale: float = field(compare=False)

        @nfuser.fuse
        def apply(self, x: Any) -> Any:
            return x * self.scale

    first, second = Equal("a", 2.0), Equal("a", 3.0)
    assert first == second
    for _ in range(2):
        np.testing.assert_array_equal(first.apply(X), X * 2)
        np.testing.assert_array_equal(second.apply(X), X * 3)


def test_spelling_of_arguments_makes_no_difference() -> None:
    expected = X * 3 + 1
    scaled.cache_clear()
    for got in (scaled(X, 3.0, shift=1.0), scaled(x=X, a=3.0, shift=1.0)):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(scaled(shift=1.0, a=3.0, x=X), expected)
    assert scaled.cache_info().traces == 1
    np.testing.assert_array_equal(scaled(X), X * 2)
    np.testing.assert_array_equal(scaled(X, 1.0, 2.0, X), X + 2 + X)
    np.testing.assert_array_equal(scaled(X, p=X, q=1.0), X * 2 + X + 1)


def test_wrong_arguments_raise_what_python_raises() -> None:
    call: Any = scaled
    with pytest.raises(TypeError, match=r"scaled\(\)"):
        call(X, 1.0, x=X)
    with pytest.raises(TypeError, match=r"scaled\(\)"):
        call()


def test_it_looks_like_the_function() -> None:
    fused: Any = scaled
    plain = fused.__wrapped__
    assert inspect.signature(scaled) == inspect.signature(plain)
    assert list(inspect.signature(Layer(1.0).apply).parameters) == ["x", "shift"]
    assert (fused.__name__, fused.__doc__) == ("scaled", "Scale and shift.")
    assert scaled.__module__ == __name__
    assert callable(scaled)
    assert "scaled" in repr(scaled)
    assert inspect.unwrap(scaled) is plain


def test_it_is_pickled_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(scaled=scaled))
    assert pickle.loads(pickle.dumps(scaled)) is scaled
    local = nfuser.fuse(lambda x: x)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.loads(pickle.dumps(local))


def test_copies_are_the_function_itself() -> None:
    assert copy.copy(scaled) is scaled
    assert copy.deepcopy({"f": [scaled]})["f"][0] is scaled
    layer = copy.deepcopy(Layer(4.0))
    np.testing.assert_array_equal(layer.apply(X), X * 4 + 4 + 1)


class Pair(NamedTuple):
    """Two arrays."""

    left: Any
    right: Any


def test_nested_containers_come_in_and_go_out() -> None:
    @nfuser.fuse
    def nested(tree: Any, pair: Pair, nothing: None = None) -> Any:
        a, (b, more) = tree["a"], tree["rest"]
        assert nothing is None
        return {
            "sum": [a + b, (more[0], None)],
            "pair": Pair(pair.right, pair.left * 2),
            "ordered": OrderedDict(z=a, y=1),
            "empty": ([], {}, ()),
        }

    tree = {"a": X, "rest": (X * 2, [X * 3])}
    for _ in range(2):
        got = nested(tree, Pair(X, X + 1))
        assert list(got) == ["sum", "pair", "ordered", "empty"]
        assert type(got["pair"]) is Pair
        assert type(got["ordered"]) is OrderedDict
        assert list(got["ordered"]) == ["z", "y"]
        assert got["ordered"]["y"] == 1
        assert type(got["ordered"]["y"]) is int
        assert got["sum"][1][1] is None
        assert got["empty"] == ([], {}, ())
        np.testing.assert_array_equal(got["sum"][0], X * 3)
        np.testing.assert_array_equal(got["sum"][1][0], X * 3)
        np.testing.assert_array_equal(got["pair"].right, X * 2)


def test_none_and_an_array_are_different_structures() -> None:
    fused = nfuser.fuse(lambda x, bias=None: x if bias is None else x + bias)
    np.testing.assert_array_equal(fused(X), X)
    np.testing.assert_array_equal(fused(X, X), X + X)
    np.testing.assert_array_equal(fused(X, None), X)
    assert fused.cache_info().traces <= 3


def test_the_order_of_keys_of_a_dict_is_part_of_it() -> None:
    fused = nfuser.fuse(lambda tree: {k: v * 2 for k, v in tree.items()})
    assert list(fused({"a": X, "b": X})) == ["a", "b"]
    assert list(fused({"b": X, "a": X})) == ["b", "a"]


def test_it_calls_others_and_is_called_by_others() -> None:
    inner = nfuser.fuse(lambda x: x + 1)
    outer = nfuser.fuse(lambda x: inner(x) * inner(x * 2))
    np.testing.assert_array_equal(outer(X), (X + 1) * (X * 2 + 1))
    assert len(outer.kernels(X)) == 1
    assert inner.cache_info().calls == 0
    thrice: Any = functools.partial(np.multiply, 3.0)
    partial: Any = nfuser.fuse(thrice)
    np.testing.assert_array_equal(partial(X), X * 3)


def test_fusing_twice_is_fusing_once() -> None:
    once: Any = scaled
    twice: Any = nfuser.fuse(once, backend="interpret")
    assert twice.__wrapped__ is once.__wrapped__
    np.testing.assert_array_equal(twice(X), X * 2)
    with pytest.raises(TypeError, match="expects a function, found int"):
        nfuser.fuse(3)  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_what_is_fused_again_stays_as_it_was_but_for_what_is_said() -> None:
    first = nfuser.fuse(lambda x: x[1:], backend="interpret", resize="static")
    kept, other = nfuser.fuse(first), nfuser.fuse(first, resize="dynamic")
    for fused in (first, kept):
        assert len({fused.kernels(np.ones(n))[0].source for n in (4, 5)}) == 2
    assert "cuda.jit" in kept.kernels(np.ones(4))[0].source
    assert "cuda.jit" in other.kernels(np.ones(4))[0].source
    assert len({other.kernels(np.ones(n))[0].source for n in (40, 50)}) == 1


def test_an_error_in_the_function_is_the_callers() -> None:
    @nfuser.fuse
    def broken(x: Any) -> Any:
        raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            broken(X)


def test_threads_share_one_trace() -> None:
    fused = nfuser.fuse(lambda x, a: np.tanh(x * a).sum(axis=0))
    wrong: list[int] = []
    barrier = threading.Barrier(4)

    def work(k: int) -> None:
        barrier.wait()
        for n in range(2, 12):
            x = np.full((n, 5), 0.25, np.float32)
            if not np.allclose(fused(x, float(k)), np.tanh(x * k).sum(0), rtol=1e-5):
                wrong.append(n)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
    assert fused.cache_info().traces == 1
