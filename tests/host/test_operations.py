# SPDX-License-Identifier: Apache-2.0
"""Each operation gives what NumPy gives, in new arrays and in the caller's buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import nfuser
from nfuser.errors import (
    DeviceError,
    DTypeError,
    HostError,
    MutationError,
    ShapeError,
)
from tests.host.libraries import LIBRARIES, array_of
from tests.host.operations import OPERATIONS, X, Y, evaluator, into_a_buffer, strided

if TYPE_CHECKING:
    from nfuser import HostIrContainer


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_gives_what_numpy_gives(name: str) -> None:
    build, oracle = OPERATIONS[name]
    ready = evaluator(build)
    want = np.asarray(oracle(X, Y))
    (made,) = ready.run([X, Y])
    np.testing.assert_array_equal(made, want, strict=True)
    for out in (np.empty_like(want), strided(want)):
        (given,) = ready.run([X, Y], [out])
        assert given is out
        np.testing.assert_array_equal(out, want, strict=True)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_wrong_buffer_is_refused_before_anything_is_written(name: str) -> None:
    build, oracle = OPERATIONS[name]

    def both(h: HostIrContainer, x: Any, y: Any) -> Any:
        h.add_output(h.set(x))
        return build(h, x, y)

    ready = evaluator(both)
    want = np.asarray(oracle(X, Y))
    first = np.full_like(X, 7)
    locked = np.empty_like(want)
    locked.flags.writeable = False
    wrong: list[tuple[type[Exception], Any]] = [
        (ShapeError, np.empty((*want.shape, 1), want.dtype)),
        (DTypeError, np.empty(want.shape, np.int16)),
        (MutationError, locked),
    ]
    for error, out in wrong:
        with pytest.raises(error, match="output 1 of host"):
            ready.run([X, Y], [first, out])
        assert (first == 7).all()


def test_outputs_that_overlap_an_input_are_written_last() -> None:
    def build(h: HostIrContainer, x: Any, y: Any) -> Any:
        h.add_output(h.binary("add", x, 1.0))
        return h.binary("multiply", x, 2.0)

    x = X.copy()
    first, second = evaluator(build).run([x, Y], [x, None])
    assert first is x
    np.testing.assert_array_equal(first, X + 1)
    np.testing.assert_array_equal(second, X * 2)
    x = np.arange(24, dtype=np.float32)
    half, moved = x[:12].reshape(3, 4), x[4:16].reshape(3, 4)
    want = half * 2
    evaluator(build).run([half, Y], [None, moved])
    np.testing.assert_array_equal(moved, want)


def test_no_output_is_read_after_another_was_written_over_it() -> None:
    hc = nfuser.HostIrContainer()
    x, y = hc.define_tensor([-1]), hc.define_tensor([-1])
    for output in (x, y, hc.unary("negative", x)):
        hc.add_output(output)
    whole = np.arange(8, dtype=np.float32)
    a, b, third = whole[:3].copy(), whole[3:6].copy(), np.empty(3, np.float32)
    made = nfuser.HostIrEvaluator(hc.program()).run([a, b], [b, a, third])
    assert made[0] is b
    np.testing.assert_array_equal([b, a, third], [[0, 1, 2], [3, 4, 5], [0, -1, -2]])
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1])
    hc.add_output(hc.unary("negative", x))
    hc.add_output(x)
    a, held = whole[1:4], np.empty(3, np.float32)
    nfuser.HostIrEvaluator(hc.program()).run([a], [a, held])
    np.testing.assert_array_equal([a, held], [[-1, -2, -3], [1, 2, 3]])


def test_an_input_that_cannot_be_written_is_refused_before_others_are() -> None:
    hc = nfuser.HostIrContainer()
    x, y = hc.define_tensor([-1]), hc.define_tensor([-1])
    hc.binary("add", x, 1.0, out=x)
    part = hc.slice(y, (0,), (1,))
    hc.binary("add", part, 1.0, out=part)
    ready = nfuser.HostIrEvaluator(hc.program())
    first, locked = np.zeros(3, np.float32), np.zeros(3, np.float32)
    locked.flags.writeable = False
    repeated = as_strided(np.zeros(1, np.float32), (3,), (0,))
    for second in (locked, repeated):
        with pytest.raises(MutationError, match="input T1 of host, which it writes"):
            ready.run([first, second])
        assert not first.any()
    ready.run([first, np.zeros(3, np.float32)])
    assert first.all()


def test_a_number_of_numpy_is_an_array_without_axes() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([])
    hc.add_output(hc.binary("add", x, 1.0))
    ready = nfuser.HostIrEvaluator(hc.program())
    for given in (np.float32(3), np.array(3, np.float32)):
        np.testing.assert_array_equal(ready.run([given])[0], np.array(4, np.float32))
    with pytest.raises(DTypeError, match="input T0 of host: expected f32, found f64"):
        ready.run([np.float64(3)])


def test_arrays_of_two_libraries_are_refused() -> None:
    torch = pytest.importorskip("torch")
    ready = evaluator(OPERATIONS["matmul"][0])
    with pytest.raises(DeviceError, match="input T1"):
        ready.run([X, torch.from_numpy(Y)])
    with pytest.raises(DeviceError, match="output 0"):
        ready.run([X, Y], [torch.empty(4, 4)])


@pytest.mark.parametrize("name", OPERATIONS)
def test_torch_gives_the_same(name: str) -> None:
    torch = pytest.importorskip("torch")
    build, oracle = OPERATIONS[name]
    ready = evaluator(build)
    given = [torch.from_numpy(X.copy()), torch.from_numpy(Y.copy())]
    want = np.asarray(oracle(X, Y))
    (made,) = ready.run(given)
    np.testing.assert_allclose(made.numpy(), want, rtol=1e-6, strict=True)
    out = torch.from_numpy(strided(want))
    assert ready.run(given, [out])[0] is out
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6, strict=True)


@LIBRARIES
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_writes_the_buffer_that_it_names(name: str, library: str) -> None:
    build, oracle = OPERATIONS[name]
    want = np.asarray(oracle(X, Y))
    ready = into_a_buffer(build, want)
    x, y = (array_of(library, array.copy()) for array in (X, Y))
    for out in (np.empty_like(want), strided(want)):
        copied, buffer = array_of(library, np.empty_like(X)), array_of(library, out)
        assert ready.run([x, y, copied, buffer])[0] is buffer
        np.testing.assert_array_equal(copied, X)
        np.testing.assert_allclose(out, want, rtol=1e-6, strict=True)


@LIBRARIES
@pytest.mark.parametrize("name", [n for n in OPERATIONS if n != "reduce all"])
def test_a_buffer_of_another_size_is_left_alone(name: str, library: str) -> None:
    build, oracle = OPERATIONS[name]
    want = np.asarray(oracle(X, Y))
    ready = into_a_buffer(build, want)
    x, y, copied = (array_of(library, array.copy()) for array in (X, Y, X))
    large = np.full([n + 1 for n in want.shape], 1, want.dtype)
    with pytest.raises(HostError, match="shape") as caught:
        ready.run([x, y, copied, array_of(library, large)])
    assert "operations.py" in str(caught.value)
    assert (large == 1).all()


def test_integers_become_what_numpy_makes_of_them() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1], "int32")
    for made in (
        hc.unary("sqrt", x),
        hc.reduce("sum", x, 0),
        hc.binary("add", x, 2.5),
        hc.binary("true_divide", x, x),
    ):
        hc.add_output(made)
    ready = nfuser.HostIrEvaluator(hc.program())
    array = np.arange(1, 5, dtype=np.int32)
    wanted = [np.sqrt(array), array.sum(), array + 2.5, array / array]
    for got, want in zip(ready.run([array]), wanted, strict=True):
        np.testing.assert_array_equal(got, np.asarray(want), strict=True)


@LIBRARIES
def test_no_elements_do_not_fit_to_some(library: str) -> None:
    for name in ("arctan2", "add"):
        hc = nfuser.HostIrContainer()
        x, y = hc.define_tensor([-1]), hc.define_tensor([-1])
        hc.add_output(hc.binary(name, x, y))
        ready = nfuser.HostIrEvaluator(hc.program())
        given = [array_of(library, np.ones(n, np.float32)) for n in (0, 3)]
        for _ in range(3):
            with pytest.raises(HostError, match=name):
                ready.run(given)


@LIBRARIES
def test_functions_that_write_nowhere_or_take_no_numbers(library: str) -> None:
    """Of torch's, some have no ``out``, and some want an array where NumPy does not."""
    hc = nfuser.HostIrContainer()
    x, n = hc.define_tensor([-1]), hc.define_tensor([-1], np.int32)
    for name in ("isnan", "isinf", "isfinite", "positive"):
        hc.add_output(hc.unary(name, x))
    for name in ("arctan2", "maximum", "hypot", "heaviside"):
        hc.add_output(hc.binary(name, x, 2.0))
    hc.add_output(hc.unary("conjugate", n))
    hc.add_output(hc.binary("ldexp", 1.5, n))
    values, whole = np.array([1, -2, np.inf], "f4"), np.arange(3, dtype=np.int32)
    wanted = [np.isnan(values), np.isinf(values), np.isfinite(values), values]
    wanted += [np.arctan2(values, 2), np.maximum(values, 2), np.hypot(values, 2)]
    wanted += [np.heaviside(values, 2), whole, np.ldexp(1.5, whole)]
    ready = nfuser.HostIrEvaluator(hc.program())
    for _ in range(3):
        found = ready.run([array_of(library, values), array_of(library, whole)])
        for made, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(made), want, rtol=1e-6)


def test_a_product_that_is_written_as_a_function_is_numpys() -> None:
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([-1, -1])
    hc.add_output(hc.binary("matmul", x, x))
    ready = nfuser.HostIrEvaluator(hc.program())
    for _ in range(3):
        with pytest.raises(HostError, match="mismatch in its core dimension"):
            ready.run([np.ones((3, 4), np.float32)])
