# SPDX-License-Identifier: Apache-2.0
"""Parts of neural networks that NumPy has no words for."""

# What is dropped has no static type.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace import current_tracer
from nfuser.compiler.trace.numpy.composed.dropouts import kept, require_floats
from nfuser.compiler.trace.numpy.composed.statistics.segments import (
    fold_segments,
    mean_of_segments,
)
from nfuser.frontend.fuse.decorator import fuse
from nfuser.random.distributions import uniform
from nfuser.random.distributions.words import probability
from nfuser.random.draw import draw

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.random.methods import Distributions

__all__ = ["dropout", "segment_max", "segment_mean", "segment_min", "segment_sum"]


def dropout(x: Any, p: Any = 0.5, *, rng: Distributions, training: bool = True) -> Any:
    """Return ``x`` with each element zero with probability ``p``, else over ``1 - p``.

    The probability is taken to the nearest multiple of 2^-16; 1 gives zeros. Without
    ``training`` it is ``x``, and nothing is drawn.
    """
    probability("p", p)
    if not training:
        return x
    if current_tracer() is None:
        return _at_once(_dropped)(x, p, rng)
    return _dropped(x, p, rng)


def segment_sum(data: Any, segment_ids: Any, num_segments: Any) -> Any:
    """Return the sum of those rows of ``data`` that have each id, 0 where none has.

    There is an id for each row, from 0 to less than ``num_segments``; another one
    raises. Sums are of the dtype of the data, and the same in each run.
    """
    return _of_segments("add", data, segment_ids, num_segments)


def segment_max(data: Any, segment_ids: Any, num_segments: Any) -> Any:
    """Return the greatest of the rows that have each id.

    Where none has, it is minus infinity, or the least integer of the dtype.
    """
    return _of_segments("maximum", data, segment_ids, num_segments)


def segment_min(data: Any, segment_ids: Any, num_segments: Any) -> Any:
    """Return the least of the rows that have each id.

    Where none has, it is infinity, or the greatest integer of the dtype.
    """
    return _of_segments("minimum", data, segment_ids, num_segments)


def segment_mean(data: Any, segment_ids: Any, num_segments: Any) -> Any:
    """Return the mean of the rows that have each id, not a number where none has."""
    return _of_segments("mean", data, segment_ids, num_segments)


def _of_segments(how: str, data: Any, segment_ids: Any, num_segments: Any) -> Any:
    tracer = current_tracer()
    if tracer is None:
        return _at_once(_of_segments)(how, data, segment_ids, num_segments)
    if how == "mean":
        return mean_of_segments(tracer, data, segment_ids, num_segments)
    return fold_segments(tracer, how, data, segment_ids, num_segments)


@cache
def _at_once(function: Callable[..., Any]) -> Callable[..., Any]:
    made = fuse(function)
    made.is_of_nfuser = True
    return made


def _dropped(x: Any, p: Any, rng: Distributions) -> Any:
    require_floats(x)
    return kept(x, draw(rng._source, uniform.dropped, (p,), x.shape), p)
