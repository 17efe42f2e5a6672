# SPDX-License-Identifier: Apache-2.0
"""More functions that are made of others, and what they refuse."""
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportCallIssue=false
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as slide

from nfuser import numpy as xp

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOWS = ("bartlett", "blackman", "hamming", "hanning")


def _kinds(x: Any) -> Any:
    """Return ``x`` with as much added as questions about its dtype have answers."""
    answers = (
        np.iscomplexobj(x),
        np.isrealobj(x.real),
        np.can_cast(x, np.float32),
        xp.isdtype(x.dtype, "integral"),
        xp.issubdtype(x.dtype, np.floating),
    )
    kind = np.common_type(x, x) if x.dtype != bool else np.float64
    added = sum(2**k for k, answer in enumerate(answers) if answer)
    return (x + added).astype(xp.promote_types(kind, x.dtype))


MORE: dict[str, dict[str, Callable[[Any], Any]]] = {
    "convolutions": {
        "convolve": lambda x: np.convolve(x[0], x[1]),
        "convolve of a list": lambda x: np.convolve(x[0], [1, 2, 1], "same"),
        "convolve of a longer one": lambda x: np.convolve(x[0, :2], x[1], "same"),
        "convolve of many": lambda x: np.convolve(x.ravel(), np.tile(x[0], 6)),
        "convolve of a number": lambda x: np.convolve(x[0, 0], x[1], "valid"),
        "convolve of two dtypes": lambda x: np.convolve(x[0].astype("f4"), x[1, :2]),
        "correlate": lambda x: np.correlate(x[0], x[1, :2]),
        "correlate full": lambda x: np.correlate(x[0], x[1, :3], "full"),
        "correlate same": lambda x: np.correlate(x[0], x[1, :2], "same"),
        "correlate of a longer one": lambda x: np.correlate(x[0, :2], x[1], "same"),
        "correlate of many": lambda x: np.correlate(x[0], np.tile(x[1], 6), "same"),
        "slide": lambda x: slide(x, 2, axis=0).real.max(-1),
        "slide along both": lambda x: slide(x, (2, x.shape[1])),
        "slide twice": lambda x: slide(x, (2, 1, 2), (1, 0, -1)),
        "slide by nothing": lambda x: slide(x, 0, 0),
    },
    "polynomials": {
        "polyval": lambda x: np.polyval([1, 2, 3], x),
        "polyadd": lambda x: np.polyadd(x[0], x[0, :2]),
        "polyadd of a number": lambda x: np.polyadd(x[0, 0], x[1]),
        "polysub": lambda x: np.polysub(x[0, :2], x[1]),
        "polyder": lambda x: np.polyder(x[0]),
        "polyder of all": lambda x: np.polyder(x[0], 9),
        "polyint": lambda x: np.polyint(x[0]),
        "polyint twice": lambda x: np.polyint(x[0], 2, 3),
        "polyint with ends": lambda x: np.polyint(x[0], m=2, k=[1, 2]),
        "polyint of none": lambda x: np.polyint(x[0], 0),
    },
    "phases": {
        "unwrap": lambda x: np.unwrap(3 * x),
        "unwrap columns": lambda x: np.unwrap(3 * x, axis=0, discont=4.0),
        "unwrap by 5": lambda x: np.unwrap(x, period=5),
        "unwrap by 4": lambda x: np.unwrap(x, period=4),
    },
    "places": {
        "unravel": lambda x: np.unravel_index(x.real.argmax(), x.shape),
        "unravel F": lambda x: np.unravel_index(x.real.argmax(1), x.shape, "F"),
        "unravel numbers": lambda x: (*xp.unravel_index([3, 1], x.shape), x),
        "ravel": lambda x: np.ravel_multi_index((x.real > 0, x.real > 1), (2, 3)),
        "ravel F": lambda x: np.ravel_multi_index(
            (x.real.argmax(0), 1), x.shape, mode="clip", order="F"
        ),
        "ravel each": lambda x: np.ravel_multi_index(
            (x.real.astype(int), x.real.astype("i1")), (2, 3), ("clip", "wrap")
        ),
        "choose": lambda x: np.choose(x.real > 0, [x, 2]),
        "choose by method": lambda x: (x.real > 0).choose([x, 2]),
        "choose by list": lambda x: np.choose([[0], [1], [1]], [x[0], x[1]]),
        "choose clipped": lambda x: (
            (x.real * 2).astype(int).choose(x, 7, 8, mode="clip")
        ),
        "choose rows": lambda x: np.choose(x.real.astype("i4"), x[:3, :1], mode="wrap"),
        "choose the one": lambda x: np.choose(x[:1] * 0 != 0, [x[0]]),
        "isin": lambda x: np.isin(x, x[0]),
        "isin a list": lambda x: np.isin(x, [1, 2.5], invert=True),
        "isin nothing": lambda x: np.isin(x, x[:0]),
        "resize": lambda x: np.resize(x, (5, 7)),
        "resize down": lambda x: np.resize(x, 3),
        "resize nothing": lambda x: np.resize(x[:0], (x.shape[0], 2)),
        "rollaxis": lambda x: np.rollaxis(x[None] + x[:, :1, None], 2),
        "rollaxis to": lambda x: np.rollaxis(x[None], 0, -1),
        "array_equiv": lambda x: np.array_equiv(x, x[:1]),
        "array_equiv of one": lambda x: np.array_equiv(x[:1] * 0, [[0], [0]]),
        "array_equiv of others": lambda x: np.array_equiv(x, x[:, :2]),
    },
    "kinds": {
        "kinds": _kinds,
        "iscomplex": lambda x: np.iscomplex(x),
        "isreal": lambda x: np.isreal(x),
        "around": lambda x: xp.around(x.real / 3, 1),
        "broadcast_shapes": lambda x: (
            x[0, 0]
            + xp.zeros(xp.broadcast_shapes(x.shape, x[:1].shape, (2, 1, 1)), "f4")
        ),
    },
    "masked": {
        "sum where": lambda x: np.sum(x, where=x.real > 0, initial=2),
        "sum from a half": lambda x: x.sum(0, initial=1.5, keepdims=True),
        "sum of none": lambda x: np.sum(x, 1, where=False),
        "prod where": lambda x: np.prod(x.real, 1, where=[[True]], initial=3),
        "max where": lambda x: np.max(x.real, 0, where=x.real > 1, initial=-1),
        "min from": lambda x: x.real.min(initial=1),
        "max of nothing": lambda x: np.max(x.real[:0], 0, initial=1.75),
        "any where": lambda x: np.any(x, 1, where=x.real > 2),
        "all where": lambda x: np.all(x, where=x[0] != 0, axis=0),
        "mean where": lambda x: np.mean(x, axis=1, where=x.real > 0),
        "mean of a half": lambda x: x.real.astype("f2").mean(where=x.real > 0),
        "var where": lambda x: x.var(0, where=x.real > 0, keepdims=True),
        "std where": lambda x: np.std(x, where=x.real > 0, ddof=1),
        "nansum where": lambda x: np.nansum(x, 1, where=x.real < 1, initial=1),
        "reduce where": lambda x: np.add.reduce(x, where=x.real > 0, initial=1),
    },
    "grids": {
        "indices": lambda x: xp.indices(x.shape) + x,
        "indices sparse": lambda x: (*xp.indices(x.shape, "f4", sparse=True), x),
        "indices of nothing": lambda x: (xp.indices(()), x),
        "fromfunction": lambda x: (
            x * xp.fromfunction(lambda i, j, k: i - k * j, x.shape, k=2)
        ),
        "logspace": lambda x: x[0] * xp.logspace(0, 2, x.shape[1]),
        "logspace of 2": lambda x: (xp.logspace(0, 3.5, 5, False, 2, "i4"), x),
        "logspace of elements": lambda x: xp.logspace(x.real[0, 0], x.real[1, 1], 5),
        "geomspace": lambda x: x[0] * xp.geomspace(1, 1000, x.shape[1]),
        "geomspace down": lambda x: (xp.geomspace(-16, -1, 5, dtype="f4"), x),
        "geomspace of one": lambda x: (xp.geomspace(3, 9, 1), x),
        "linspace of elements": lambda x: xp.linspace(x.real[0, 0], x.real[1, 1], 5),
    },
    "windows": {
        "bartlett": lambda x: x[0] * xp.bartlett(x.shape[1]),
        "blackman": lambda x: x[0] * xp.blackman(x.shape[1]),
        "hamming": lambda x: x[0] * xp.hamming(x.shape[1]),
        "hanning": lambda x: x[0] * xp.hanning(x.shape[1]),
        "kaiser": lambda x: x[0] * xp.kaiser(x.shape[1], beta=8.6),
        "short": lambda x: [x[0, 0] * getattr(xp, w)(1) for w in WINDOWS],
        "none": lambda x: (xp.hanning(0), xp.kaiser(x.shape[0] - 9, 1.0), x),
        "i0": lambda x: np.i0(4 * x),
    },
}


