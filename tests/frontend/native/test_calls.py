# SPDX-License-Identifier: Apache-2.0
"""Calls that native code serves: what a plan's key tells apart, it tells apart, too.

Each test first has a call served natively, changes one thing, and compares with NumPy.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import gc
import platform
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.config as config
from nfuser.errors import ArgumentError
from nfuser.execution.device.native.shared import is_as_expected, shared

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(not is_as_expected(), reason="no native calls here")


def _plain(x: Any, y: Any) -> Any:
    return x * 2 + y


def served(fused: Any, *args: Any) -> int:
    """Call, and return how many calls native code served for it: none or one."""
    before = fused.native_calls
    fused(*args)
    return fused.native_calls - before


def warm(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function`` fused, with such calls served natively."""
    fused = nfuser.fuse(function)
    for _ in range(2):
        fused(*args)
    assert served(fused, *args) == 1
    return fused


def _array(*shape: int, dtype: Any = np.float32) -> Any:
    return (np.arange(np.prod(shape, dtype=int)) % 13 + 1).reshape(shape).astype(dtype)


def _same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    assert found.strides == expected.strides


X = _array(4, 6)

CHANGED: dict[str, Any] = {
    "dtype of another size": X.astype(np.float64),
    "dtype of the same size": X.astype(np.int32),
    "unsigned": X.astype(np.uint32),
    "shape of the same size": X.reshape(6, 4).T.copy().reshape(4, 6)[:, ::1] * 3,
    "order of memory": np.asfortranarray(X),
    "strides": _array(8, 6)[::2],
    "negative strides": X[::-1, ::-1],
    "expanded": np.broadcast_to(_array(6), (4, 6)),
    "alignment": np.frombuffer(X.tobytes() + b"1234", "f4")[1:].reshape(4, 6),
    "read only": np.frombuffer(X.tobytes(), "f4").reshape(4, 6),
    "one row": _array(1, 6),
    "rank": _array(6),
    "no axes": _array(),
    "empty rows": _array(4, 6)[:, :1],
    "a NumPy scalar": np.float32(3),
    "a float": 3.5,
    "an integer": 3,
    "a bool": True,
}


@pytest.mark.parametrize("change", CHANGED)
def test_an_argument_of_another_kind_is_told_apart(change: str) -> None:
    fused = warm(_plain, X, X)
    for x, y in ((X, CHANGED[change]), (CHANGED[change], X)):
        for _ in range(4):
            _same(fused(x, y), _plain(x, y))
    assert served(fused, X, X) == 1


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="elsewhere calls may go by way of Python",
)
def test_calls_are_native_here() -> None:
    assert sysconfig.get_config_var("Py_GIL_DISABLED") or is_as_expected()
    assert sysconfig.get_config_var("Py_GIL_DISABLED") or shared() is not None


def test_extents_of_the_same_number_are_told_apart() -> None:
    fused = warm(_plain, _array(2, 12), _array(2, 12))
    for shape in ((12, 2), (24,), (2, 3, 4), (1, 24), (24, 1), (0, 24), (24, 0)):
        for _ in range(3):
            x = _array(*shape)
            _same(fused(x, x), _plain(x, x))


def test_a_record_for_each_of_many_shapes() -> None:
    fused = nfuser.fuse(_plain)
    arrays = [_array(n) for n in range(1, 41)]
    for _ in range(2):
        for x in arrays:
            fused(x, x)
    for x in arrays:
        assert served(fused, x, x) == 1
        _same(fused(x, x), _plain(x, x))


def test_misaligned_and_swapped_arrays_are_read_right_after_good_ones() -> None:
    fused = warm(_plain, X, X)
    raw = np.zeros(X.nbytes + 1, np.uint8)
    misaligned = raw[1:].view(np.float32).reshape(4, 6)
    misaligned[...] = X * 3
    for odd in (misaligned, (X * 3).astype(">f4")) * 3:
        assert served(fused, X, odd) == 0
        _same(fused(X, odd), _plain(X, X * 3))


def test_subclasses_are_refused_after_plain_arrays() -> None:
    fused = warm(_plain, X, X)
    for _ in range(3):
        for cls in (np.matrix, np.ma.MaskedArray, type("Mine", (np.ndarray,), {})):
            with pytest.raises(ArgumentError):
                fused(X, X.view(cls))


