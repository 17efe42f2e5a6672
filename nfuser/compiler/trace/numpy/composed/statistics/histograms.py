# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: A002 (an argument has the name that NumPy gives it)
"""Histograms: the bin of each value is found in a kernel, and then bins are counted.

A value that is in no bin is counted behind the last one, which nobody sees.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ops as ops
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.numpy.composed.statistics.counts import counted, weights_of
from nfuser.compiler.trace.standins.sizes import is_sequence, size
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.standins.symbolic import SymbolicInt, integer
from nfuser.errors import DTypeError, OptionError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


class _Axis:
    """The bins along one axis, and in which of them values belong.

    ``is_right``, if it is not None, is true if all that is known by values alone is as
    it must be; ``complaint`` says what is not.
    """

    def __init__(
        self, t: Tracer, name: str, x: Any, bins: Any, range: Any, *, is_weak: bool
    ) -> None:
        self._tracer = t
        self._name = name
        self.is_right: Any = None
        self.complaint = f"{name}: a value was put into no bin"
        self._x = _real(name, x)
        if isinstance(bins, str):
            message = (
                f"write {name}(x, bins=n): how many bins {bins!r} gives depends on "
                "values"
            )
            raise UnsupportedError(message)
        self._is_even = not is_sequence(bins) and not _has_axes(bins)
        if self._is_even:
            self._of_count(bins, range, is_weak=is_weak)
        else:
            self._of_edges(array(t, bins))

    def _of_edges(self, edges: Any) -> None:
        if edges.ndim != 1:
            message = f"{self._name}: `bins` must be 1d, when an array"
            raise ShapeError(message)
        self.edges, self.count = edges, edges.shape[0] - 1
        self.is_right = ~np.any(edges[:-1] > edges[1:])
        self.complaint = (
            f"{self._name}: `bins` must increase monotonically, when an array"
        )

    def _of_count(self, bins: Any, range: Any, *, is_weak: bool) -> None:
        t = self._tracer
        count = size(t, bins, self._name)
        if t.ask(scalar_functions.less(count, 1)):
            message = f"{self._name}: `bins` must be positive, when an integer"
            raise OptionError(message)
        self.count = count if isinstance(count, int) else integer(t, count)
        first, last = self._ends(range)
        floats = (array(t, end) for end in (first, last))
        first, last = (y if y.dtype.kind == "f" else y.astype(float) for y in floats)
        if range is None or any(isinstance(end, Standin) for end in range):
            self.is_right = np.isfinite(first) & np.isfinite(last) & (first <= last)
            self.complaint = (
                f"{self._name}: expected a range whose ends are finite and in order"
            )
        is_point = first == last
        first, last = (
            np.where(is_point, y + by, y) for y, by in ((first, -0.5), (last, 0.5))
        )
        strong = [self._x.dtype]
        if range is not None:
            strong += [
                np.result_type(y)
                for y in range
                if not (is_weak and type(y) in (int, float))
            ]
        kind = np.result_type(*strong)
        kind = kind if kind.kind == "f" else np.dtype(np.float64)
        self._first, self._last = first, last
        self.edges = np.linspace(first, last, self.count + 1, dtype=kind)

    def _ends(self, range: Any) -> tuple[Any, Any]:
        if range is None:
            extents = self._tracer.tensor(self._x).shape
            if self._tracer.ask(
                scalar_functions.equal(scalar_functions.product(extents), 0)
            ):
                return 0, 1
            return np.min(self._x), np.max(self._x)
        first, last = range
        if not any(isinstance(end, Standin) for end in range):
            if not (np.isfinite(first) and np.isfinite(last)):
                message = f"supplied range of [{first}, {last}] is not finite"
                raise OptionError(f"{self._name}: {message}")
            if first > last:
                message = "max must be larger than min in range parameter."
                raise OptionError(f"{self._name}: {message}")
        return first, last

    def places(self) -> tuple[Any, Any]:
        """Return the bin of each value, and which values are in one."""
        edges, count = self.edges, self.count
        x = self._x.astype(np.result_type(self._x.dtype, edges.dtype))
        inside = (x >= edges[0]) & (x <= edges[-1])
        if not self._is_even:
            found = np.searchsorted(edges, x, "right") - 1
            return np.where(x == edges[-1], count - 1, found), inside
        # As NumPy: by arithmetic, and then put right by the edges around it.
        first, span = (y.astype(x.dtype) for y in (self._first, self._span()))
        part = np.where(inside, (x - first) / span * count, 0)
        found = np.minimum(part.astype(np.int64), count - 1)
        found = found - (x < self._edge(found))
        is_more = (x >= self._edge(found + 1)) & (found != count - 1)
        return found + is_more, inside

    def _span(self) -> Any:
        return self._last - self._first

    def _edge(self, places: Any) -> Any:
        t = self._tracer
        return t.apply(ops.take_inside, t.tensor(self.edges), t.tensor(places))


def _real(name: str, x: Any) -> Any:
    if x.dtype.kind == "c":
        message = f"{name}: expected real numbers, found {x.dtype}"
        raise DTypeError(message)
    return x.astype(np.uint8) if x.dtype.kind == "b" else x


def _has_axes(bins: Any) -> bool:
    return not isinstance(bins, SymbolicInt) and bool(getattr(bins, "ndim", 0))


def _binned(t: Tracer, axes: list[_Axis], weights: Any) -> Any:
    """Return what is in each bin of all axes."""
    total: Any = 0
    everywhere: Any = True
    length: Any = 1
    for axis in axes:
        found, inside = axis.places()
        total = total * axis.count + found
        everywhere = inside & everywhere
        length = length * axis.count
    places = np.where(everywhere, total, length)
    for axis in axes:
        if axis.is_right is not None:
            places = np.where(axis.is_right, places, -1)
    complaint = next((a.complaint for a in axes if a.is_right is not None), "")
    known = size(t, length + 1, "histogram")
    told = complaint or axes[0].complaint
    found = counted(t, places, weights, known, told)[:length]
    return found.reshape([a.count for a in axes])


def histogram(
    t: Tracer,
    a: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> Any:
    """Return ``numpy.histogram``, the weights of a bin added as float64."""
    values = array(t, a)
    shares = weights_of(t, weights, values)
    axis = _Axis(t, "histogram", values.reshape(-1), bins, range, is_weak=True)
    found = _binned(t, [axis], shares)
    if weights is not None:
        found = found.astype(array(t, weights).dtype)
    if density:
        found = found / np.diff(axis.edges).astype(float) / np.sum(found)
    return found, axis.edges


def histogramdd(
    t: Tracer,
    sample: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> Any:
    """Return ``numpy.histogramdd``."""
    columns = _columns(t, sample)
    count = len(columns)
    listed = list(bins) if is_sequence(bins) else [bins] * count
    if len(listed) != count:
        message = (
            "The dimension of bins must be equal to the dimension of the sample x."
        )
        raise ShapeError(message)
    ranges = [None] * count if range is None else list(range)
    if len(ranges) != count:
        message = "range argument must have one entry per dimension"
        raise ShapeError(message)
    axes = [
        _Axis(t, "histogramdd", *given, is_weak=False)
        for given in zip(columns, listed, ranges, strict=True)
    ]
    found = _binned(t, axes, weights_of(t, weights, columns[0]))
    found = found.astype(np.result_type(found.dtype, np.float64))
    if density:
        total = np.sum(found)
        for k, axis in enumerate(axes):
            shape = [-1 if k == other else 1 for other, _ in enumerate(axes)]
            found = found / np.diff(axis.edges).reshape(shape)
        found = found / total
    return found, [axis.edges for axis in axes]


def _columns(t: Tracer, sample: Any) -> list[Any]:
    """Return the values along each axis."""
    if is_sequence(sample):
        columns = [array(t, x) for x in sample]
        kind = np.result_type(*(x.dtype for x in columns))
        columns = [x.astype(kind) for x in columns]
    else:
        found = array(t, sample)
        found = found if found.ndim == 2 else np.atleast_2d(found).T
        columns = [found[:, k] for k in builtins.range(found.shape[1])]
    if any(x.ndim != 1 or x.shape != columns[0].shape for x in columns):
        message = "histogramdd: expected as many values along each axis"
        raise ShapeError(message)
    return columns


def histogram2d(
    t: Tracer,
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> Any:
    """Return ``numpy.histogram2d``."""
    is_array = not is_sequence(bins) and _has_axes(bins)
    if is_array or (is_sequence(bins) and len(bins) not in (1, 2)):
        bins = [bins, bins]
    found, edges = histogramdd(t, (x, y), bins, range, density, weights)
    return found, edges[0], edges[1]


HANDLERS = {
    "histogram": histogram,
    "histogram2d": histogram2d,
    "histogramdd": histogramdd,
}
