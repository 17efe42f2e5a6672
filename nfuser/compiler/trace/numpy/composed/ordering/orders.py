# SPDX-License-Identifier: Apache-2.0
"""What is found by sorting: parts in order, medians, quantiles."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.ops import normal_axes
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.numpy.dispatch.keywords import MISSING, given, keeps, plain
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.compiler.trace.standins.standin import Standin, is_ndarray
from nfuser.errors import DTypeError, OptionError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.tracer import Tracer

_KINDS = ("quicksort", "mergesort", "heapsort", "stable")


def _refuse_fields(name: str, order: Any) -> None:
    if order is not None:
        message = f"{name}: order= names fields of records; sort by lexsort instead"
        raise UnsupportedError(message)


def _is_stable(name: str, kind: Any, order: Any, stable: Any) -> bool:
    _refuse_fields(name, order)
    if kind is not None and (not isinstance(kind, str) or kind.lower() not in _KINDS):
        message = f"{name}: expected kind to be one of {_KINDS}, found {kind!r}"
        raise OptionError(message)
    if kind is not None and stable is not None:
        message = f"{name}: kind and stable cannot be given at the same time"
        raise OptionError(message)
    return bool(stable) or str(kind).lower() in ("stable", "mergesort")


def _sorting(name: str) -> Callable[..., Any]:
    """Return ``numpy.sort`` or ``argsort``; what is equal is the same to a sort."""

    def handler(
        t: Tracer,
        a: Any,
        axis: Any = -1,
        kind: Any = None,
        order: Any = None,
        *,
        stable: Any = None,
        descending: Any = False,
    ) -> Any:
        options = {"descending": bool(descending)}
        keeps_equal = _is_stable(name, kind, order, stable)
        if name == "argsort":  # as the array API has it, stable where nothing is said
            options["stable"] = keeps_equal or bool(descending and stable is None)
        verb = getattr(ops, name)
        return t.call_on_tensor(verb, array(t, a), plain(axis), **options)

    return handler


def lexsort(t: Tracer, keys: Any, axis: Any = -1) -> Any:
    """Return ``numpy.lexsort``: the last key decides first."""
    listed = [array(t, key) for key in keys]
    if any(tuple(x.shape) != tuple(listed[0].shape) for x in listed):
        message = "lexsort: all keys need to be the same shape"
        raise ShapeError(message)
    tensors = [t.tensor(x) for x in listed]
    return t.apply(ops.lexsort, tensors, plain(axis))


def _places(name: str, kth: Any) -> tuple[Any, ...]:
    """Return the places that ``kth`` names, which are integers."""
    listed = kth.ravel() if is_ndarray(kth) else kth
    places = tuple(listed) if is_sequence(listed) else (kth,)
    are_bools = all(isinstance(place, (bool, np.bool_)) for place in places)
    for place in places:
        if are_bools or not (isinstance(place, Standin) or hasattr(place, "__index__")):
            kind = type(place).__name__
            message = f"{name}: expected kth to be an integer, or several, found {kind}"
            raise DTypeError(message)
    return places


def _check_places(x: Any, places: tuple[Any, ...], axis: Any, name: str) -> None:
    """Refuse places that do not lie along ``axis``; those inside are one guard."""
    size = x.size if axis is None or not x.ndim else x.shape[plain(axis)]
    for place in places:
        if not -size <= place < size:
            message = f"{name}: kth(={int(place)}) out of bounds ({int(size)})"
            raise OptionError(message)


def _known(places: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the places as a trace may hold them; none if a call may change one."""
    is_open = any(isinstance(place, Standin) for place in places)
    return () if is_open else tuple(int(place) for place in places)


def _parting(name: str, whole: str) -> Callable[..., Any]:
    """Return ``numpy.partition`` or ``argpartition``: what is sorted is parted.

    So it is for places that a call may change.
    """

    def handler(
        t: Tracer,
        a: Any,
        kth: Any,
        axis: Any = -1,
        kind: Any = "introselect",
        order: Any = None,
    ) -> Any:
        _refuse_fields(name, order)
        x = array(t, a)
        places = _places(name, kth)
        _check_places(x, places, axis, name)
        verb = getattr(ops, whole)
        return t.call_on_tensor(verb, x, plain(axis), kth=_known(places))

    return handler


