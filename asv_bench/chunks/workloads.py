# SPDX-License-Identifier: Apache-2.0
"""Workloads on Dask arrays: data, the fused function, plain dask.array, and by hand."""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportPrivateImportUsage=false, reportArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np

import nfuser
from asv_bench.chunks import by_hand

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 1 << 16
COLUMNS = 512
CHUNK_ROWS = 1 << 12
SIDE = 5_760
SIDE_OF_CHUNK = 1_440


@dataclass(frozen=True)
class Workload:
    """One function in three forms; ``data`` makes the arrays that they are given."""

    name: str
    data: Callable[[], tuple[Any, ...]]
    plain: Callable[..., Any]
    by_hand: Callable[..., Any]
    fused: Callable[..., Any]


def _rows(
    *, columns_apart: int = 1, uniform: bool = False, seed: int = 0
) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    draw = rng.random if uniform else rng.standard_normal
    x = draw((ROWS, COLUMNS), "f4")
    return (da.from_array(x, (CHUNK_ROWS, COLUMNS // columns_apart)),)


def _two() -> tuple[Any, ...]:
    return *_rows(), *_rows(seed=1)  # equal ones Dask takes for one


def _with_weight() -> tuple[Any, ...]:
    return *_rows(), np.linspace(0.5, 1.5, COLUMNS, dtype="f4")


def _plane() -> tuple[Any, ...]:
    x = np.random.default_rng(0).standard_normal((SIDE, SIDE), "f4")
    return (da.from_array(x, (SIDE_OF_CHUNK, SIDE_OF_CHUNK)),)


def chain(x: Any) -> Any:
    """Fifty operations."""
    for _ in range(10):
        x = abs(x * 1.0001 + 0.5) * 0.5 - 0.25
    return x


def standardised(x: Any) -> Any:
    return (x - x.mean(0)) / x.std(0)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def laplace(u: Any) -> Any:
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return around - 4 * u[1:-1, 1:-1]


def rms_norm(x: Any, weight: Any) -> Any:
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * weight


def mean_and_variance(x: Any) -> Any:
    return x.mean(), x.var()


def cosine(x: Any, y: Any) -> Any:
    return (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))


def _plain_histogram(x: Any) -> Any:
    return da.histogram(x, 64, range=(0, 1))[0]


def histogram(x: Any) -> Any:
    return np.histogram(x, 64, range=(0, 1))[0]


def _workload(
    function: Callable[..., Any],
    data: Callable[[], tuple[Any, ...]],
    hand: Callable[..., Any],
    name: str = "",
    plain: Callable[..., Any] | None = None,
) -> Workload:
    name = name or function.__name__.replace("_", " ")
    return Workload(name, data, plain or function, hand, nfuser.fuse(function))


WORKLOADS = (
    _workload(chain, _rows, by_hand.chain, "chain of 50"),
    _workload(standardised, _rows, by_hand.standardised, "standardised columns"),
    _workload(softmax, _rows, by_hand.softmax),
    _workload(
        softmax,
        lambda: _rows(columns_apart=4),
        by_hand.softmax_in_chunks,
        "softmax over a chunked axis",
    ),
    _workload(laplace, _plane, by_hand.laplace, "five-point stencil"),
    _workload(
        histogram,
        lambda: _rows(uniform=True),
        by_hand.histogram,
        plain=_plain_histogram,
    ),
    _workload(rms_norm, _with_weight, by_hand.rms_norm),
    _workload(mean_and_variance, _rows, by_hand.mean_and_variance),
    _workload(cosine, _two, by_hand.cosine, "cosine of rows"),
)
