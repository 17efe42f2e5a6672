# SPDX-License-Identifier: Apache-2.0
"""What only running a function shows: each change is seen by the next call."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import collections
import contextlib
import contextvars
import cProfile
import dataclasses
import enum
import functools
import importlib
import logging
import math
import os
import sys
import sysconfig
import types
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.compiler.trace import Trace, call_of, trace_function
from nfuser.compiler.trace.watch.observer import Observer
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

X = np.ones((4, 8), np.float32)
GAIN = 2.0


class Layer:
    def __init__(self, size: float = 1.0) -> None:
        self.size = size
        self.mode = Mode.PLAIN

    def method(self, x: Any) -> Any:
        return x * GAIN

    @property
    def gain(self) -> float:
        return GAIN

    def __matmul__(self, x: Any) -> Any:
        return x * GAIN

    @functools.cached_property
    def width(self) -> float:
        return self.size


class Wide(Layer):
    def __init__(self) -> None:
        super().__init__(GAIN)
        self.weight = np.full(8, 2.0)

    def method(self, x: Any) -> Any:
        return super().method(x) * self.weight


class Mode(enum.Enum):
    PLAIN = 1
    TWICE = 2


@dataclasses.dataclass
class Settings:
    scale: float = 2.0
    steps: list[float] = dataclasses.field(default_factory=lambda: [1.0])


@contextlib.contextmanager
def gained() -> Generator[float]:
    yield GAIN


@functools.singledispatch
def dispatched(item: object, x: Any) -> Any:
    return x * GAIN


def trace(function: Callable[..., Any], *args: Any) -> Trace:
    return trace_function(function, call_of(args or (X,)))


def holds(found: Trace) -> bool:
    return found.captured.read((X,)) is not None


def _entered(x: Any) -> Any:
    with gained() as gain:
        return x * gain


LAYERS: Any = collections.UserList([Layer()])
WIDE = Wide()
READERS: dict[str, Callable[[Any], Any]] = {
    "method": lambda x: next(layer.method(x) for layer in LAYERS),
    "property": lambda x: next(x * layer.gain for layer in LAYERS),
    "operator": lambda x: next(layer @ x for layer in LAYERS),
    "constructor": lambda x: x * Wide().size,
    "super": lambda x: WIDE.method(x),
    "context manager": _entered,
    "single dispatch": lambda x: dispatched(LAYERS, x),
    "reduce": lambda x: functools.reduce(lambda y, f: f.method(y), LAYERS, x),
}


@pytest.mark.parametrize("name", READERS)
def test_a_global_that_only_a_called_function_reads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = trace(READERS[name])
    assert holds(found)
    monkeypatch.setitem(globals(), "GAIN", 3.0)
    assert not holds(found)


def test_a_method_that_a_class_got_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    found = trace(READERS["method"])
    monkeypatch.setattr(Layer, "method", lambda _, x: x)
    assert not holds(found)


@pytest.mark.parametrize("module", ["of_another_process", "__main__"])
def test_a_class_that_came_from_another_process_is_the_users(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = types.ModuleType(module)
    folder = sysconfig.get_path("purelib")
    installed.__file__ = f"{folder}/program/__main__.py"
    if module == "__main__":
        monkeypatch.setitem(sys.modules, module, installed)
    arrived: Any = type("Arrived", (Layer,), {"__module__": module, "gain": 2.0})
    held = [arrived()]

    def read(x: Any) -> Any:
        return x * sum(one.gain for one in held)

    found = trace(read)
    arrived.gain = 3.0
    assert not holds(found)


@pytest.mark.parametrize(
    "read",
    [
        lambda: os.environ["NFUSER_TEST"],
        lambda: os.environ.get("NFUSER_TEST", "1"),
        lambda: os.getenv("NFUSER_TEST", "1"),
        lambda: {**os.environ}.get("NFUSER_TEST", "1"),
    ],
)
def test_the_environment(
    read: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NFUSER_TEST", "2")
    found = trace(lambda x: x * float(read()))
    assert holds(found)
    monkeypatch.setenv("NFUSER_TEST", "3")
    assert not holds(found)
    monkeypatch.setenv("NFUSER_TEST", "2")
    assert holds(found)
    monkeypatch.delenv("NFUSER_TEST")
    assert not holds(found)


def test_a_variable_that_was_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NFUSER_TEST", raising=False)
    found = trace(lambda x: x * float(os.environ.get("NFUSER_TEST", "1")))
    assert holds(found)
    monkeypatch.setenv("NFUSER_TEST", "3")
    assert not holds(found)


TABLE = {"a": 2.0}
KEY = "a"
VARIABLE: contextvars.ContextVar[float] = contextvars.ContextVar("v", default=2.0)
VIEWS: dict[str, tuple[Any, Callable[[Any], float]]] = {
    "get": (TABLE, lambda t: t.get("a")),
    "items": (TABLE, lambda t: sum(v for _, v in t.items())),
    "bound": (TABLE.__getitem__, lambda get: get("a")),
    "proxy": (types.MappingProxyType(TABLE), lambda t: t[KEY]),
    "proxy get": (types.MappingProxyType(TABLE), lambda t: t.get("a")),
    "view": (TABLE.values(), sum),
    "chain": (collections.ChainMap(TABLE), lambda t: t[KEY]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_tables_behind_a_view(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    view, read = VIEWS[name]
    found = trace(lambda x: x * read(view))
    assert holds(found)
    monkeypatch.setitem(TABLE, "a", 3.0)
    assert not holds(found)


def test_objects_of_libraries() -> None:
    names, items = collections.UserDict({"a": 2.0}), collections.UserList([2.0])
    space, layer = argparse.Namespace(a=2.0), Layer(2.0)
    reference = weakref.ref(layer)
    changes: list[tuple[Callable[[Any], Any], Callable[[], Any]]] = [
        (lambda x: x * names[KEY], lambda: names.update(a=3.0)),
        (lambda x: x * names.get("a"), lambda: names.update(a=4.0)),
        (lambda x: x * sum(items), lambda: items.append(3.0)),
        (lambda x: x * getattr(space, KEY), lambda: setattr(space, "a", 3.0)),
        (lambda x: x * reference().size, lambda: setattr(layer, "size", 3.0)),  # pyright: ignore[reportOptionalMemberAccess]
        (lambda x: x * VARIABLE.get(), lambda: VARIABLE.set(3.0)),
        (lambda x: x * getattr(layer, "extra", 1), lambda: setattr(layer, "extra", 2)),
    ]
    for function, change in changes:
        found = trace(function)
        assert holds(found)
        change()
        assert not holds(found)


def test_closures_of_one_code_are_told_apart() -> None:
    def scaled(by: list[float]) -> Callable[[Any], Any]:
        return lambda x: x * by[0]

    first, second = [2.0], [2.0]
    functions = [scaled(first), scaled(second)]
    found = trace(lambda x: next(f(x) for f in functions))
    assert holds(found)
    second[0] = 3.0
    assert not holds(found)


def test_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    def outer(x: Any) -> Any:
        import settings_of_a_user

        return (lambda y: y * settings_of_a_user.gain)(x)

    module: Any = types.ModuleType("settings_of_a_user")
    monkeypatch.setitem(sys.modules, "settings_of_a_user", module)
    by_table = lambda x: x * sys.modules["settings_of_a_user"].gain  # noqa: E731
    for function in (outer, by_table):
        module.gain = 2.0
        found = trace(function)
        assert holds(found)
        module.gain = 3.0
        assert not holds(found)
    with pytest.raises(TraceError, match="import_module"):
        trace(lambda x: x * importlib.import_module("settings_of_a_user").gain)


def _both(array: Any) -> dict[str, Callable[[Any], Any]]:
    """Return functions that use ``array`` in an operation, and look into it."""
    held = {"w": array}

    def alias(x: Any) -> Any:
        w = held[KEY_OF_ARRAY]
        return x * w * float(w[0])

    def branch(x: Any) -> Any:
        w = held[KEY_OF_ARRAY]
        return x * w if w[0] > 2 else x + w

    def items(x: Any) -> Any:
        for v in held[KEY_OF_ARRAY]:
            x = x * 2 if v > 2 else x
        return x * held[KEY_OF_ARRAY]

    def counted(x: Any) -> Any:
        for _ in range(3):
            x = x * array
        return x * float(array.max())

    def passed(x: Any) -> Any:
        return (lambda y, w: y * w * w[0])(x, array)

    def summed(x: Any) -> Any:
        return x * held[KEY_OF_ARRAY] * float(np.sum(array))

    return {f.__name__: f for f in (alias, branch, items, counted, passed, summed)}


KEY_OF_ARRAY = "w"


@pytest.mark.parametrize("name", _both(X))
def test_an_array_that_python_looked_into_is_a_constant(name: str) -> None:
    array = np.full(8, 2.0, np.float32)
    found = trace(_both(array)[name])
    assert holds(found)
    array[:] = 3.0
    assert not holds(found)


def test_an_array_that_only_operations_met_is_none() -> None:
    arrays = {"w": np.ones(8, np.float32), "b": np.zeros(8, np.float32)}

    def function(x: Any) -> Any:
        for k in range(3):
            x = x * arrays["w"] if k % 2 == 0 else np.maximum(x, arrays["b"])
        return x / np.sqrt(2.0) + float(math.pi) * len(arrays)

    found = trace(function)
    arrays["w"][:] = 3.0
    assert holds(found)


def test_ordinary_code_is_neither_refused_nor_traced_again() -> None:
    settings, log, layer = Settings(), logging.getLogger(__name__), Layer()
    clipped = functools.partial(np.clip, a_min=0, a_max=1)

    seen: list[Any] = []

    def function(x: Any) -> Any:
        log.debug("traced")
        seen.append(x.shape)
        x = clipped(x) * settings.scale * settings.steps[0] * math.sqrt(2.0)
        x = x * dataclasses.replace(settings, scale=3.0).scale * layer.width
        return x if layer.mode is Mode.TWICE else x + Settings(1.0).scale

    assert holds(trace(function))
    assert holds(trace(Layer(2.0).method))
    assert holds(trace(lambda x: next(y.width * x for y in [layer])))


def test_what_a_callable_object_reads_is_watched() -> None:
    class Scale:
        gain = 2.0

        def __call__(self, x: Any) -> Any:
            return x * self.gain

    scale = Scale()
    found = trace(scale)
    assert holds(found)
    scale.gain = 3.0
    assert not holds(found)


class Chosen:
    def __index__(self) -> int:
        return AXIS


AXIS = 1
CHOSEN = [Chosen()]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(axis=next(iter(CHOSEN))),
        lambda x: np.sum(x, (next(iter(CHOSEN)),)),
        lambda x: x[next(iter(CHOSEN)) :],
    ],
)
def test_code_that_an_argument_brings_into_a_verb(
    function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = trace(function)
    assert holds(found)
    monkeypatch.setitem(globals(), "AXIS", 0)
    assert not holds(found)


@pytest.mark.parametrize(
    "function", [lambda x: x * 2, np.exp, lambda x: np.where(x > 0, x, X)]
)
def test_verbs_run_unwatched(
    function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    see = Observer.see

    def counted(self: Observer, frame: Any, event: str, item: Any) -> None:
        seen.append(frame.f_globals["__name__"])
        see(self, frame, event, item)

    monkeypatch.setattr(Observer, "see", counted)
    trace(function)
    assert 0 < len(seen) < 40
    assert not any(
        name.startswith(("nfuser.compiler.ops", "nfuser.compiler.ir")) for name in seen
    )


def test_a_profiler_goes_on_after_a_trace() -> None:
    profile = cProfile.Profile()
    profile.enable()
    try:
        trace(lambda x: x * GAIN)
        assert sum(map(abs, [1, -1])) == 2
    finally:
        profile.disable()
    # A collection that runs while a profile is on and read would change it.
    after = [entry.code for entry in profile.getstats()]
    assert any("sum" in str(code) for code in after)