# -- medians and quantiles ---------------------------------------------------


class _Rows:
    """The elements along ``axis``, in order along the last axis.

    ``count`` is how many there are in a row, those left out that are not a number if
    ``skips``; where one is in a row otherwise, ``is_nan`` says so.
    """

    def __init__(self, x: Any, axis: Any, *, skips: bool) -> None:
        self.axes = normal_axes(plain(axis), x.ndim)
        self.rank = x.ndim
        kept = [k for k in range(x.ndim) if k not in self.axes]
        length = prod(x.shape[k] for k in self.axes)
        rows = np.transpose(x, (*kept, *self.axes))
        rows = np.reshape(rows, (*(x.shape[k] for k in kept), length))
        if length == 0:  # of nothing, nothing is known
            kind = np.float64 if x.dtype.kind in "biu" else x.dtype
            nothing = np.sum(rows, -1, keepdims=True).astype(kind)
            rows, length = np.full_like(nothing, np.nan), 1
        self.sorted = np.sort(rows, -1)
        self.has_nan = rows.dtype.kind in "fcV"
        self.is_nan: Any = None
        self.count: Any = length
        if self.has_nan and skips:
            self.count = np.sum(~np.isnan(rows), -1, keepdims=True)
        elif self.has_nan:
            self.is_nan = np.isnan(self.sorted[..., -1:])

    def at(self, places: Any) -> Any:
        """Return the elements at ``places``, along the last axis."""
        shape = (*self.sorted.shape[:-1], places.shape[-1])
        return np.take_along_axis(self.sorted, np.broadcast_to(places, shape), -1)

    def result(self, found: Any, q_shape: tuple[Any, ...], *, keepdims: bool) -> Any:
        """Return what was ``found`` for all of a row where one is not a number.

        The last axis becomes those of ``q_shape``, in front.
        """
        if self.is_nan is not None:
            last = self.sorted[..., -1:].astype(found.dtype)
            found = np.where(self.is_nan, last, found)
        found = np.moveaxis(found, -1, 0)
        found = np.reshape(found.copy(), (*q_shape, *found.shape[1:]))
        if not keepdims:
            return found
        return np.expand_dims(found, tuple(len(q_shape) + k for k in self.axes))