def with_open_sizes(x: Any, y: Any) -> Any:
    """Return what keeps the sizes of ``x`` and of the shorter ``y`` open."""
    return (
        x * xp.hanning(x.shape[0]),
        *np.unravel_index(x.argmax(), (x.shape[0], 1)),
        slide(x, 3).sum(-1),
        np.convolve(x, y, "same"),
        np.resize(x, (x.shape[0], 2)),
        x * xp.fromfunction(lambda i: i * 2, x.shape),
        xp.logspace(0, 1, x.shape[0]) * np.isin(x, y),
        np.unwrap(9 * x),
        np.polyint(x),
        np.array_equiv(x, x),
    )


MORE_REFUSALS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "two dimensions": (lambda x: np.convolve(x, x[0]), "one dimension, found 2"),
    "nothing": (lambda x: np.correlate(x[0], x[0, :0]), "found an empty array"),
    "mode": (lambda x: np.correlate(x[0], x[0], "no"), "'full', 'same' or 'valid'"),
    "wide": (lambda x: slide(x, 5, 0), "a window of 5 is wider than axis 0 of 3"),
    "widths": (lambda x: slide(x, 2), "as many widths as axes"),
    "written": (lambda x: slide(x, 2, 0, writeable=True), "writeable= is not"),
    "negative": (lambda x: slide(x, -1, 0), "expected 0 or more, found -1"),
    "matrix": (lambda x: np.polyder(x), "coefficients in one dimension"),
    "derivative": (lambda x: np.polyder(x[0], -1), "order m of 0 or more"),
    "constants": (lambda x: np.polyint(x[0], 3, [1, 2]), "found 2 for m=3"),
    "product": (lambda x: np.polymul(x[0], x[1]), "convolve(a, b)"),
    "unsigned": (lambda x: np.unwrap(x.astype("u1"), period=4), "out of bounds"),
    "place of a float": (lambda x: np.unravel_index(x, (3,)), "cast to int64"),
    "number": (lambda x: x + xp.unravel_index(12, x.shape)[0], "out of bounds for 12"),
    "no axes": (lambda x: np.unravel_index(x > 0, ()), "for 0d arrays"),
    "indices": (lambda x: np.ravel_multi_index((x > 0,), x.shape), "each of 2 sizes"),
    "clip": (lambda x: np.ravel_multi_index((x > 0,), (3,), "no"), "clipmode must be"),
    "order of places": (lambda x: np.unravel_index(x > 0, 3, "K"), "'C' or 'F'"),
    "choice": (lambda x: np.choose([2], [x, x]), "out of bounds for 2 elements"),
    "no choice": (lambda x: np.choose(x > 0, []), "a choice at least"),
    "unsafe choice": (lambda x: np.choose(x.astype("u8"), [1]), "cast to int64"),
    "kind": (lambda x: np.isin(x, x, kind="tree"), "'sort' or 'table'"),
    "size": (lambda x: np.resize(x, -1), "must be non-negative"),
    "start": (lambda x: np.rollaxis(x, 1, 3), "-2 <= start < 3, found 3"),
    "common": (lambda x: np.common_type(x > 0), "can't get common type"),
    "shapes": (lambda x: xp.broadcast_shapes(x.shape, (2, 1, 3)), "are 4 and 3"),
    "below": (lambda x: xp.broadcast_shapes(x.shape, -1), "negative dimensions"),
    "one size": (lambda x: xp.indices(x.shape[0]), "a tuple of sizes, found 3"),
    "base": (lambda x: xp.logspace(0, 1, 3, base=x[0]), "a number as base"),
    "zero": (lambda x: x[0, :3] * xp.geomspace(0, 1, 3), "cannot include zero"),
    "complex": (lambda x: np.i0(1j * x), "complex values"),
    "mask": (lambda x: np.sum(x, where=x), "where= of dtype bool, found float64"),
    "wide mask": (lambda x: np.mean(x, where=x[None] > 0), "at most 2 dimensions"),
    "no identity": (lambda x: np.max(x, where=x > 0), "has to specify initial="),
    "initial": (lambda x: np.sum(x, initial=x[0]), "a number as initial"),
    "narrow": (
        lambda x: np.max(x.astype(np.int8), initial=300),
        "300 out of bounds for int8",
    ),
    "endless": (
        lambda x: np.min(x.astype(int), initial=np.inf),
        "cannot convert initial=inf to int64",
    ),
    "imaginary": (lambda x: np.sum(x, initial=2j), "initial is complex"),
    "half a window": (lambda x: x[0, 0] * xp.hanning(2.5), "expected an integer"),
}
