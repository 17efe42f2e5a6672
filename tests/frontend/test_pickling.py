# SPDX-License-Identifier: Apache-2.0
"""Fused functions are pickled as plain ones: by name, or by value if a pickler can."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import copy
import functools
import io
import pickle
from types import CellType, FunctionType
from typing import Any

import numpy as np
import pytest

import nfuser

ONES = np.ones(3)
SCALE = 5.0
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def shifted(x: Any) -> Any:
    """Shift."""
    return x + 1


fused_shifted = nfuser.fuse(shifted)
tanh = nfuser.fuse(np.tanh)


@nfuser.fuse(resize="static")
def scaled(x: Any, times: int = 1) -> Any:
    """Scale, some number of times."""
    return x * SCALE if times == 1 else scaled(x * SCALE, times - 1)


class Layer:
    """Something with a fused method of each kind."""

    factor = 10.0

    def __init__(self, scale: float) -> None:
        self.scale = scale

    @nfuser.fuse
    def apply(self, x: Any) -> Any:
        """Scale by what the layer holds."""
        return x * self.scale

    @classmethod
    @nfuser.fuse
    def of_class(cls, x: Any) -> Any:
        """Scale by the class's factor."""
        return x * cls.factor

    @staticmethod
    @nfuser.fuse
    def of_none(x: Any) -> Any:
        """Double."""
        return x * 2


class _ByValue(pickle.Pickler):
    """Writes functions of this module by value, as cloudpickle does of others."""

    def reducer_override(self, obj: Any) -> Any:
        """Return the parts of a function; what it calls itself follows later."""
        is_user = isinstance(obj, FunctionType) and obj.__module__ == __name__
        if not is_user or obj in (_begin, _end):
            return NotImplemented
        names = {n: obj.__globals__[n] for n in obj.__code__.co_names if n == "scaled"}
        cells = [cell.cell_contents for cell in obj.__closure__ or ()]
        state = {"__defaults__": obj.__defaults__, "__doc__": obj.__doc__}
        state |= {"__module__": obj.__module__, "__qualname__": obj.__qualname__}
        _CODES[id(obj.__code__)] = obj.__code__
        parts = (id(obj.__code__), len(cells))
        return _begin, parts, (names, cells, state), None, None, _end


_CODES: dict[int, Any] = {}


def _begin(code: int, cells: int) -> FunctionType:
    names = {"SCALE": 7.0, "__name__": __name__}  # another process has other globals
    closure = tuple(CellType() for _ in range(cells))
    return FunctionType(_CODES[code], names, closure=closure)


def _end(function: FunctionType, parts: tuple[Any, ...]) -> None:
    names, cells, state = parts
    function.__globals__.update(names)
    for cell, found in zip(function.__closure__ or (), cells, strict=True):
        cell.cell_contents = found
    for name, found in state.items():
        setattr(function, name, found)


def _by_value(item: Any) -> Any:
    file = io.BytesIO()
    _ByValue(file).dump(item)
    return pickle.loads(file.getvalue())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_function_is_found_again_by_its_name(protocol: int) -> None:
    for item in (scaled, Layer.apply, Layer.of_none):
        assert pickle.loads(pickle.dumps(item, protocol)) is item
    of_class = pickle.loads(pickle.dumps(Layer.of_class, protocol))
    assert of_class == Layer.of_class


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_method_takes_its_instance_along(protocol: int) -> None:
    apply = pickle.loads(pickle.dumps(Layer(3.0).apply, protocol))
    np.testing.assert_array_equal(apply(ONES), ONES * 3)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_has_another_name_takes_the_plain_function_along(protocol: int) -> None:
    pairs: list[tuple[Any, Any]] = [(fused_shifted, shifted), (tanh, np.tanh)]
    for fused, plain in pairs:
        found = pickle.loads(pickle.dumps(fused, protocol))
        assert found.__wrapped__ is plain
        np.testing.assert_array_equal(found(ONES), fused(ONES))


def test_a_function_that_no_name_leads_to_is_refused_as_a_plain_one_is() -> None:
    for function in (lambda x: x, functools.wraps(shifted)(lambda x: x)):
        with pytest.raises((pickle.PicklingError, AttributeError)):
            pickle.dumps(nfuser.fuse(function))


def test_a_picklers_own_rule_for_functions_holds_for_fused_ones() -> None:
    found = _by_value(scaled)
    assert found is not scaled
    np.testing.assert_array_equal(found(ONES), ONES * 7)
    np.testing.assert_array_equal(found(ONES, 3), ONES * 7**3)
    assert found.__wrapped__.__globals__["scaled"] is found
    again = _by_value(found)  # of which no name is known there
    np.testing.assert_array_equal(again(ONES, 2), ONES * 7**2)


def test_names_and_options_arrive() -> None:
    found = _by_value(scaled)
    for item in (found, found.__wrapped__):
        assert (item.__name__, item.__qualname__) == ("scaled", "scaled")
        assert item.__doc__ == "Scale, some number of times."
        assert item.__module__ == __name__
    local = nfuser.fuse(lambda x: x[1:] * SCALE, backend="interpret", resize="static")
    for fused in (scaled, local):
        arrived = _by_value(fused)
        for size in (3, 4, 5):
            arrived(np.ones(size))
        compiled = arrived.cache_info().concretizations
        assert compiled == (1 if fused is scaled else 3)
    launch = _by_value(local).kernels(ONES)[0]
    assert "cuda" in launch.source


def test_attributes_that_a_user_set_arrive_by_value() -> None:
    fused: Any = nfuser.fuse(lambda x: x * 2)
    fused.tag, fused.itself = 3, fused
    fused(ONES)
    found = _by_value(fused)
    assert found is not fused
    assert (found.tag, found.itself) == (3, found)
    np.testing.assert_array_equal(found(ONES), fused(ONES))


@pytest.mark.parametrize("act", [pickle.dumps, copy.deepcopy])
def test_a_bound_call_says_what_to_pickle_in_its_place(act: Any) -> None:
    bound = scaled.bind(ONES)
    with pytest.raises(nfuser.errors.ArgumentError, match="bind them again there"):
        act(bound)
    assert copy.copy(bound) is bound


def test_a_closure_takes_its_variables_along() -> None:
    def powers(base: Any) -> Any:
        @nfuser.fuse
        def power(x: Any, n: int) -> Any:
            return x * base if n == 1 else power(x * base, n - 1)

        return power

    found = _by_value(powers(np.arange(3.0)))
    np.testing.assert_array_equal(found(ONES, 3), np.arange(3.0) ** 3)


def test_one_arrival_is_one_function() -> None:
    both = _by_value([scaled, {"again": scaled}])
    assert both[0] is both[1]["again"]


def test_code_that_was_exchanged_crosses_as_it_is_now() -> None:
    def first(x: Any) -> Any:
        return x + 1

    first.__qualname__ = "replaced"
    globals()["replaced"] = fused = nfuser.fuse(first)
    try:
        np.testing.assert_array_equal(_by_value(fused)(ONES), ONES + 1)
        first.__code__ = (lambda x: x + 2).__code__
        np.testing.assert_array_equal(_by_value(fused)(ONES), ONES + 2)
    finally:
        del globals()["replaced"]
