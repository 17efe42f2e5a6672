# SPDX-License-Identifier: Apache-2.0
"""Operations of host programs beside NumPy's, and the buffers that they write."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6)
Y = np.linspace(1, 2, 24, dtype=np.float32).reshape(6, 4)
OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "set": (lambda h, x, y, **o: h.set(x, **o), lambda x, y: x),
    "unary": (lambda h, x, y, **o: h.unary("exp", x, **o), lambda x, y: np.exp(x)),
    "compare": (
        lambda h, x, y, **o: h.binary("less", x, 0.5, **o),
        lambda x, y: x < 0.5,
    ),
    "binary": (
        lambda h, x, y, **o: h.binary("add", x, h.permute(y, (1, 0)), **o),
        lambda x, y: x + y.T,
    ),
    "stretched": (
        lambda h, x, y, **o: h.binary("multiply", x, h.select(x, 0, 1), **o),
        lambda x, y: x * x[1],
    ),
    "number first": (
        lambda h, x, y, **o: h.binary("subtract", 2, x, **o),
        lambda x, y: 2 - x,
    ),
    "reduce": (
        lambda h, x, y, **o: h.reduce("sum", x, -1, **o),
        lambda x, y: x.sum(1),
    ),
    "reduce all": (
        lambda h, x, y, **o: h.reduce("max", x, (0, 1), **o),
        lambda x, y: x.max(),
    ),
    "matmul": (lambda h, x, y, **o: h.matmul(x, y, **o), lambda x, y: x @ y),
    "matmul row": (
        lambda h, x, y, **o: h.matmul(h.select(x, 0, 2), y, **o),
        lambda x, y: x[2] @ y,
    ),
    "select": (lambda h, x, y, **o: h.select(x, 1, 3, **o), lambda x, y: x[:, 3]),
    "slice": (
        lambda h, x, y, **o: h.slice(x, (1, 0), (4, 5), (1, 2), **o),
        lambda x, y: x[1:4, 0:5:2],
    ),
    "permute": (lambda h, x, y, **o: h.permute(x, (1, 0), **o), lambda x, y: x.T),
    "reshape": (
        lambda h, x, y, **o: h.reshape(x, (x.shape[0] * x.shape[1],), **o),
        lambda x, y: x.reshape(-1),
    ),
    "reshape a permuted one": (
        lambda h, x, y, **o: h.reshape(h.permute(x, (1, 0)), (3, 8), **o),
        lambda x, y: x.T.reshape(3, 8),
    ),
}

SQUARE = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
IN_PLACE: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "square": (lambda h, x: h.matmul(x, x, out=x), lambda a: a @ a),
    "turn": (lambda h, x: h.permute(x, (1, 0), out=x), lambda a: a.T),
    "turned copy": (lambda h, x: h.set(h.permute(x, (1, 0)), out=x), lambda a: a.T),
    "sum with the turned": (
        lambda h, x: h.binary("add", x, h.permute(x, (1, 0)), out=x),
        lambda a: a + a.T,
    ),
    "less a row": (
        lambda h, x: h.binary("subtract", x, h.row(x, 3), out=x),
        lambda a: a - a[3],
    ),
    "rows move down": (
        lambda h, x: h.set(
            h.slice(x, (0, 0), (63, 64)), out=h.slice(x, (1, 0), (64, 64))
        ),
        lambda a: np.concatenate([a[:1], a[:-1]]),
    ),
    "rows move up": (
        lambda h, x: h.unary(
            "sin",
            h.slice(x, (1, 0), (64, 64)),
            out=h.slice(x, (0, 0), (63, 64)),
        ),
        lambda a: np.concatenate([np.sin(a[1:]), a[-1:]]),
    ),
    "sums into a row": (
        lambda h, x: h.reduce("sum", x, 0, out=h.alias_select(x, 0, 0)),
        lambda a: np.concatenate([a.sum(0)[None], a[1:]]),
    ),
    "largest into a row": (
        lambda h, x: h.reduce("max", x, 1, out=h.alias_select(x, 0, 0)),
        lambda a: np.concatenate([a.max(1)[None], a[1:]]),
    ),
    "half of a product": (
        lambda h, x: h.matmul(
            h.slice(x, (0, 0), (32, 64)), x, out=h.slice(x, (32, 0), (64, 64))
        ),
        lambda a: np.concatenate([a[:32], a[:32] @ a]),
    ),
    "in place indeed": (
        lambda h, x: h.unary("negative", h.row(x, 5), out=h.row(x, 5)),
        lambda a: np.concatenate([a[:5], -a[5:6], a[6:]]),
    ),
}


def check_in_place(
    name: str, give: Callable[[Any], Any], back: Callable[[Any], Any]
) -> None:
    """Run a program of ``IN_PLACE`` on what ``give`` makes; compare with NumPy."""
    build, oracle = IN_PLACE[name]
    hc = nfuser.HostIrContainer()
    x = hc.define_tensor([64, 64])
    build(hc, x)
    hc.add_output(x)
    array = give(SQUARE.copy())
    nfuser.HostIrEvaluator(hc.program()).run([array])
    np.testing.assert_allclose(back(array), oracle(SQUARE), rtol=1e-4, atol=1e-4)


def evaluator(build: Callable[..., Any]) -> nfuser.HostIrEvaluator:
    """Return what runs an operation on two matrices."""
    hc = nfuser.HostIrContainer()
    x, y = hc.define_tensor([-1, -1]), hc.define_tensor([-1, -1])
    hc.add_output(build(hc, x, y))
    return nfuser.HostIrEvaluator(hc.program())


def into_a_buffer(build: Callable[..., Any], like: Any) -> nfuser.HostIrEvaluator:
    """Return what runs an operation after a copy, each into an input that it is given.

    The inputs are two matrices, the buffer of the copy and that of the operation.
    """
    hc = nfuser.HostIrContainer("buffers")
    x, y = hc.define_tensor([-1, -1]), hc.define_tensor([-1, -1])
    hc.set(x, out=hc.define_tensor([-1, -1]))
    out = hc.define_tensor([-1] * like.ndim, like.dtype)
    hc.add_output(build(hc, x, y, out=out))
    return nfuser.HostIrEvaluator(hc.program())


def strided(like: Any) -> Any:
    """Return an array whose elements lie two apart along each axis."""
    shape = tuple(2 * n for n in like.shape)
    return np.full(shape, 7, like.dtype)[(*(slice(None, None, 2) for _ in shape), ...)]
