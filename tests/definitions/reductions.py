# SPDX-License-Identifier: Apache-2.0
"""Steps that fold axes, or normalize along them."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from tests.definitions.pointwise import in_f32, within
from tests.definitions.writer import Term, epsilon, largest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.definitions.writer import Writer


def _axes(w: Writer, term: Term) -> tuple[int, ...] | None:
    rank = term.array.ndim
    if w.dice.random() < 0.15:
        return None
    chosen = w.dice.sample(range(rank), w.dice.randint(1, rank))
    return tuple(k - rank if w.dice.random() < 0.3 else k for k in chosen)


def _count(term: Term, axes: tuple[int, ...] | None) -> int:
    if axes is None:
        return term.array.size
    return int(np.prod([term.array.shape[k] for k in axes]))


def _full(array: Any) -> bool:
    return array.size > 0


def folding(name: str, kinds: str, *, exact: bool = False) -> Callable[[Writer], None]:
    """Return the step of a reduction that NumPy has under the same name."""
    meaning: Callable[..., Any] = getattr(np, name)
    plural = "keepdim" if name in ("sum", "prod", "max", "min") else "keepdims"

    def step(w: Writer) -> None:
        fits = None if name in ("sum", "any", "all", "count_nonzero") else _full
        term = w.pick(kinds, (1, 4), exact=exact, fits=fits)
        if name == "prod" and term.kind == "f":
            term = within(w, term, 0.8, 1.2)
        axes, keep = _axes(w, term), w.dice.random() < 0.4
        made = getattr(w.fd.ops, name)(
            term.handle, None if axes is None else [*axes], **{plural: keep}
        )
        found = in_f32(lambda x: meaning(x, axis=axes, keepdims=keep), term.array)
        number = _count(term, axes)
        scale = {"sum": number, "prod": 3 * number * max(1.0, largest(found))}
        bits = epsilon(found.dtype) * largest(term.array)
        factor = scale.get(name, 2)
        w.computed(made, found, factor * (term.slack + bits))

    return step


def choosing(name: str) -> Callable[[Writer], None]:
    """Return the step of argmax or argmin."""

    def step(w: Writer) -> None:
        term = w.pick("if", (1, 4), exact=True, fits=_full)
        axis = w.axis(term) if w.dice.random() < 0.8 else None
        made = getattr(w.fd.ops, name)(term.handle, axis)
        w.keep(made, getattr(np, name)(term.array, axis))

    return step


def scanning(name: str) -> Callable[[Writer], None]:
    """Return the step of a scan."""
    ufunc: Any = {
        "cumsum": np.add,
        "cumprod": np.multiply,
        "cummax": np.maximum,
        "cummin": np.minimum,
    }[name]

    def step(w: Writer) -> None:
        term = w.pick("if", (1, 4))
        if name == "cumprod" and term.kind == "f":
            term = within(w, term, 0.8, 1.2)
        axis = w.axis(term)
        options = {} if name[3:] in ("max", "min") else _added(term.array.dtype)
        made = getattr(w.fd.ops, name)(term.handle, axis)
        found = in_f32(lambda x: ufunc.accumulate(x, axis, **options), term.array)
        number = term.array.shape[axis]
        scale = {"cumsum": number, "cumprod": 3 * number * max(1.0, largest(found))}
        bits = epsilon(found.dtype) * largest(term.array)
        w.computed(made, found, scale.get(name, 2) * (term.slack + bits))

    return step


def ordering(name: str) -> Callable[[Writer], None]:
    """Return the step of sort, argsort or topk; equal ones keep their order."""

    def step(w: Writer) -> None:
        term = w.pick("if", (1, 4), exact=True)
        axis, falls = w.axis(term), w.dice.random() < 0.5
        array, last = term.array, term.array.shape[axis] - 1
        if name == "sort":
            found = np.sort(array, axis)
            made = w.fd.ops.sort(term.handle, axis, descending=falls)
            w.keep(made, np.flip(found, axis) if falls else found)
            return
        behind = np.argsort(np.flip(array, axis), axis, kind="stable")
        order = np.argsort(array, axis, kind="stable")
        order = last - np.flip(behind, axis) if falls else order
        if name == "argsort":
            w.keep(w.fd.ops.argsort(term.handle, axis, falls, True), order)
            return
        count = w.dice.randint(0, last + 1)
        first = np.take(order, range(count), axis)
        values, places = w.fd.ops.topk(term.handle, count, axis, falls)
        w.keep(values, np.take_along_axis(array, first, axis))
        w.keep(places, first)

    return step


def _added(dtype: Any) -> dict[str, Any]:
    """Return the dtype in which integers add up."""
    kinds = {"i": np.int64, "b": np.int64, "u": np.uint64}
    return {"dtype": kinds[dtype.kind]} if dtype.kind in kinds else {}


def spread(name: str) -> Callable[[Writer], None]:
    """Return the step of var, std or var_mean, on inputs that do spread."""

    def step(w: Writer) -> None:
        term = w.make("f", [w.dice.choice((3, 5, 7)) for _ in range(2)])
        axis, correction = w.dice.choice((0, 1, None)), w.dice.choice((0, 1))
        wide = term.array.astype(float)
        var = wide.var(axis, ddof=correction)
        named = {"dims" if name != "std" else "axis": axis, "correction": correction}
        made = getattr(w.fd.ops, name)(term.handle, **named)
        dtype = term.array.dtype
        slack = 40 * epsilon(dtype) * (1 + largest(var))
        if name == "var_mean":
            w.keep(made[0], var.astype(dtype), slack)
            w.keep(made[1], wide.mean(axis).astype(dtype), slack)
        else:
            found = var if name == "var" else np.sqrt(var)
            w.keep(made, found.astype(dtype), slack)

    return step


def welford(w: Writer) -> None:
    """Keep a mean, squares and a count of small inputs."""
    term = w.make("f", [w.dice.choice((3, 5, 7)) for _ in range(2)])
    axis = w.dice.choice((0, 1))
    wide = term.array.astype(float)
    mean, squares, count = w.fd.ops.welford(term.handle, [axis])
    dtype, n = term.array.dtype, wide.shape[axis]
    total = wide.var(axis) * n
    slack = 40 * epsilon(dtype) * (1 + largest(total))
    w.keep(mean, wide.mean(axis).astype(dtype), slack)
    w.keep(squares, total.astype(dtype), slack)
    w.keep(count, np.full(total.shape, n), 0.0)


def _norm(x: Any, *, centred: bool, eps: float) -> Any:
    mean = x.mean(-1, keepdims=True) if centred else 0
    power = np.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(power + eps)


NORMAL: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "layer_norm": (lambda x: _norm(x, centred=True, eps=1e-5), {}),
    "log_softmax": (lambda x: special.log_softmax(x, -1), {"axis": -1}),
    "logsumexp": (lambda x: special.logsumexp(x, -1), {"axis": -1}),
    "rms_norm": (lambda x: _norm(x, centred=False, eps=1e-6), {}),
    "softmax": (lambda x: special.softmax(x, -1), {"axis": -1}),
}


def normal(name: str) -> Callable[[Writer], None]:
    """Return the step of a normalization along the last axis."""
    meaning, options = NORMAL[name]

    def step(w: Writer) -> None:
        shape = [w.dice.choice((3, 5, 7)) for _ in range(w.dice.randint(1, 3))]
        term = w.make("f", shape)
        if len(np.unique(term.array)) < 3:
            return
        found = meaning(term.array.astype(float)).astype(term.array.dtype)
        made = getattr(w.fd.ops, name)(term.handle, **options)
        w.keep(made, found, 200 * epsilon(found.dtype) * max(1.0, largest(found)))

    return step


def product(name: str) -> Callable[[Writer], None]:
    """Return the step of a product of matrices; ``linear`` has the second turned."""

    def step(w: Writer) -> None:
        term = w.pick("f", (1, 3))  # torch multiplies no integers on a GPU
        inner, dtype = term.array.shape[-1], term.array.dtype
        shape = (w.dice.choice((1, 3, 5)), inner)
        weights = np.asarray(w.data.integers(0, 5, shape), dtype)
        operands = [term, w.define(weights if name == "linear" else weights.T)]
        if name == "linear" and w.dice.random() < 0.5:
            operands.append(
                w.define(np.asarray(w.data.integers(0, 5, shape[:1]), dtype))
            )
        bias = operands[2].array if len(operands) > 2 else 0
        made = getattr(w.fd.ops, name)(*(x.handle for x in operands))
        found = in_f32(lambda x: np.matmul(x, weights.T) + bias, term.array)
        # Each of the inner products may be off, and rounds.
        bits = 2 * epsilon(dtype) * (1 + largest(term.array))
        w.computed(made, found.astype(dtype), 4 * (1 + inner) * (term.slack + bits))

    return step


STEPS: dict[str, Callable[[Writer], None]] = {
    **{name: folding(name, "if") for name in ("sum", "prod", "max", "min", "mean")},
    **{name: folding(name, "if") for name in ("ptp",)},
    **{name: folding(name, "bif", exact=True) for name in ("any", "all")},
    "count_nonzero": folding("count_nonzero", "bif", exact=True),
    **{name: scanning(name) for name in ("cumsum", "cumprod", "cummax", "cummin")},
    **{name: ordering(name) for name in ("sort", "argsort", "topk")},
    **{name: choosing(name) for name in ("argmax", "argmin")},
    **{name: spread(name) for name in ("var", "var_mean", "std")},
    "welford": welford,
    **{name: normal(name) for name in NORMAL},
    **{name: product(name) for name in ("linear", "matmul")},
}