def _median(name: str, *, skips: bool) -> Callable[..., Any]:
    def handler(
        t: Tracer,
        a: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: Any = False,
        keepdims: Any = MISSING,
    ) -> Any:
        given(name, {"out": out})
        x = array(t, a)
        rows = _Rows(x, axis, skips=skips)
        count = np.atleast_1d(array(t, rows.count))
        low, high = rows.at((count - 1) // 2), rows.at(count // 2)
        kind = np.float64 if x.dtype.kind in "biu" else x.dtype
        wide = np.float32 if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else kind
        half = (low.astype(wide) + high.astype(wide)) / 2
        # Of an odd number, the middle one itself: twice as much may not be finite.
        found = np.where(count % 2 == 1, high.astype(wide), half).astype(kind)
        return rows.result(found, (), keepdims=keeps(keepdims))

    return handler


def _spread(alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    """Return the place of a quantile for a method with these two constants."""
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


_METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "inverted_cdf": lambda n, q: np.maximum(np.ceil(n * q - 1), 0),
    "averaged_inverted_cdf": lambda n, q: n * q - 1,
    "closest_observation": lambda n, q: np.maximum(_nearest_odd(n * q - 1 - 0.5), 0),
    "interpolated_inverted_cdf": _spread(0, 1),
    "hazen": _spread(0.5, 0.5),
    "weibull": _spread(0, 0),
    "linear": lambda n, q: (n - 1) * q,
    "median_unbiased": _spread(1 / 3.0, 1 / 3.0),
    "normal_unbiased": _spread(3 / 8.0, 3 / 8.0),
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "midpoint": lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
    "nearest": lambda n, q: np.rint((n - 1) * q),
}
_DISCRETE = ("inverted_cdf", "closest_observation", "lower", "higher", "nearest")
_WEIGHTS: dict[str, Callable[[Any, Any], Any]] = {
    "averaged_inverted_cdf": lambda share, place: np.where(share == 0, 0.5, 1.0),
    "midpoint": lambda share, place: np.where(place % 1 == 0, 0.0, 0.5),
}


def _nearest_odd(place: Any) -> Any:
    below = np.floor(place)
    return np.where((place == below) & (below % 2 == 1), below, below + 1)


def _quantile(name: str, scale: int, *, skips: bool) -> Callable[..., Any]:
    def handler(
        t: Tracer,
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: Any = False,
        method: Any = "linear",
        keepdims: Any = MISSING,
        *,
        weights: Any = None,
    ) -> Any:
        given(name, {"out": out, "weights": weights})
        if method not in _METHODS:
            message = f"{name}: {method!r} is none of the methods {', '.join(_METHODS)}"
            raise OptionError(message)
        x, wanted = array(t, a), _shares(t, q, name, scale)
        if x.dtype.kind == "c":
            message = f"{name}: a must be an array of real numbers"
            raise DTypeError(message)
        rows = _Rows(x, axis, skips=skips)
        share, count = np.ravel(wanted), np.atleast_1d(array(t, rows.count))
        if share.dtype.kind == "f":  # the number of elements counts for no dtype
            count = count.astype(share.dtype)
        found = _found(rows, count, share, method)
        if found.dtype.kind == "f":  # where none is, as NumPy says of numbers it knows
            found = np.where(
                (share >= 0) & (share <= 1), found, found.dtype.type(np.nan)
            )
        is_weak = q.__class__ in (int, float) and x.dtype.kind in "fV"
        if is_weak and method not in _DISCRETE:
            found = found.astype(x.dtype)  # a Python number counts for no dtype
        return rows.result(found, tuple(wanted.shape), keepdims=keeps(keepdims))

    return handler


def _shares(t: Tracer, q: Any, name: str, scale: int) -> Any:
    """Return ``q`` as parts of one; what is known of it is checked."""
    listed = array(t, q)
    is_known = type(q) in (int, float) or is_ndarray(q)
    known = q if is_known else ()
    if any(not 0 <= number <= scale for number in np.ravel(known)):
        message = f"{name}: expected numbers in the range [0, {scale}], found {q!r}"
        raise OptionError(message)
    return listed if scale == 1 else np.true_divide(listed, scale)


def _found(rows: _Rows, count: Any, share: Any, method: str) -> Any:
    """Return the quantiles of each row, along the last axis."""
    place = _METHODS[method](count, share)
    last = count - 1
    if method in _DISCRETE:
        return rows.at(place.astype(np.int64))
    below = np.clip(np.floor(place), 0, last)
    above = np.minimum(below + np.where(place < 0, 0, 1), last)
    weight = place - np.floor(place)
    # NumPy's place above the last is counted from -1, one below no element.
    weight = np.where(place >= last, place + 1, np.where(place < 0, place, weight))
    weight = _WEIGHTS.get(method, lambda share, _: share)(weight, place)
    low, high = (rows.at(k.astype(np.int64)) for k in (below, above))
    gap = high - low
    return np.where(weight >= 0.5, high - gap * (1 - weight), low + gap * weight)


HANDLERS = {
    "sort": _sorting("sort"),
    "argsort": _sorting("argsort"),
    "lexsort": lexsort,
    "partition": _parting("partition", "sort"),
    "argpartition": _parting("argpartition", "argsort"),
    "median": _median("median", skips=False),
    "nanmedian": _median("nanmedian", skips=True),
    "quantile": _quantile("quantile", 1, skips=False),
    "percentile": _quantile("percentile", 100, skips=False),
    "nanquantile": _quantile("nanquantile", 1, skips=True),
    "nanpercentile": _quantile("nanpercentile", 100, skips=True),
}
