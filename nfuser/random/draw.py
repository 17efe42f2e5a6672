# SPDX-License-Identifier: Apache-2.0
"""One draw call: in a trace as part of its fusion, elsewhere as a fusion of its own."""

# What is drawn has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import operator
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import nfuser.compiler.ops.elementwise.random_words as ops
from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.trace import current_tracer
from nfuser.compiler.trace.captures.randomness.stream import Stream
from nfuser.compiler.trace.numpy.speaking import speaking_numpy
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import ArgumentError, ShapeError
from nfuser.frontend.fuse.decorator import fuse
from nfuser.random.distributions.words import is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.trace.tracer import Tracer
    from nfuser.random.distributions.words import Array, Bits, Words

Source: TypeAlias = "Stream | tuple[Any, Any]"
"""A stream, or a key and the number of a draw call."""


def draw(
    source: Source,
    function: Callable[..., Any],
    parameters: tuple[Any, ...] = (),
    size: Any = None,
    options: Mapping[str, Any] | None = None,
    like: Any = None,
) -> Array:
    """Return what ``function`` makes of the words of one draw call of this size.

    Without a size it is that in which the parameters meet. ``like`` is an array of the
    library, and on the device, that the numbers are to be of.
    """
    given = tuple(map(_parameter, parameters))
    shape = None if size is None else sizes_of(size)
    options = dict(options or {})
    if "dtype" in options:
        options["dtype"] = _of_numpy(options["dtype"])
    tracer = current_tracer()
    if tracer is not None:
        return _draw_here(tracer, source, function, given, shape, options)
    if given and all(map(is_number, given)):
        _check(function, given, options)
    given = tuple(map(_as_word, given))
    return _fused_draw()(source, function, given, shape, options, like)


@cache
def _fused_draw() -> Callable[..., Any]:
    made = fuse(_draw_at_once)
    made.is_of_nfuser = True
    return made


def _draw_at_once(
    source: Source,
    function: Callable[..., Any],
    parameters: tuple[Any, ...],
    shape: tuple[Any, ...] | None,
    options: Mapping[str, Any],
    like: Any,
) -> Array:
    del like  # it says where the call runs
    tracer = current_tracer()
    assert tracer is not None
    return _draw_here(tracer, source, function, parameters, shape, options)


def _draw_here(
    tracer: Tracer,
    source: Source,
    function: Callable[..., Any],
    parameters: tuple[Any, ...],
    shape: tuple[Any, ...] | None,
    options: Mapping[str, Any],
) -> Array:
    with speaking_numpy(tracer):
        if shape is None:
            shape = _meet(parameters)
        else:
            parameters = tuple(_stretched(x, shape) for x in parameters)
        sizes = tuple(tracer.operand(n) for n in shape)
        if isinstance(source, Stream):
            key, call = tracer.draw(source)
        else:
            key, call = map(tracer.operand, source)

        def words(bits: Bits, slot: int = 0) -> Array:
            return tracer.apply(ops.random_words, sizes, key, call, bits, slot)

        found = tracer.tensor(function(words, *parameters, **options))
    return tracer.wrap(found)


def _check(
    function: Callable[..., Any], given: tuple[Any, ...], options: Mapping[str, Any]
) -> None:
    """Refuse parameters that are wrong, by drawing no numbers at all."""

    def none(bits: Bits, slot: int = 0) -> Array:
        del slot
        return np.empty(0, f"uint{bits}")

    words: Words = none
    with np.errstate(all="ignore"):
        function(words, *given, **options)


def _of_numpy(dtype: Any) -> Any:
    """Return a dtype of torch's as NumPy's, and all else as it is."""
    is_of_torch = type(dtype).__module__.partition(".")[0] == "torch"
    return as_dtype(dtype).numpy if is_of_torch else dtype


def _parameter(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, list | tuple) else x


def _as_word(x: Any) -> Any:
    """Return an integer of Python as one of NumPy's: an argument of the kernel."""
    if type(x) is not int:
        return x
    return np.int64(x) if x < 1 << 63 else np.uint64(x)


def sizes_of(size: Any) -> tuple[Any, ...]:
    """Return a size as a tuple of sizes that are not negative."""
    listed: tuple[Any, ...]
    listed = tuple(size) if isinstance(size, list | tuple | np.ndarray) else (size,)
    found: list[Any] = []
    for n in listed:
        if isinstance(n, Standin):
            found.append(n)
            continue
        try:
            found.append(operator.index(n))
        except TypeError:
            message = f"write whole numbers as size: found {size!r}"
            raise ArgumentError(message) from None
        if found[-1] < 0:
            message = f"write a size that is not negative: found {size!r}"
            raise ShapeError(message)
    return tuple(found)


def _meet(parameters: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the shape that arrays among the parameters have in common."""
    arrays = [x for x in parameters if getattr(x, "ndim", 0)]
    return tuple(reduce(operator.add, arrays).shape) if arrays else ()


def _stretched(x: Any, shape: tuple[Any, ...]) -> Any:
    return np.broadcast_to(x, shape) if getattr(x, "ndim", 0) else x
