# SPDX-License-Identifier: Apache-2.0
"""A call that cannot be served says what, where, and what to pass instead."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import collections
import inspect
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from nfuser.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    NfuserError,
    RangeError,
    ShapeError,
    TraceError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.ones((4, 8), np.float32)


# Functions whose results have sizes that the caller passes.
SIZED: dict[str, Any] = {
    "zeros": lambda x, n: np.zeros_like(x, shape=(n,)),
    "arange": lambda x, n: xp.arange(n) + x.sum(),
    "repeat": lambda x, n: np.repeat(x, n),
    "tile": lambda x, n: np.tile(x, n),
    "expanded": lambda x, n: np.broadcast_to(x[0], (n,)) * 2,
    "padded": lambda x, n: np.pad(x, n),
    "triangle": lambda x, n: xp.tri(n) + x.sum(),
}


def added(x: Any, y: Any) -> Any:
    return x + y


def summed(x: Any) -> Any:
    return x["parts"][0] + 1


def _line(mark: str) -> str:
    """Return how a message ends that shows the line of this file with ``mark``."""
    lines = inspect.getsource(inspect.getmodule(_line)).splitlines()  # pyright: ignore[reportArgumentType]
    number, text = next((k, s) for k, s in enumerate(lines, 1) if s.endswith(mark))
    return f"\n  at {__file__}:{number}\n    {text.strip()}"


def _message(error: type[NfuserError], call: Callable[[], Any]) -> str:
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def on_gpu(library: str = "cupy", device: int = 1, ndim: int = 2) -> Any:
    """Return what looks like an array of CuPy or Numba."""
    shape = (4, 8)[:ndim]
    name, module = ("ndarray", "cupy")
    if library == "numba":
        name, module = ("DeviceNDArray", "numba.cuda.cudadrv.devicearray")
    array: Any = type(name, (), {"__module__": module})()
    array.shape, array.strides, array.dtype = shape, (32, 4)[2 - ndim :], X.dtype
    array.data = SimpleNamespace(ptr=0x7000, device_id=device)
    array.device_ctypes_pointer = SimpleNamespace(value=0x7000)
    context = SimpleNamespace(device=SimpleNamespace(id=device))
    array.gpu_data = SimpleNamespace(context=context)
    return array


class Interface:
    """An array of no library that nfuser knows."""

    __cuda_array_interface__: Any = {"shape": (3,), "typestr": "<f4", "version": 3}


class Unhashable:
    __hash__ = None  # pyright: ignore[reportAssignmentType]


DEFAULTS: dict[str, Any] = collections.defaultdict(float, a=1.0)
RECORD = np.zeros(3, [("a", "f4"), ("b", "i4")])
ARGUMENTS: dict[str, tuple[Any, type[NfuserError], str]] = {
    "object": (np.array([1, None]), DTypeError, "x.astype(np.float64)"),
    "str": (np.array(["a"]), DTypeError, "turn text into numbers"),
    "datetime": (np.array(["2020-01-01"], "M8[D]"), DTypeError, "x.view(np.int64)"),
    "timedelta": (np.array([1], "m8[s]"), DTypeError, "x.view(np.int64)"),
    "record": (RECORD, DTypeError, "x['name']"),
    "longdouble": (np.ones(3, np.longdouble), DTypeError, "x.astype(np.float64)"),
    "masked": (np.ma.array([1.0]), ArgumentError, ".filled()"),
    "set": ({1, 2}, ArgumentError, ": pass tuple(sorted(x)); expected"),
    "defaultdict": (DEFAULTS, ArgumentError, ": pass dict(x), as of its kinds only"),
    "float8": (
        np.ones(3, ml_dtypes.float8_e4m3fn),
        DTypeError,
        "convert it with x.astype(np.float32)",
    ),
    "unhashable": (Unhashable(), ArgumentError, ": pass its arrays and numbers"),
    "interface": (Interface(), ArgumentError, ": pass cupy.asarray(x)"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_is_refused_by_name_with_the_calling_line(name: str) -> None:
    value, error, advice = ARGUMENTS[name]
    fused = nfuser.fuse(added)
    text = _message(error, lambda: fused(X, value))  # by place
    assert text.startswith("argument y of added: ")
    assert advice in text
    assert text.endswith(_line("# by place"))
    text = _message(error, lambda: fused(y=X, x=value))  # by name
    assert text.startswith("argument x of added: ")
    assert text.endswith(_line("# by name"))


def test_an_argument_inside_a_nest_is_named() -> None:
    fused = nfuser.fuse(summed)
    text = _message(DTypeError, lambda: fused({"parts": [np.array(["a"])]}))
    assert text.startswith("argument x['parts'][0] of summed: ")
    text = _message(ArgumentError, lambda: fused({"parts": [{1}]}))
    assert text.startswith("argument x['parts'][0] of summed: ")
    every: Any = nfuser.fuse(lambda *rest, **named: rest)
    text = _message(DTypeError, lambda: every(1, 2.0, np.array(["a"])))
    assert text.startswith("argument rest[2] of <lambda>: ")
    text = _message(DTypeError, lambda: every(1, z=np.array(["a"])))
    assert text.startswith("argument z of <lambda>: ")


def test_sizes_that_do_not_fit_name_operation_line_and_remedy() -> None:
    fused = nfuser.fuse(added)
    first = _message(ShapeError, lambda: fused(X, X[:, :7]))
    fused(X, X)
    later = _message(ShapeError, lambda: fused(X, X[:, :7]))
    assert fused.cache_info().traces == 1
    assert first == later
    assert later.startswith("add: operands could not be broadcast together with shapes")
    assert "(4,8) (4,7); axis -1 has sizes 8 and 7" in later
    assert "take a slice" in later
    number = inspect.getsourcelines(added)[1] + 1
    assert later.endswith(f"\n  at {__file__}:{number}\n    return x + y")
    fused(X, X[0])
    assert "write x[:, None] for (4,)" in _message(
        ShapeError, lambda: fused(X, X[:, 0])
    )


def test_a_choice_is_called_where() -> None:
    fused = nfuser.fuse(lambda x, y: np.where(x > 0, x, y))
    text = _message(ShapeError, lambda: fused(X, X[:3]))
    assert text.startswith("where: ")


def test_a_number_that_no_longer_fits_is_told_with_its_value() -> None:
    fused = nfuser.fuse(lambda x, n: x + n)
    small = np.ones(3, np.uint8)
    fused(small, 3)
    for n in (300, -1):
        text = _message(RangeError, lambda n=n: fused(small, n))
        assert f"integer {n} out of bounds for uint8" in text
        assert "holds 0 to 255" in text
        assert "{}" not in text
        assert re.search(r"test_bad_calls\.py:\d+\n    fused = nfuser", text)


DEVICES: dict[str, tuple[Any, Any, tuple[str, ...]]] = {
    "NumPy and CuPy": (
        X,
        on_gpu(),
        ("x (numpy) on cpu and y (cupy) on cuda:1", "pass cupy.asarray(x)"),
    ),
    "NumPy and Numba": (
        on_gpu("numba", 0),
        X,
        ("x (numba) on cuda:0 and y (numpy) on cpu", "numba.cuda.to_device(y)"),
    ),
    "two GPUs": (
        on_gpu(device=0),
        on_gpu(device=1),
        ("x (cupy) on cuda:0 and y (cupy) on cuda:1", "copy y to cuda:0"),
    ),
    "two libraries": (
        on_gpu(),
        on_gpu("numba"),
        ("x (cupy) on cuda:1 and y (numba) on cuda:1", "one library", "asarray(y)"),
    ),
}


@pytest.mark.parametrize("name", DEVICES)
def test_arrays_that_are_apart_are_named_with_their_places(name: str) -> None:
    x, y, parts = DEVICES[name]
    text = _message(DeviceError, lambda: nfuser.fuse(added)(x, y))  # apart
    assert text.startswith("added: expected ")
    assert [part for part in parts if part not in text] == []
    assert text.endswith(_line("# apart"))


def test_a_captured_array_that_is_apart_is_named() -> None:
    weight = on_gpu()
    type(weight).__cuda_array_interface__ = {}
    fused = nfuser.fuse(lambda x: x * weight)
    text = _message(DeviceError, lambda: fused(X))
    assert "x (numpy) on cpu and captured weight (cupy) on cuda:1" in text


def test_torch_beside_another_library_is_named() -> None:
    torch = pytest.importorskip("torch")
    fused = nfuser.fuse(added)
    text = _message(DeviceError, lambda: fused(torch.ones(4, 8), on_gpu()))
    assert "x (torch) on cpu and y (cupy) on cuda:1" in text
    assert type(fused(X, torch.ones(4, 8))) is torch.Tensor


def endless(x: Any) -> Any:
    return endless(x) + 1


def _below(frames: int, call: Callable[[], Any]) -> Any:
    return _below(frames - 1, call) if frames else call()


# Where the limit is met depends on the frames above: in the function, where a call of
# it begins, or in what watches calls begin.
@pytest.mark.parametrize("frames", range(12))
def test_a_recursion_without_end_is_refused(frames: int) -> None:
    fused = nfuser.fuse(endless)
    text = _message(TraceError, lambda: _below(frames, lambda: fused(X)))
    assert ": endless calls itself" in text
    assert "return endless(x) + 1" in text
    with pytest.raises(RecursionError):
        nfuser.fuse(endless)(X)


def test_a_recursion_that_ends_is_traced() -> None:
    @nfuser.fuse
    def power(x: Any, n: int) -> Any:
        return x if n == 0 else x * power(x, n - 1)

    np.testing.assert_array_equal(power(X * 2, 3), X * 16)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: f(X, X, X, X), "takes 2 positional arguments but 4 were given"),
        (lambda f: f(X), "missing 1 required positional argument: 'y'"),
        (lambda f: f(X, z=X), "unexpected keyword argument 'z'"),
        (lambda f: f(X, x=X), "multiple values for argument 'x'"),
    ],
)
def test_arguments_that_do_not_fit_the_parameters(
    call: Callable[[Any], Any], words: str
) -> None:
    text = _message(ArgumentError, lambda: call(nfuser.fuse(added)))
    assert text.startswith("added() ")
    assert words in text
    assert "; expected added(x: 'Any', y: 'Any')" in text
    assert re.search(r"test_bad_calls\.py:\d+\n    \(lambda f: f\(X", text)


def test_a_type_error_of_the_users_stays_as_it_is() -> None:
    fused = nfuser.fuse(lambda x: len(3))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError) as caught:
        fused(X)
    assert str(caught.value) == "object of type 'int' has no len()"


def test_a_backend_that_there_is_not_is_refused_at_once() -> None:
    for given in ((), (abs,)):
        with pytest.raises(ArgumentError, match=r"backend must be one of .*'gpu'"):
            nfuser.fuse(*given, backend="gpu")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch", "Tensor"),
        ("jaxlib._jax", "ArrayImpl"),
        ("cupy", "ndarray"),
        ("numba.cuda", "DeviceNDArray"),
    ],
)
def test_what_only_has_the_name_of_an_array_is_refused(module: str, name: str) -> None:
    poser = type(name, (), {"__module__": module})()
    double = nfuser.fuse(lambda x: x * 2)
    with pytest.raises(
        ArgumentError, match=r"pass an array that .* made: this|not take torch"
    ):
        double(poser)


@pytest.mark.parametrize("count", [2**60, 2**62, 2**63, 2**64, 10**30])
@pytest.mark.parametrize("name", list(SIZED))
def test_arrays_that_cannot_be_addressed_are_refused(name: str, count: int) -> None:
    with pytest.raises(ShapeError, match=r"make it smaller: an array of shape \("):
        nfuser.fuse(SIZED[name])(np.ones(3), count)


def test_numbers_of_sections_may_be_numpys_own() -> None:
    parts = nfuser.fuse(lambda x, n: [part * 1 for part in np.split(x, n)])
    for count in (3, np.int64(3), np.int32(2), 6):
        assert len(parts(np.arange(6.0), count)) == count


@pytest.mark.parametrize("number", [6, -7, 100])
def test_an_integer_argument_of_take_is_looked_at_in_each_call(number: int) -> None:
    taken = nfuser.fuse(lambda x, n: np.take(x, n))
    x = np.arange(6.0)
    for inside in (0, -6, 5, np.int64(3)):
        assert taken(x, inside) == x[inside]
    for outside in (number, np.int64(number)):
        with pytest.raises(IndexError, match="out of bounds"):
            taken(x, outside)
    clipped = nfuser.fuse(lambda x, n: np.take(x, n, mode="clip"))
    assert clipped(x, number) == np.take(x, number, mode="clip")
