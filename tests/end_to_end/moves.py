# SPDX-License-Identifier: Apache-2.0
"""Functions that put elements elsewhere, as NumPy's and in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.numpy as xp

if TYPE_CHECKING:
    from collections.abc import Callable

# Of an array of shape (4, 6, 5), float32.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "reshape": (
        lambda x: x.reshape(-1, order="F") * 2,
        lambda x: np.reshape(x, (6, -1), order="F"),
        lambda x: x.reshape(x.shape[0], -1),
        lambda x: x.reshape(2, 2, -1, 5).sum(1),
        lambda x: x.reshape((3, 40), copy=True) + 1,
        lambda x: x.reshape(np.array([8, 15])),
        lambda x: x.reshape(-2, 5),  # NumPy takes any negative number for -1
        lambda x: (x.ravel(), np.ravel(x, order="F"), x.flatten("F")),
        lambda x: x.T.reshape(-1)[::-1] * 1,
        lambda x: np.roll(x.T.reshape(-1), 3) * 1,
        lambda x: np.roll(x, 3)[:, ::-1].reshape(5, -1),
        lambda x: (np.atleast_3d(x[0]), np.atleast_2d(x[0, 0]), np.atleast_1d(x)),
    ),
    "roll": (
        lambda x: np.roll(x, 3),
        lambda x: np.roll(x, (1, -2), (0, 2)),
        lambda x: np.roll(x, 2, (0, 1)),
        lambda x: np.roll(x, (1, 2), -1),
        lambda x: np.roll(x, -17, axis=-2),
    ),
    "tile": (
        lambda x: (np.tile(x, 2), np.tile(x, (2, 1, 3, 1)), np.tile(x, (2, 3))),
        lambda x: (np.tile(x, ()), np.tile(x, (0, 2))),
        lambda x: (np.repeat(x, 3), np.repeat(x, 2, axis=-1), np.repeat(x, [2], 0)),
        lambda x: x.repeat(0, axis=0),
    ),
    "stack": (
        lambda x: np.stack([x, x * 2]),
        lambda x: np.stack([x, x * 2], -1),
        lambda x: np.stack((x.mean(), 1.5)),
        lambda x: (np.vstack([x, x[:1]]), np.vstack([x[0, 0], x[1, 1]])),
        lambda x: np.hstack([x, x[:, :2]]),
        lambda x: (np.dstack([x, x]), np.dstack([x[0], x[1]])),
        lambda x: np.dstack([x[0, 0], x[1, 0]]),
        lambda x: np.column_stack([x[0], x[1, :, 0], x[2]]),
        lambda x: np.column_stack([x[0, 0], x[1, 0]]),
    ),
    "concatenate": (
        lambda x: np.concatenate([x, x], axis=None),
        lambda x: np.concatenate((x, 1.5), axis=None),  # a weak number
        lambda x: np.concatenate([x, x.astype("f8")], axis=-1),
        lambda x: np.concatenate([x, x], dtype="f8"),
        lambda x: np.concatenate([x, x], dtype="i4", casting="unsafe"),
        lambda x: np.concatenate(x),
        lambda x: np.block([[x, x], [x, x]]),
        lambda x: np.block([[x[0], x[0]], [x[1], x[1]]]),
        lambda x: np.block([x[0], x[0, :, :1]]),
        lambda x: (np.append(x, 1.0), np.append(x, [1, 2])),
        lambda x: np.append(x, x, axis=1),
    ),
    "split": (
        lambda x: (*np.split(x, 2), *np.split(x, 3, axis=1)),
        lambda x: np.array_split(x, 4, axis=1),
        lambda x: np.array_split(x, 9, axis=-1),
        lambda x: (*np.split(x, [1, 3]), *np.split(x, [2, -1, 9], axis=1)),
        lambda x: (*np.hsplit(x, 3), *np.vsplit(x, [1]), *np.dsplit(x, 5)),
        lambda x: (*np.unstack(x), *np.unstack(x, axis=-1)),
    ),
    "pad": (
        lambda x: (np.pad(x, 1), np.pad(x, (1, 2)), np.pad(x, 0)),
        lambda x: np.pad(x, ((1, 2), (0, 3), (4, 0))),
        lambda x: np.pad(x, ((1,), (2,), (3,))),
        lambda x: np.pad(x, {0: 1, -1: (2, 3)}),
        lambda x: np.pad(x, [[1, 2]] * 3, constant_values=4),
        lambda x: np.pad(x, 1, constant_values=(1, 2)),
        lambda x: np.pad(x, 2, constant_values=((1, 2), (3, 4), (5, 6))),
        lambda x: np.pad(x, 1, constant_values=((1,), (2,), (3,))),
        lambda x: np.pad(x.astype("i4"), 1, constant_values=1.7),
        lambda x: np.pad(x[:0], 1),
        lambda x: xp.pad(x, ((-1, 2), (0, -3), (1, -2))),
    ),
    "borders": (
        *(
            lambda x, mode=mode: np.pad(x, ((9, 0), (0, 11), (7, 8)), mode=mode)
            for mode in ("edge", "wrap", "symmetric", "reflect")
        ),
        *(
            lambda x, mode=mode: np.pad(x[:1], 3, mode=mode)
            for mode in ("edge", "wrap", "symmetric", "reflect")
        ),
        lambda x: np.pad(x.sum(0), 1, mode="reflect") * 2,
    ),
    "take": (
        lambda x: (np.take(x, [1, -1]), np.take(x, [1, -1], axis=1), np.take(x, 2)),
        lambda x: np.take(x, [[1, 2], [3, 0]], axis=0),
        lambda x: np.take(x, [9, -9, 2], axis=0, mode="wrap"),
        lambda x: np.take(x, [9, -9, 2], axis=0, mode="clip"),
        lambda x: np.take(x, [True, False], axis=0),
        lambda x: np.take(x, np.arange(3), axis=1),
        lambda x: np.take_along_axis(x, x.argmax(1, keepdims=True), 1),
        lambda x: np.take_along_axis(x, np.expand_dims(x.argmin(-1), -1)),
        lambda x: np.take_along_axis(x, np.array([1, 2]), None),
    ),
    "indexing": (
        lambda x: (x[[0, 2]], x[:, [0, -1]], x[..., [0, 2, 4]]),
        lambda x: (x[1:3, [0, 2]], x[[0, 2], 1:3], x[None, [0, 1]]),
        lambda x: (x[:, 0, [0, 1]], x[[0, 1], 0], x[[0, 1], 0, ..., None]),
        # NumPy puts the axes of the index first where something lies between.
        lambda x: (x[0, :, [0, 1]], x[[0, 1], :, 0], x[[0, 1], ..., 0]),
        lambda x: (x[0, ..., [0, 1]], x[0, 0, ..., [0, 1]], x[0, None, [1, 2]]),
        lambda x: (x[0, ..., 0, [1, 2]], x[0, [1, 2], None], x[0, :, [[1, 0]]]),
        lambda x: (x[[]], x[[[0, 1], [2, 3]]], x[:, [[0, 1], [2, 3]], ::2]),
        lambda x: (x[np.array([1, 0])], x[np.int64(1)], x[:, np.array(2)]),
        lambda x: (x[x[0, 0].argmax() % 4], x[:, x[0, :, 0].argmax()]),
        lambda x: (x[x[:, 0, 0].argmin(), :, [0, 1]], x[x[:, :, 0].argmax(0)]),
    ),
    "creation": (
        lambda x: x + xp.zeros((6, 5)),
        lambda x: x * xp.arange(x.shape[2]) + xp.arange(1, 11, 2),
        lambda x: x * xp.arange(5, 0, -1, dtype="f4") + xp.arange(0.5, 3, 0.5),
        lambda x: x + xp.linspace(0, 1, x.shape[2]),
        lambda x: x + xp.linspace(3, 1, 5, endpoint=False, dtype="f4"),
        lambda x: x[0] + xp.eye(6, 5) + xp.tri(6, 5, 1, dtype="f4"),
        lambda x: x + xp.full((x.shape[2],), x.shape[0]) + xp.identity(5)[0],
        lambda x: (np.tril(x), np.triu(x, 1), np.tril(x, -2)),
        lambda x: x / x.shape[0] + np.sqrt(x.shape[1]) * x.size,
        lambda x: np.full_like(x, 2, shape=(3, x.shape[0])),
    ),
}
SHAPES = ((5, 4), (1, 4), (0, 4), (5, 4), (5, 1), (5, 0), (0, 0), (1, 1), (3, 7))
# Of an array of each of SHAPES in turn: one trace serves them all.
OPEN: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda x: x.reshape(x.shape[1], x.shape[0]) + 1,
    "ravel": lambda x: x.reshape(-1) * 2,
    "fortran": lambda x: x.reshape(x.shape[1], x.shape[0], order="F") + 1,
    "pad": lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=7) * 2,
    "edge": lambda x: np.pad(x, ((1, 2), (7, 3)), mode="edge") * 2,
    "wrap": lambda x: np.pad(x, ((1, 2), (7, 3)), mode="wrap") * 2,
    "symmetric": lambda x: np.pad(x, ((1, 2), (7, 3)), mode="symmetric") * 2,
    "reflect": lambda x: np.pad(x, ((1, 2), (7, 0)), mode="reflect") * 2,
    "concatenate": lambda x: np.concatenate([x, -x, x], 1),
    "stack": lambda x: np.stack([x, -x], 1),
    "block": lambda x: np.block([[x, x], [x, -x]]),
    "roll": lambda x: np.roll(x, (-3, 8), axis=(0, 1)) + x,
    "roll flat": lambda x: np.roll(x, 2),
    "tile": lambda x: np.tile(x, (2, 1, 3)) * 1,
    "repeat": lambda x: np.repeat(x, 3, axis=0) + 1,
    "array_split": lambda x: np.array_split(x, 3, axis=1),
    "triangles": lambda x: np.tril(x, 1) - np.triu(x),
}