def test_numbers_are_not_part_of_what_is_kept() -> None:
    fused = warm(_plain, X, 2.5)
    for number in (0.5, -0.0, float("inf"), 1e30):
        assert served(fused, X, number) == 1
        _same(fused(X, number), _plain(X, number))
    assert np.isnan(fused(X, float("nan"))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_integers_are_passed_as_what_the_kernel_takes(dtype: Any) -> None:
    x = _array(5, dtype=dtype)
    fused = warm(_plain, x, 2)
    for number in (0, -7, 2**31 - 1):
        assert served(fused, x, number) == 1
        _same(fused(x, number), _plain(x, number))


def test_an_integer_that_does_not_fit_raises_as_before() -> None:
    x = _array(5, dtype=np.int8)
    fused = nfuser.fuse(_plain)
    for _ in range(3):
        fused(x, 2)
    for number in (300, -129, 2**63, -(2**80)):
        with pytest.raises(OverflowError):
            _plain(x, number)
        with pytest.raises((OverflowError, ValueError)):
            fused(x, number)


def test_a_number_that_python_consumed_is_a_guard() -> None:
    def either(x: Any, n: Any) -> Any:
        return x + 1 if n > 2 else x - 1

    fused = warm(either, X, 3)
    for number in (2, 3, 1.5, 3.5, 2**70, -(2**70), 3):
        for _ in range(3):
            _same(fused(X, number), either(X, number))


def test_a_number_that_reaches_a_shape_is_a_guard() -> None:
    def head(x: Any, n: int) -> Any:
        return x[:n] * 2

    fused = nfuser.fuse(head)
    for number in (3, 3, 3, 2, 2, 2, 3, 4):
        _same(fused(X, number), head(X, number))


def test_static_arguments_are_told_apart() -> None:
    def total(x: Any, axis: Any, keepdims: Any) -> Any:
        return np.sum(x, axis=axis, keepdims=keepdims)

    fused = warm(total, X, None, False)
    for axis in (None, 0, 1):
        for keepdims in (False, True):
            for _ in range(3):
                found = fused(X, axis, keepdims)
                expected = total(X, axis, keepdims)
                assert type(found) is type(expected)
                np.testing.assert_allclose(found, expected)


def test_equal_strings_need_not_be_one_object() -> None:
    def by(x: Any, mode: str) -> Any:
        return x + 1 if mode == "add" else x - 1

    fused = warm(by, X, "add")
    for mode in ("".join(["a", "dd"]), "sub", "".join(["s", "ub"]), "add"):
        for _ in range(3):
            _same(fused(X, mode), by(X, mode))


def test_a_new_object_where_another_died_is_another() -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

        @nfuser.fuse
        def apply(self, x: Any) -> Any:
            return x * self.by

    for k in range(20):
        by = float(k % 3)
        scale = Scale(by)
        for _ in range(3):
            np.testing.assert_array_equal(scale.apply(X), X * by)
        del scale
        gc.collect(0)  # a full one takes longer than all else here


factor: Any = 3.0


def test_a_global_that_changed_is_seen() -> None:
    global factor

    def scaled(x: Any) -> Any:
        return x * factor

    factor = 3.0
    fused = warm(scaled, X)
    for value in (4.0, 3.0, 5, True, 3.0):
        factor = value
        for _ in range(3):
            _same(fused(X), scaled(X))


def test_a_cell_and_a_default_that_changed_are_seen() -> None:
    by = 2.0

    def scaled(x: Any, shift: float = 1.0) -> Any:
        return x * by + shift

    fused = warm(scaled, X)
    by = 3.0
    _same(fused(X), scaled(X))
    scaled.__defaults__ = (5.0,)
    _same(fused(X), scaled(X))
    _same(fused(X, 7.0), scaled(X, 7.0))


def test_a_captured_array_that_changed_is_seen() -> None:
    held = _array(6)

    def shifted(x: Any) -> Any:
        return x + held

    fused = nfuser.fuse(shifted)
    for k in range(6):
        _same(fused(X), shifted(X))
        held[k] = -1
    held = _array(6, dtype=np.float64)
    _same(fused(X), shifted(X))


def test_captured_arrays_are_read_where_they_are_now() -> None:
    class Layer:
        def __init__(self) -> None:
            self.weight = _array(6)
            self.bias: Any = np.zeros(6, np.float32)

        @nfuser.fuse
        def run(self, x: Any) -> Any:
            return x * self.weight + self.bias

    layer = Layer()
    changes: tuple[tuple[str, Any], ...] = (
        ("weight", _array(6) * 2),
        ("bias", _array(6)),
        ("bias", _array(12)[::2]),
        ("weight", _array(6, dtype=np.float64)),
        ("weight", _array(4, 6)),
        ("bias", _array(1)),
        ("bias", 2.0),
        ("bias", _array(6)),
    )
    for name, value in changes:
        setattr(layer, name, value)
        for _ in range(4):
            _same(layer.run(X), X * layer.weight + layer.bias)
            layer.weight[...] += 1
    before = Layer.run.native_calls
    layer.run(X)
    assert Layer.run.native_calls == before + 1
    held = sys.getrefcount(layer.weight)
    for _ in range(100):
        layer.run(X)
    now = sys.getrefcount(layer.weight)
    assert now == held
    layer.bias = layer.weight
    for _ in range(3):
        _same(layer.run(X), X * layer.weight + layer.bias)


def test_the_configuration_is_part_of_the_key() -> None:
    fused = warm(lambda x: x + 1, X)
    before = fused.native_calls
    with config.override(disable_all=True):
        _same(fused(X), X + 1)
    with config.override(pass_limit=3):
        _same(fused(X), X + 1)
    assert fused.native_calls == before
    assert served(fused, X) == 1


def test_a_fused_function_inside_a_trace_is_traced() -> None:
    inner = warm(_plain, X, X)
    outer = nfuser.fuse(lambda x: inner(x, X) + inner(x, x))
    for _ in range(4):
        _same(outer(X), _plain(X, X) + _plain(X, X))


def test_the_structure_of_arguments_is_part_of_the_key() -> None:
    def either(x: Any, y: Any = None) -> Any:
        if y is None:
            return x + 1
        if isinstance(y, tuple):
            return x + y[0]
        return x + y

    fused = warm(either, X, None)
    for y in (None, X, (X,), None):
        for _ in range(3):
            _same(fused(X, y), either(X, y))
    for _ in range(3):
        _same(fused(X), either(X))
        _same(fused(x=X), either(X))
        _same(fused(X, y=X), either(X, X))


def test_the_right_number_of_arguments_is_asked_for() -> None:
    fused = warm(_plain, X, X)
    for _ in range(2):
        with pytest.raises(TypeError):
            fused(X)
        with pytest.raises(TypeError):
            fused(X, X, X)
        with pytest.raises(TypeError):
            fused()


def test_outputs_are_fresh_and_own_their_memory() -> None:
    fused = warm(_plain, X, X)
    one, other = fused(X, X), fused(X, X)
    assert not np.shares_memory(one, other)
    assert one.flags.owndata
    assert one.flags.writeable
    assert one.flags.c_contiguous
    assert one.base is None


def test_structures_of_results_come_back() -> None:
    def several(x: Any) -> Any:
        return {"a": x + 1, "b": [x.sum(), None, (x * 2,)]}

    fused = warm(several, X)
    found, expected = fused(X), several(X)
    assert found.keys() == expected.keys()
    _same(found["a"], expected["a"])
    assert type(found["b"][0]) is np.float32
    assert found["b"][1] is None
    _same(found["b"][2][0], expected["b"][2][0])
    pair = warm(lambda x: (x + 1, x.max()), X)(X)
    assert type(pair) is tuple
    assert type(pair[1]) is np.float32


def test_references_are_neither_lost_nor_kept() -> None:
    x, y = _array(7), _array(7)
    fused = warm(_plain, x, y)
    dtype = x.dtype
    before = [sys.getrefcount(item) for item in (x, y, dtype, fused)]
    for _ in range(1000):
        fused(x, y)
    after = [sys.getrefcount(item) for item in (x, y, dtype, fused)]
    assert before == after
    found = fused(x, y)
    assert sys.getrefcount(found) == 2


def test_what_native_code_serves_is_counted() -> None:
    fused = nfuser.fuse(_plain)
    for _ in range(10):
        fused(X, X)
    assert fused.cache_info()[:3] == (10, 9, 1)
    assert fused.native_calls == 8
    fused.cache_clear()
    assert fused.cache_info().calls == 0
    assert served(fused, X, X) == 0


def test_calls_that_make_many_arrays_are_native() -> None:
    def parts(x: Any) -> Any:
        return tuple(x[k:] * 2 for k in range(100))

    x = _array(200)
    for found, expected in zip(warm(parts, x)(x), parts(x), strict=True):
        _same(found, expected)


def test_what_is_forgotten_is_not_served() -> None:
    fused = nfuser.fuse(_plain)
    with config.override(cache_size=4):
        for n in range(1, 12):
            for _ in range(3):
                x = _array(n)
                _same(fused(x, x), _plain(x, x))
        assert fused._serving.state is not None
        assert len(fused._serving.state) <= 4


def test_keywords_are_served_in_any_order() -> None:
    def plain(x: Any, y: Any, a: float = 2.0, *, b: float = 1.0) -> Any:
        return x * a + y * b

    fused: Any = nfuser.fuse(plain)
    calls: list[dict[str, Any]] = [
        {"y": X, "a": 3.0, "b": 4.0},
        {"b": 4.0, "y": X, "a": 3.0},
        {"a": 3.0, "y": X},
        {"y": X},
        {"y": X, "b": 4.0},
    ]
    for _ in range(3):
        for named in calls:
            _same(fused(X, **named), plain(X, **named))
    before = fused.native_calls
    for named in calls:
        _same(fused(X, **named), plain(X, **named))
    assert fused.native_calls == before + len(calls)
    _same(fused(X, a=X * 2, y=5.0), plain(X, a=X * 2, y=5.0))
    _same(fused(y=X * 2, x=X), plain(y=X * 2, x=X))
    with pytest.raises(TypeError):
        fused(X, y=X, c=1)
    with pytest.raises(TypeError):
        fused(X, X, y=X)


def test_unchanged_globals_cost_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    from nfuser.compiler.trace.captures.captured import Captured

    def scaled(x: Any, shift: float = 1.5) -> Any:
        return x * factor + shift

    fused = warm(scaled, X)
    asked: list[int] = []
    read = Captured.read

    def counted(self: Any, *args: Any) -> Any:
        asked.append(1)
        return read(self, *args)

    monkeypatch.setattr(Captured, "read", counted)
    fused(X)
    assert not asked
    monkeypatch.setitem(globals(), "factor", float("3.25"))
    _same(fused(X), scaled(X))
    assert asked


def test_an_attribute_that_changed_is_seen() -> None:
    class Model:
        def __init__(self) -> None:
            self.scale = 2.0

        @nfuser.fuse
        def run(self, x: Any) -> Any:
            return x * self.scale

    model = Model()
    for value in (2.0, 3.0, 3.0, 2, 2.0):
        model.scale = value
        for _ in range(3):
            _same(model.run(X), X * value)
    del model.scale
    with pytest.raises(AttributeError):
        model.run(X)


def test_an_error_of_a_guard_is_raised() -> None:
    class Model:
        fails = False

        @property
        def scale(self) -> float:
            if self.fails:
                raise KeyboardInterrupt
            return float("2.0")

        @nfuser.fuse
        def run(self, x: Any) -> Any:
            return x * self.scale

    model = Model()
    for _ in range(4):
        _same(model.run(X), X * 2)
    model.fails = True
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            model.run(X)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_native_calls_multiply_by_the_library(library: str) -> None:
    def layer(x: Any, w: Any) -> Any:
        return np.maximum(x @ w.T + 1, 0) @ w, x @ w.T

    x, w = _array(6, 5), _array(3, 5)
    given = [x, w]
    if library == "torch":
        given = [pytest.importorskip("torch").from_numpy(a) for a in given]
    fused = warm(layer, *given)
    for _ in range(3):
        for found, wanted in zip(fused(*given), layer(x, w), strict=True):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)
    assert served(fused, *given) == 1
