# SPDX-License-Identifier: Apache-2.0
"""Discrete Fourier transforms, which the array library computes.

Arrays are cropped or padded by kernels before, so that what the library is given has
the size of the transform.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ops as ops
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.numpy.dispatch.keywords import given, plain
from nfuser.compiler.trace.standins.sizes import size
from nfuser.errors import AxisError, OptionError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.trace.tracer import Tracer

_NORMS = (None, "backward", "ortho", "forward")


def _called(t: Tracer, name: str, x: Any, norm: Any, **options: Any) -> Any:
    if norm not in _NORMS:
        message = (
            f'Invalid norm value {norm!r}; should be "backward", "ortho" or "forward"'
        )
        raise OptionError(message)
    found = t.apply(ops.called, f"fft.{name}", [t.tensor(x)], **options, norm=norm)
    return found[0]


def _fitted(t: Tracer, name: str, x: Any, n: Any, axis: int) -> Any:
    """Return the first ``n`` elements along an axis, and zeros where there are less."""
    held = x.shape[axis]
    wanted = held if n is None else n
    own, count = size(t, held, name), size(t, wanted, name)
    if t.ask(scalar_functions.less(count, 1)):
        message = f"Invalid number of FFT data points ({int(wanted)}) specified."
        raise OptionError(f"{name}: {message}")
    if own is count:
        return x
    if t.ask(scalar_functions.less(own, count)):
        widths = [(0, 0)] * x.ndim
        widths[axis] = (0, n - held)
        return np.pad(x, widths)
    return x[(*(slice(None),) * axis, slice(0, n))]


def _along(name: str) -> Any:
    """Return the handler of a transform along one axis."""

    def handler(
        t: Tracer,
        a: Any,
        n: Any = None,
        axis: Any = -1,
        norm: Any = None,
        out: Any = None,
    ) -> Any:
        given(name, {"out": out})
        x = array(t, a)
        place = ops.normal_axis(plain(axis), x.ndim)
        return _one(t, name, x, n, place, norm)

    return handler


def _one(t: Tracer, name: str, x: Any, n: Any, axis: int, norm: Any) -> Any:
    if name != "irfft":
        return _called(t, name, _fitted(t, name, x, n, axis), norm, axis=axis)
    whole = 2 * (x.shape[axis] - 1) if n is None else n
    count = size(t, whole, name)
    if t.ask(scalar_functions.less(count, 1)):
        message = f"Invalid number of FFT data points ({int(whole)}) specified."
        raise OptionError(f"{name}: {message}")
    held = _fitted(t, name, x, None if n is None else n // 2 + 1, axis)
    return _called(t, name, held, norm, axis=axis, size=count, sized=axis)


def _over(name: str, default: tuple[int, ...] | None) -> Any:
    """Return the handler of a transform along several axes."""

    def handler(
        t: Tracer,
        a: Any,
        s: Any = None,
        axes: Any = default,
        norm: Any = None,
        out: Any = None,
    ) -> Any:
        given(name, {"out": out})
        x = array(t, a)
        places, sizes = _places(x, s, plain(axes))
        if not places:
            return x if name[0] == "r" else x.astype(np.result_type(x, np.complex64))
        *others, last = zip(places, sizes, strict=True)
        if name == "rfftn":
            x = _one(t, "rfft", x, last[1], last[0], norm)
            return _many(t, "fftn", x, others, norm)
        if name == "irfftn":
            x = _many(t, "ifftn", x, others, norm)
            return _one(t, "irfft", x, last[1], last[0], norm)
        return _many(t, name, x, [*others, last], norm)

    return handler


def _places(x: Any, s: Any, axes: Any) -> tuple[list[int], list[Any]]:
    """Return the axes, and how many elements are taken along each, or None."""
    if axes is None:
        count = x.ndim if s is None else len(s)
        axes = range(-count, 0)
    if not isinstance(axes, (tuple, list, range)):
        message = f"expected a sequence of axes, found {axes!r}"
        raise AxisError(message)
    sizes = [None] * len(axes) if s is None else list(s)
    if len(sizes) != len(axes):
        message = "Shape and axes have different lengths."
        raise ShapeError(message)
    places = [ops.normal_axis(k, x.ndim) for k in axes]
    return places, [None if n == -1 else n for n in sizes]


def _many(
    t: Tracer, name: str, x: Any, axes: Sequence[tuple[int, Any]], norm: Any
) -> Any:
    if not axes:
        return x
    places = [axis for axis, _ in axes]
    if len(set(places)) < len(places):  # one after another, as NumPy
        for axis, n in reversed(axes):
            x = _one(t, name.removesuffix("n"), x, n, axis, norm)
        return x
    for axis, n in axes:
        x = _fitted(t, name, x, n, axis)
    return _called(t, name, x, norm, axes=tuple(places))


def _shifted(*, back: bool) -> Any:
    def handler(t: Tracer, x: Any, axes: Any = None) -> Any:
        held, axes = array(t, x), plain(axes)
        listed = range(held.ndim) if axes is None else axes
        listed = listed if isinstance(listed, (tuple, list, range)) else (listed,)
        for axis in listed:
            half = held.shape[axis] // 2
            held = np.roll(held, -half if back else half, axis)
        return held

    return handler


def fftfreq(t: Tracer, n: Any, d: Any = 1.0, *, device: Any = None) -> Any:
    """Return ``numpy.fft.fftfreq``."""
    given("fftfreq", {"device": device})
    count = t.handlers["arange"](t, n)
    half = (n - 1) // 2 + 1
    return np.where(count < half, count, count - n) * (1.0 / (n * d))


def rfftfreq(t: Tracer, n: Any, d: Any = 1.0, *, device: Any = None) -> Any:
    """Return ``numpy.fft.rfftfreq``."""
    given("rfftfreq", {"device": device})
    return t.handlers["arange"](t, n // 2 + 1) * (1.0 / (n * d))


HANDLERS: dict[str, Any] = {
    **{f"fft.{name}": _along(name) for name in ("fft", "ifft", "rfft", "irfft")},
    **{
        f"fft.{name}n": _over(f"{name}n", None)
        for name in ("fft", "ifft", "rfft", "irfft")
    },
    **{
        f"fft.{name}2": _over(f"{name}n", (-2, -1))
        for name in ("fft", "ifft", "rfft", "irfft")
    },
    "fft.fftshift": _shifted(back=False),
    "fft.ifftshift": _shifted(back=True),
    "fft.fftfreq": fftfreq,
    "fft.rfftfreq": rfftfreq,
}
