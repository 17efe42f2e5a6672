# SPDX-License-Identifier: Apache-2.0
"""Methods of tensors whose meaning, defaults or signature are not NumPy's.

Each takes torch's arguments, and says by them what the NumPy function of the name does.
What has no fused form is refused, with what to write.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars.functions import equal
from nfuser.compiler.trace.numpy.dispatch.keywords import plain
from nfuser.compiler.trace.numpy.movement.moves import reshape_method
from nfuser.compiler.trace.torch.state import check_autocast
from nfuser.compiler.trace.torch.words.common import root
from nfuser.errors import ArgumentError, AxisError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.tracer import Tracer


def _folded(
    name: str, dim: Any, keepdim: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """Return NumPy's keywords for torch's; both spell ``axis`` and ``keepdims``."""
    axis = options.pop("axis", dim)
    keeps = options.pop("keepdims", keepdim)
    if not isinstance(keeps, bool):
        message = (
            f"write x.{name}(dim, keepdim=True) or x.{name}(dim): expected a bool in "
            f"the place of keepdim, found {keeps!r}; a dtype goes by name, dtype="
        )
        raise ArgumentError(message)
    if isinstance(axis, (tuple, list)) and not axis:
        message = (
            f"write x.{name}() for all axes, and np.{name}(x, axis=()) for none: torch "
            "takes no axes as all of them"
        )
        raise AxisError(message)
    return {"axis": plain(axis), "keepdims": keeps}


def _sum(name: str) -> Callable[..., Any]:
    def fold(
        t: Tracer,
        x: Any,
        dim: Any = None,
        keepdim: Any = False,
        *,
        dtype: Any = None,
        **options: Any,
    ) -> Any:
        held = t.tensor(x).dtype
        check_autocast(t, name, held)
        found = {**_folded(name, dim, keepdim, options), **options}
        return t.handlers[name](t, x, dtype=_summed(held, dtype), **found)

    return fold


def _summed(held: DType, dtype: Any) -> Any:
    """Return the dtype of a sum: torch has one for all integers."""
    if dtype is not None:
        return dtype
    return DType.I64 if held.is_integer or held.is_bool else None


def _mean(
    t: Tracer,
    x: Any,
    dim: Any = None,
    keepdim: Any = False,
    *,
    dtype: Any = None,
    **options: Any,
) -> Any:
    found = {**_folded("mean", dim, keepdim, options), **options}
    return t.handlers["mean"](t, x, dtype=dtype, **found)


def _along(name: str, spelt: str) -> Callable[..., Any]:
    """Return the method ``spelt`` of tensors, which folds as NumPy's ``name`` does."""

    def fold(
        t: Tracer, x: Any, dim: Any = None, keepdim: Any = False, **options: Any
    ) -> Any:
        found = {**_folded(spelt, dim, keepdim, options), **options}
        return t.handlers[name](t, x, **found)

    return fold


def _spread(name: str) -> Callable[..., Any]:
    def fold(t: Tracer, x: Any, dim: Any = None, *args: Any, **options: Any) -> Any:
        if isinstance(dim, bool):  # an old form, of which unbiased is the only argument
            dim, args = None, (dim, *args)
        if args and isinstance(args[0], bool):
            options["unbiased"], args = args[0], args[1:]
        keepdim = args[0] if args else options.pop("keepdim", False)
        named = {"ddof", "correction"} & options.keys()
        unbiased = options.pop("unbiased", True)
        if not named:
            options["correction"] = int(unbiased)
        found = {**_folded(name, dim, keepdim, options), **options}
        spread = t.handlers["var"](t, x, **found)
        return root(t, spread) if name == "std" else spread

    return fold


def _truth(name: str) -> Callable[..., Any]:
    def fold(
        t: Tracer, x: Any, dim: Any = None, keepdim: Any = False, **options: Any
    ) -> Any:
        found = {**_folded(name, dim, keepdim, options), **options}
        told = t.handlers[name](t, x, **found)
        is_byte = t.tensor(x).dtype is DType.U8
        return t.call_on_tensor(ops.astype, told, DType.U8) if is_byte else told

    return fold


def _scan(name: str) -> Callable[..., Any]:
    def scan(t: Tracer, x: Any, dim: Any = None, *, dtype: Any = None, **o: Any) -> Any:
        held = t.tensor(x).dtype
        check_autocast(t, name, held)
        axis = plain(o.pop("axis", dim))
        return t.handlers[name](t, x, axis, dtype=_summed(held, dtype), **o)

    return scan


