# SPDX-License-Identifier: Apache-2.0
"""Values from outside the arguments: found again at each call, and never stale."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportMissingImports=false

from __future__ import annotations

import collections
import functools
import gc
import itertools
import os
import random
import sys
import types
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import numpy as nnp
from nfuser.compiler.trace import Trace, call_of, trace_function
from nfuser.compiler.trace.captures.changes import changed_constants
from nfuser.errors import TraceError
from tests.trace.meaning import rerun

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.ones((4, 8), np.float32)
WEIGHT = np.arange(8, dtype=np.float32)
SCALE = 2.0
TABLE: dict[str, Any] = {"w": [np.ones(8), np.zeros(8)], "eps": 1e-3}


class Layer:
    def __init__(self, weight: Any) -> None:
        self.weight = weight
        self.gain = 3.0

    def __call__(self, x: Any) -> Any:
        return x * self.weight * self.gain

    def shifted(self, x: Any) -> Any:
        return self(x) + self.shift()

    def shift(self) -> Any:
        return self.gain


class Model:
    def __init__(self) -> None:
        self.layers = [Layer(np.ones(8)), Layer(np.full(8, 2.0))]

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def trace(function: Callable[..., Any], *args: Any) -> Trace:
    return trace_function(function, call_of(args or (X,)))


def origins(found: Trace) -> list[str]:
    return [str(array.origin) for array in found.captured.arrays]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    module = globals()
    for name in ("WEIGHT", "SCALE", "TABLE"):
        monkeypatch.setitem(module, name, module[name])
    return monkeypatch


def helper(x: Any) -> Any:
    return x * WEIGHT + SCALE


def test_a_global_array_is_an_input_that_is_read_again(
    fresh: pytest.MonkeyPatch,
) -> None:
    found = trace(lambda x: helper(x) * WEIGHT)
    assert origins(found) == ["WEIGHT"]
    fresh.setitem(globals(), "WEIGHT", np.full(8, 5.0, np.float32))
    (now,) = found.captured.read() or (None,)
    np.testing.assert_array_equal(rerun(found, [X, now]), (X * 5 + 2) * 5)
    fresh.setitem(globals(), "WEIGHT", np.ones(8, np.float64))
    assert found.captured.read() is None


def test_a_changed_number_traces_again(fresh: pytest.MonkeyPatch) -> None:
    found = trace(helper)
    assert found.captured.read() is not None
    fresh.setitem(globals(), "SCALE", 3.0)
    assert found.captured.read() is None
    assert [*changed_constants(found.captured, (), {})] == ["SCALE"]


def test_containers_are_followed(fresh: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return x + TABLE["w"][1] + TABLE["eps"]

    found = trace(function)
    assert origins(found) == ["TABLE['w'][1]"]
    fresh.setitem(TABLE, "eps", 2e-3)
    assert found.captured.read() is None


def test_closures_are_followed() -> None:
    bias, factor = np.ones(8), 3

    def function(x: Any) -> Any:
        return (lambda y: y + bias)(x) * factor

    found = trace(function)
    assert origins(found) == ["bias"]
    bias = np.full(8, 7.0)
    (now,) = found.captured.read() or (None,)
    assert now is bias
    factor = 4
    assert found.captured.read() is None


def test_attributes_of_self_are_followed_through_methods_and_loops() -> None:
    model = Model()
    found = trace_function(Model.forward, call_of((model, X)))
    assert origins(found) == ["self.layers[0].weight", "self.layers[1].weight"]
    model.layers[0].weight = np.zeros(8)
    now = found.captured.read((model, X))
    assert now is not None
    assert now[0] is model.layers[0].weight
    model.layers[1].gain = 4.0
    assert found.captured.read((model, X)) is None
    model.layers[1].gain = 3.0
    model.layers.append(Layer(np.ones(8)))
    assert found.captured.read((model, X)) is None


def test_methods_that_self_calls_are_followed() -> None:
    layer = Layer(np.ones(8))
    found = trace_function(Layer.shifted, call_of((layer, X)))
    assert found.captured.read((layer, X)) is not None
    layer.gain = 1.0
    assert found.captured.read((layer, X)) is None


def test_another_object_may_take_the_place_of_self() -> None:
    found = trace_function(Layer.shifted, call_of((Layer(np.ones(8)), X)))
    other = Layer(np.full(8, 9.0))
    (now,) = found.captured.read((other, X)) or (None,)
    assert now is other.weight


def test_a_trace_does_not_keep_self_alive() -> None:
    layer = Layer(np.ones(8))
    found = trace_function(Layer.shifted, call_of((layer, X)))
    gone, weight = weakref.ref(layer), weakref.ref(layer.weight)
    del layer
    gc.collect()
    assert gone() is None
    assert weight() is None
    assert len(found.captured.arrays) == 1


def test_elements_that_python_saw_are_constants_of_the_trace() -> None:
    seen = np.ones(8, np.float32)

    def function(x: Any) -> Any:
        return x * seen + float(seen[0])

    found = trace(function)
    assert found.captured.read() is not None
    seen[0] = 5.0
    assert found.captured.read() is None


def test_two_names_of_one_array_must_stay_one_array() -> None:
    one = other = np.ones(8)

    def function(x: Any) -> Any:
        return x * one + other

    found = trace(function)
    assert found.captured.read() is not None
    other = np.zeros(8)
    assert found.captured.read() is None


def test_views_of_a_captured_array_are_found() -> None:
    matrix = np.arange(32, dtype=np.float32).reshape(8, 4)
    found = trace(lambda x: x * matrix.T)
    assert origins(found) == ["matrix.T"]


def test_a_redefined_function_traces_again(fresh: pytest.MonkeyPatch) -> None:
    found = trace(lambda x: helper(x))
    fresh.setitem(globals(), "helper", lambda x: x)
    assert found.captured.read() is None


def test_an_array_as_a_default_argument_is_an_input() -> None:
    def function(x: Any, weight: Any = WEIGHT, power: int = 2) -> Any:
        return (x * weight) ** power

    found = trace(function)
    assert origins(found) == ["weight"]
    assert found.captured.read() is not None


def test_facts_of_a_captured_array_may_be_used_beside_it() -> None:
    table = np.ones((2, 8))

    def function(x: Any) -> Any:
        return x * table[0, 0] / table.shape[0] if table.ndim == 2 else x

    found = trace(function)
    assert found.captured.read() is not None
    table[1, 1] = 5.0
    assert found.captured.read() is not None
    table = np.ones((3, 8))
    assert found.captured.read() is None


def test_zero_and_nan_are_told_apart() -> None:
    number = 0.0
    found = trace(lambda x: x / number)
    assert found.captured.read() is not None
    number = -0.0
    assert found.captured.read() is None
    number = float("nan")
    found = trace(lambda x: x / number)
    assert found.captured.read() is not None


BARE = types.SimpleNamespace()
EMPTY: dict[str, float] = {}


def _attribute(x: Any) -> Any:
    try:
        return x * BARE.scale
    except AttributeError:
        return x


def _asked(x: Any) -> Any:
    return x * BARE.scale if hasattr(BARE, "scale") else x


def _with_default(x: Any) -> Any:
    return x * getattr(BARE, "scale", 1.0)


def _item(x: Any) -> Any:
    try:
        return x * EMPTY["scale"]
    except KeyError:
        return x


def _name(x: Any) -> Any:
    try:
        return x * UNSET  # pyright: ignore[reportUndefinedVariable]
    except NameError:
        return x


@pytest.mark.parametrize(
    ("function", "place", "key"),
    [
        (_attribute, BARE.__dict__, "scale"),
        (_asked, BARE.__dict__, "scale"),
        (_with_default, BARE.__dict__, "scale"),
        (_item, EMPTY, "scale"),
        (_name, globals(), "UNSET"),
    ],
)
def test_what_was_missing_and_comes_traces_again(
    function: Callable[..., Any],
    place: dict[str, Any],
    key: str,
    fresh: pytest.MonkeyPatch,
) -> None:
    found = trace(function, X)
    assert found.captured.read((X,)) == ()
    fresh.setitem(place, key, 3.0)
    assert found.captured.read((X,)) is None
    again = trace(function, X)
    assert again.captured.read((X,)) == ()
    np.testing.assert_array_equal(rerun(again, [X]), X * 3)


def test_a_cell_that_was_empty_traces_again() -> None:
    def make() -> tuple[Callable[..., Any], Callable[[], None]]:
        def function(x: Any) -> Any:
            try:
                return x * scale
            except NameError:
                return x

        def fill() -> None:
            nonlocal scale
            scale = 2.0

        if not X.size:
            scale = 1.0
        return function, fill

    function, fill = make()
    found = trace(function, X)
    assert found.captured.read((X,)) == ()
    fill()
    assert found.captured.read((X,)) is None


def test_a_tensor_that_numpy_writes_is_seen() -> None:
    torch = pytest.importorskip("torch")
    memory = np.ones(3)
    tensor = torch.from_numpy(memory)

    def function(x: Any) -> Any:
        return x * float(tensor[1])

    found = trace(function, X)
    assert found.captured.read((X,)) == ()
    memory[1] = 5
    assert found.captured.read((X,)) is None


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "dropout"])
def test_random_numbers_of_torch_are_refused(name: str) -> None:
    torch = pytest.importorskip("torch")
    draw = getattr(torch, name, None) or torch.nn.functional.dropout
    chances = torch.full((3,), 0.5)
    drawn = {"dropout": lambda: torch.nn.functional.dropout(chances)}

    def function(x: Any) -> Any:
        return x * float(drawn.get(name, lambda: draw(chances))()[0])

    with pytest.raises(TraceError, match="random numbers"):
        trace(function, X)


def test_a_generator_of_the_system_is_refused() -> None:
    def function(x: Any) -> Any:
        return x * random.SystemRandom().random()

    with pytest.raises(TraceError, match="random numbers"):
        trace(function, X)


def test_a_file_that_the_function_opens_is_refused(tmp_path: Path) -> None:
    place = str(tmp_path / "scale")

    def function(x: Any) -> Any:
        with open(place, "w") as file:
            file.write("2")
        return x

    with pytest.raises(TraceError, match="outside the fused function"):
        trace(function, X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if os.path.exists("a") else x,
        lambda x: x * len(os.getcwd()),
        lambda x: x * Path("a").is_file(),
        lambda x: x * len(os.listdir()),
        lambda x: x * len(str(Path("a").absolute())),
    ],
)
def test_what_lies_on_disk_is_asked_outside(function: Callable[..., Any]) -> None:
    for _ in range(2):
        with pytest.raises(TraceError, match="looks at files or folders once"):
            trace(function, X)


def test_paths_may_be_put_together_inside() -> None:
    found = trace(lambda x: x * len(os.path.join("a", "b")), X)
    np.testing.assert_array_equal(rerun(found, [X]), X * 3)


def test_libraries_are_taken_to_stay_as_they_are() -> None:
    found = trace(lambda x: nnp.softmax(np.exp(x) + np.pi + nnp.pi))
    assert {str(c.origin) for c in found.captured.constants} == {"np", "nnp"}


def test_functions_in_containers_are_followed() -> None:
    factor = 2.0
    layers = [lambda x: x * factor]
    for function in (lambda x: layers[0](x), lambda x: next(f(x) for f in layers)):
        factor = 2.0
        found = trace(function)
        assert found.captured.read() is not None
        factor = 3.0
        assert found.captured.read() is None


def test_what_a_partial_calls_is_followed() -> None:
    factor = 2.0
    bound = functools.partial(lambda k, x: x * factor * k, 1.0)
    for function in (bound, lambda x: bound(x)):
        factor = 2.0
        found = trace(function)
        assert found.captured.read((X,)) is not None
        factor = 3.0
        assert found.captured.read((X,)) is None


def test_objects_inside_arguments_are_followed() -> None:
    layer = Layer(np.ones(8))
    for held in ([layer], (layer,), {0: layer}):
        layer.gain = 3.0
        found = trace(lambda x, layers: x * layers[0].gain, X, held)
        assert found.captured.read((X, held)) is not None
        layer.gain = 4.0
        assert found.captured.read((X, held)) is None


def test_class_attributes_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kind:
        size = 2.0

        @classmethod
        def scaled(cls, x: Any) -> Any:
            return x * cls.size

    one = Kind()
    for function in (lambda x: one.scaled(x), lambda x: x * getattr(Kind, "size")):  # noqa: B009
        with monkeypatch.context() as patch:
            found = trace(function)
            assert found.captured.read() is not None
            patch.setattr(Kind, "size", 3.0)
            assert found.captured.read() is None


def test_sets_and_deques_are_followed() -> None:
    some, queue = {2.0}, collections.deque([2.0])
    found = trace(lambda x: x * sum(some))
    assert found.captured.read() is not None
    some.add(3.0)
    assert found.captured.read() is None
    found = trace(lambda x: x * sum(queue))
    assert found.captured.read() is not None
    queue[0] = 3.0
    assert found.captured.read() is None


def test_defaults_bound_anew_trace_again() -> None:
    def function(x: Any, gain: float = 2.0, *, bias: float = 1.0) -> Any:
        return x * gain + bias

    for name, other in (("__defaults__", (3.0,)), ("__kwdefaults__", {"bias": 2.0})):
        found = trace(function)
        assert found.captured.read() is not None
        setattr(function, name, other)
        assert found.captured.read() is None


@pytest.mark.parametrize("name", ["__defaults__", "__kwdefaults__"])
def test_defaults_that_are_gone_are_told(name: str) -> None:
    def inside(x: Any, gain: float = 2.0, *, bias: float = 1.0) -> Any:
        return x * gain + bias

    def outside(x: Any) -> Any:
        return inside(x)

    def without(x: Any) -> Any:
        return x * 7

    fused, x = nfuser.fuse(outside), np.arange(3.0)
    for _ in range(3):
        np.testing.assert_array_equal(fused(x), x * 2 + 1)
    inside.__code__ = without.__code__
    setattr(inside, name, None)
    np.testing.assert_array_equal(fused(x), x * 7)
    assert "inside" in fused.why()


def test_modules_imported_inside_are_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def whole(x: Any) -> Any:
        import settings_of_a_user

        return x * settings_of_a_user.gain

    def member(x: Any) -> Any:
        from settings_of_a_user import bias, gain

        return x * gain + bias

    module: Any = types.ModuleType("settings_of_a_user")
    monkeypatch.setitem(sys.modules, "settings_of_a_user", module)
    module.bias = 1.0
    for function in (whole, member):
        module.gain = 2.0
        found = trace(function)
        assert found.captured.read() is not None
        module.gain = 3.0
        assert found.captured.read() is None


def test_what_cannot_be_watched_is_refused() -> None:
    many, count = [0.0] * 5000, itertools.count()
    with pytest.raises(TraceError, match="many holds more values"):
        trace(lambda x: x * sum(many))
    with pytest.raises(TraceError, match="count is an iterator"):
        trace(lambda x: x * next(count))
    with pytest.raises(TraceError, match="globals"):
        trace(lambda x: x * globals()["SCALE"])


def test_a_traced_array_is_of_no_use_after_its_trace() -> None:
    kept: list[Any] = []
    with pytest.warns(RuntimeWarning, match="keeps a traced array"):
        trace(lambda x: kept.append(x) or x)
    with pytest.raises(TraceError, match="outlived"):
        np.sum(kept[0] + 1)


def test_a_view_of_another_class_than_what_it_views_is_found() -> None:
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.arange(3.0))
    fused = nfuser.fuse(lambda x: x * weight.detach())
    with torch.no_grad():
        for _ in range(2):
            assert fused(torch.ones(3)).tolist() == weight.tolist()
            weight += 1
