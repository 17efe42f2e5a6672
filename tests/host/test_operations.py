# SPDX-License-Identifier: Apache-2.0
"""Each operation gives what NumPy gives, in new arrays and in the caller's buffers."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import DeviceError, DTypeError, MutationError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser import HostIrContainer

X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6)
Y = np.linspace(1, 2, 24, dtype=np.float32).reshape(6, 4)
OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "set": (lambda h, x, y: h.set(x), lambda x, y: x),
    "unary": (lambda h, x, y: h.unary("exp", x), lambda x, y: np.exp(x)),
    "compare": (
        lambda h, x, y: h.binary("less", x, 0.5),
        lambda x, y: x < 0.5,
    ),
    "binary": (
        lambda h, x, y: h.binary("add", x, h.permute(y, (1, 0))),
        lambda x, y: x + y.T,
    ),
    "stretched": (
        lambda h, x, y: h.binary("multiply", x, h.select(x, 0, 1)),
        lambda x, y: x * x[1],
    ),
    "number first": (lambda h, x, y: h.binary("subtract", 2, x), lambda x, y: 2 - x),
    "reduce": (lambda h, x, y: h.reduce("sum", x, -1), lambda x, y: x.sum(1)),
    "reduce all": (lambda h, x, y: h.reduce("max", x, (0, 1)), lambda x, y: x.max()),
    "matmul": (lambda h, x, y: h.matmul(x, y), lambda x, y: x @ y),
    "matmul row": (
        lambda h, x, y: h.matmul(h.select(x, 0, 2), y),
        lambda x, y: x[2] @ y,
    ),
    "select": (lambda h, x, y: h.select(x, 1, 3), lambda x, y: x[:, 3]),
    "slice": (
        lambda h, x, y: h.slice(x, (1, 0), (4, 5), (1, 2)),
        lambda x, y: x[1:4, 0:5:2],
    ),
    "permute": (lambda h, x, y: h.permute(x, (1, 0)), lambda x, y: x.T),
    "reshape": (
        lambda h, x, y: h.reshape(x, (x.shape[0] * x.shape[1],)),
        lambda x, y: x.reshape(-1),
    ),
    "reshape a permuted one": (
        lambda h, x, y: h.reshape(h.permute(x, (1, 0)), (3, 8)),
        lambda x, y: x.T.reshape(3, 8),
    ),
}


def _evaluator(build: Callable[..., Any]) -> nfuser.HostIrEvaluator:
    hc = nfuser.HostIrContainer()
    x, y = hc.define_tensor([-1, -1]), hc.define_tensor([-1, -1])
    hc.add_output(build(hc, x, y))
    return nfuser.HostIrEvaluator(hc.program())


def _strided(like: Any) -> Any:
    shape = tuple(2 * n for n in like.shape)
    return np.full(shape, 7, like.dtype)[(*(slice(None, None, 2) for _ in shape), ...)]


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_gives_what_numpy_gives(name: str) -> None:
    build, oracle = OPERATIONS[name]
    evaluator = _evaluator(build)
    want = np.asarray(oracle(X, Y))
    (made,) = evaluator.run([X, Y])
    np.testing.assert_array_equal(made, want, strict=True)
    for out in (np.empty_like(want), _strided(want)):
        (given,) = evaluator.run([X, Y], [out])
        assert given is out
        np.testing.assert_array_equal(out, want, strict=True)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_wrong_buffer_is_refused_before_anything_is_written(name: str) -> None:
    build, oracle = OPERATIONS[name]

    def both(h: HostIrContainer, x: Any, y: Any) -> Any:
        h.add_output(h.set(x))
        return build(h, x, y)

    evaluator = _evaluator(both)
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
            evaluator.run([X, Y], [first, out])
        assert (first == 7).all()


def test_outputs_that_overlap_an_input_are_written_last() -> None:
    def build(h: HostIrContainer, x: Any, y: Any) -> Any:
        h.add_output(h.binary("add", x, 1.0))
        return h.binary("multiply", x, 2.0)

    x = X.copy()
    first, second = _evaluator(build).run([x, Y], [x, None])
    assert first is x
    np.testing.assert_array_equal(first, X + 1)
    np.testing.assert_array_equal(second, X * 2)
    x = np.arange(24, dtype=np.float32)
    half, moved = x[:12].reshape(3, 4), x[4:16].reshape(3, 4)
    want = half * 2
    _evaluator(build).run([half, Y], [None, moved])
    np.testing.assert_array_equal(moved, want)


def test_arrays_of_two_libraries_are_refused() -> None:
    torch = pytest.importorskip("torch")
    evaluator = _evaluator(OPERATIONS["matmul"][0])
    with pytest.raises(DeviceError, match="input T1"):
        evaluator.run([X, torch.from_numpy(Y)])
    with pytest.raises(DeviceError, match="output 0"):
        evaluator.run([X, Y], [torch.empty(4, 4)])


@pytest.mark.parametrize("name", OPERATIONS)
def test_torch_gives_the_same(name: str) -> None:
    torch = pytest.importorskip("torch")
    build, oracle = OPERATIONS[name]
    evaluator = _evaluator(build)
    given = [torch.from_numpy(X.copy()), torch.from_numpy(Y.copy())]
    want = np.asarray(oracle(X, Y))
    (made,) = evaluator.run(given)
    np.testing.assert_allclose(made.numpy(), want, rtol=1e-6, strict=True)
    out = torch.from_numpy(_strided(want))
    assert evaluator.run(given, [out])[0] is out
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6, strict=True)


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
    evaluator = nfuser.HostIrEvaluator(hc.program())
    array = np.arange(1, 5, dtype=np.int32)
    wanted = [np.sqrt(array), array.sum(), array + 2.5, array / array]
    for got, want in zip(evaluator.run([array]), wanted, strict=True):
        np.testing.assert_array_equal(got, np.asarray(want), strict=True)