def _clip(t: Tracer, x: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002 (torch's names)
    bounds = [t.operand(b) for b in (min, max) if b is not None]
    found = t.dialect.meet(t, ops.clamp, [t.tensor(x), *bounds])
    given = iter(found[1:])
    low, high = (None if b is None else next(given) for b in (min, max))
    return t.apply(ops.clamp, t.builder.tensor(found[0]), low, high)


def _round(t: Tracer, x: Any, *, decimals: Any = 0) -> Any:
    return t.handlers["round"](t, x, decimals)


def _repeat(t: Tracer, x: Any, *sizes: Any, **options: Any) -> Any:
    if options:
        raise refusals.torch_meaning("repeat")
    counts = sizes[0] if len(sizes) == 1 and not _is_size(sizes[0]) else sizes
    if len(counts) < x.ndim:
        raise refusals.torch_meaning("repeat")
    return t.handlers["tile"](t, x, tuple(counts))


def _is_size(x: Any) -> bool:
    return hasattr(x, "__index__")


def _squeeze(t: Tracer, x: Any, dim: Any = None, **options: Any) -> Any:
    dim = plain(options.pop("axis", dim))
    if dim is None:
        return t.handlers["squeeze"](t, x)
    shape = t.tensor(x).shape
    listed = dim if isinstance(dim, tuple) else (dim,)
    axes = [ops.normal_axis(k, len(shape)) for k in listed]
    ones = tuple(k for k in axes if t.ask(equal(shape[k], 1)))
    return t.handlers["squeeze"](t, x, ones) if ones else x


def _transpose(t: Tracer, x: Any, *dims: Any, **options: Any) -> Any:
    first, second = options.pop("dim0", None), options.pop("dim1", None)
    pair = (first, second) if first is not None else dims
    if len(pair) == 2 and all(_is_size(d) for d in pair):
        return t.handlers["swapaxes"](t, x, *plain(pair))
    nested = len(dims) == 1 and not _is_size(dims[0])
    return t.handlers["transpose"](t, x, (dims[0] if nested else dims) or None)


def _flatten(t: Tracer, x: Any, start_dim: Any = 0, end_dim: Any = -1) -> Any:
    shape = x.shape
    if not shape:
        return reshape_method(t, x, -1)
    first = ops.normal_axis(plain(start_dim), len(shape))
    last = ops.normal_axis(plain(end_dim), len(shape))
    if first > last:
        message = f"flatten: start_dim {first} must not come after end_dim {last}"
        raise AxisError(message)
    count: Any = 1
    for extent in shape[first : last + 1]:
        count = count * extent
    return reshape_method(t, x, (*shape[:first], count, *shape[last + 1 :]))


def _diagonal(
    t: Tracer, x: Any, offset: Any = 0, dim1: Any = 0, dim2: Any = 1, **options: Any
) -> Any:
    axes = options.pop("axis1", dim1), options.pop("axis2", dim2)
    return t.handlers["diagonal"](t, x, plain(offset), *plain(axes))


def _trace(t: Tracer, x: Any) -> Any:
    held = t.tensor(x).dtype
    return t.handlers["trace"](t, x, dtype=_summed(held, None))


def _conj(t: Tracer, x: Any) -> Any:
    return t.handlers["conj"](t, x) if t.tensor(x).dtype.is_complex else x


METHODS: dict[str, Callable[..., Any]] = {
    "sum": _sum("sum"),
    "prod": _sum("prod"),
    "mean": _mean,
    "amax": _along("max", "amax"),
    "amin": _along("min", "amin"),
    "std": _spread("std"),
    "var": _spread("var"),
    "any": _truth("any"),
    "all": _truth("all"),
    "argmax": _along("argmax", "argmax"),
    "argmin": _along("argmin", "argmin"),
    "cumsum": _scan("cumsum"),
    "cumprod": _scan("cumprod"),
    "clip": _clip,
    "clamp": _clip,
    "round": _round,
    "repeat": _repeat,
    "squeeze": _squeeze,
    "transpose": _transpose,
    "flatten": _flatten,
    "diagonal": _diagonal,
    "trace": _trace,
    "conj": _conj,
}
