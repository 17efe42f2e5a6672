# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: A002 (an argument has the name that NumPy gives it)
"""What each NumPy function does to stand-ins, with NumPy's own signature."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.activations as activations
import nfuser.compiler.trace.numpy.composed as composed
import nfuser.compiler.trace.numpy.composed.statistics.masked as masked
import nfuser.compiler.trace.numpy.creation.filled as creation
import nfuser.compiler.trace.numpy.dispatch.ufunc_methods as ufunc_methods
import nfuser.compiler.trace.numpy.movement.fills as fills
import nfuser.compiler.trace.numpy.movement.gathers as gathers
import nfuser.compiler.trace.numpy.movement.joins as joins
import nfuser.compiler.trace.numpy.movement.masks as masks
import nfuser.compiler.trace.numpy.movement.moves as moves
import nfuser.compiler.trace.numpy.movement.pads as pads
import nfuser.compiler.trace.numpy.movement.scatters as scatters
import nfuser.compiler.trace.numpy.names.refusals as refusals
import nfuser.compiler.trace.numpy.scans as scans
from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.ops.verbs import elementwise_verbs
from nfuser.compiler.trace.numpy.composed.linear.products import outer_of
from nfuser.compiler.trace.numpy.dispatch.keywords import MISSING, given, keeps, plain
from nfuser.compiler.trace.numpy.movement.writes import into
from nfuser.compiler.trace.numpy.without_axes import told
from nfuser.compiler.trace.standins.dialect import in_numpy
from nfuser.compiler.trace.standins.sizes import shape_sizes
from nfuser.compiler.trace.standins.symbolic import SymbolicInt
from nfuser.compiler.trace.watch.unwatched import unwatched
from nfuser.errors import ArgumentError, OptionError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def _dtype(dtype: Any) -> Any:
    return None if dtype is None or dtype is MISSING else as_dtype(dtype)


def _folding(name: str, *, typed: bool = False) -> Any:
    verb = getattr(ops, name)

    def handler(
        t: Tracer,
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        **options: Any,
    ) -> Any:
        if not typed and dtype is not None:
            out, dtype = dtype, None
        chosen = masked.taken(name, options)
        given(name, options | {"out": out})
        kept = keeps(keepdims)
        if "where" in chosen and name == "mean":
            return masked.mean(t, a, axis, dtype, **chosen, keepdims=kept)
        extra = {"dtype": _dtype(dtype)} if typed else {}

        def whole(x: Any) -> Any:
            return t.call_on_tensor(verb, x, plain(axis), keepdims=kept, **extra)

        return masked.fold(t, name, whole, a, axis, **chosen) if chosen else whole(a)

    return handler


def _var(name: str) -> Any:
    verb = getattr(ops, name)

    def handler(
        t: Tracer,
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = False,
        *,
        correction: Any = MISSING,
        **options: Any,
    ) -> Any:
        correction = ddof if correction is MISSING else correction
        chosen = masked.taken(name, options)
        given(name, options | {"out": out})
        if chosen:
            kept, count = keeps(keepdims), plain(correction)
            found = masked.var(t, a, axis, dtype, count, **chosen, keepdims=kept)
            return np.sqrt(found) if name == "std" else found
        return t.call_on_tensor(
            verb,
            a,
            plain(axis),
            dtype=_dtype(dtype),
            correction=plain(correction),
            keepdims=keeps(keepdims),
        )

    return handler


def _argument(name: str) -> Any:
    verb = getattr(ops, name)

    def handler(
        t: Tracer, a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False
    ) -> Any:
        given(name, {"out": out})
        axis = plain(axis)
        return t.call_on_tensor(verb, a, axis, keepdims=keeps(keepdims))

    return handler


def _count_nonzero(
    t: Tracer, a: Any, axis: Any = None, *, keepdims: bool = False
) -> Any:
    axis = plain(axis)
    return t.call_on_tensor(ops.count_nonzero, a, axis, keepdims=keepdims)


def _where(t: Tracer, condition: Any, *choices: Any) -> Any:
    if not choices:
        return masks.nonzero(t, condition)
    if len(choices) == 1:
        message = "either both or neither of x and y should be given"
        raise OptionError(message)
    return t.call(ops.where, condition, *choices)


def _clip(
    t: Tracer,
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    **options: Any,
) -> Any:
    given("clip", options | {"out": out})
    low = min if a_min is None or a_min is MISSING else a_min
    high = max if a_max is None or a_max is MISSING else a_max
    bounds = [None if x is None else t.operand(x) for x in (low, high)]
    return t.call_on_tensor(ops.clip, a, *bounds)


def _round(t: Tracer, a: Any, decimals: Any = 0, out: Any = None) -> Any:
    given("round", {"out": out})
    return t.call_on_tensor(ops.round_to, a, plain(decimals))


def _isclose(
    t: Tracer,
    a: Any,
    b: Any,
    rtol: Any = 1e-5,
    atol: Any = 1e-8,
    equal_nan: bool = False,
) -> Any:
    tolerances = {"rtol": float(rtol), "atol": float(atol)}
    return t.call(ops.isclose, a, b, equal_nan=equal_nan, **tolerances)


def _nan_to_num(
    t: Tracer,
    x: Any,
    copy: bool = True,
    nan: Any = 0.0,
    posinf: Any = None,
    neginf: Any = None,
) -> Any:
    if not copy:
        raise refusals.keyword("nan_to_num", "copy")
    fills = {"nan": nan, "posinf": posinf, "neginf": neginf}
    return t.call_on_tensor(ops.nan_to_num, x, **fills)


def _angle(t: Tracer, z: Any, deg: bool = False) -> Any:
    found = t.call(ops.angle, z)
    return t.call(ops.rad2deg, found) if deg else found


def _astype(
    t: Tracer, x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None
) -> Any:
    del copy
    given("astype", {"device": device})
    return t.call_on_tensor(ops.astype, x, as_dtype(dtype))


def _viewing(name: str, **parameters: Any) -> Any:
    """Return the handler of a view; ``parameters`` are its names with defaults."""
    verb = getattr(ops, name)

    def handler(t: Tracer, a: Any, *args: Any, **options: Any) -> Any:
        bound = parameters | dict(zip(parameters, args, strict=False)) | options
        for option in options.keys() - parameters.keys():
            raise refusals.keyword(name, option)
        missing = [option for option in parameters if bound[option] is MISSING]
        if missing or len(args) > len(parameters):
            message = f"{name} takes {', '.join(parameters)}"
            raise ArgumentError(message)
        return t.view(verb, a, *(plain(bound[option]) for option in parameters))

    return handler


def _shape(t: Tracer, shape: Any) -> list[Any]:
    return shape_sizes(t, shape, "broadcast_to")


def _broadcast_to(t: Tracer, array: Any, shape: Any, subok: bool = False) -> Any:
    del subok
    return t.view(ops.broadcast_to, array, _shape(t, shape))


def _broadcast_arrays(t: Tracer, *args: Any, subok: bool = False) -> Any:
    del subok
    shape = t.builder.broadcast(*(t.tensor(a) for a in args), name="broadcast_arrays")
    return tuple(t.view(ops.broadcast_to, a, shape) for a in args)


def _full_like(
    t: Tracer,
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    del subok
    given("full_like", {"device": device})
    wanted = ops.memory_order(order)
    if shape is not None:
        kind = t.tensor(a).dtype.numpy if dtype is None else dtype
        return creation.full(t, shape, fill_value, kind, "F" if wanted == "F" else "C")
    held = t.tensor(a)
    target = _dtype(dtype) or held.dtype
    fill = creation.fitted(t, fill_value, target)
    made = t.call_on_tensor(ops.full_like, a, fill, target)
    if held.ndim < 2:
        return made
    if wanted in ("C", "F"):
        return t.call_on_tensor(ops.copy, made, wanted)
    return t.call_on_tensor(ops.laid_like, made, held, wanted)


def _filled_like(fill: Any) -> Any:
    def handler(
        t: Tracer, a: Any, dtype: Any = None, *args: Any, **options: Any
    ) -> Any:
        return _full_like(t, a, fill, dtype, *args, **options)

    return handler


def _copy(t: Tracer, a: Any, order: str = "K", subok: bool = False) -> Any:
    del subok
    return t.call_on_tensor(ops.copy, a, order)


def _size(t: Tracer, a: Any, axis: Any = None) -> Any:
    if axis is None and not isinstance(a, SymbolicInt):
        return a.size
    shape = t.handlers["shape"](t, a)
    if axis is None:
        return 1
    return shape[ops.normal_axis(axis, len(shape))]


def _transpose(t: Tracer, a: Any, axes: Any = None) -> Any:
    return t.view(ops.permute, a, plain(axes))


def _matrix_transpose(t: Tracer, x: Any, /) -> Any:
    del t
    return x.mT


def _is_dtype(x: Any) -> bool:
    return isinstance(x, (type, np.dtype)) or type(x).__module__ == "torch"


def _result_type(t: Tracer, *args: Any) -> Any:
    operands = [x if _is_dtype(x) else t.operand(x) for x in args]
    kinds = [as_dtype(x) if _is_dtype(x) else t.builder.type_of(x) for x in operands]
    return ops.promote(*kinds).numpy


def _elementwise(verb: Any, count: int) -> Any:
    name = verb.__name__

    def handler(t: Tracer, *operands: Any, **options: Any) -> Any:
        given(name, options)
        if len(operands) != count:
            message = f"{name} takes {count} operands, found {len(operands)}"
            raise ArgumentError(message)
        return t.call(verb, *operands)

    return handler


_ALIASES = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "true_divide": "divide",
    "mod": "remainder",
    "pow": "power",
    "abs": "absolute",
    "conjugate": "conj",
    "bitwise_not": "invert",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "degrees": "rad2deg",
    "radians": "deg2rad",
    "expit": "sigmoid",
    "amax": "max",
    "amin": "min",
    "around": "round",
    "permute_dims": "transpose",
    "fix": "trunc",
}


_OTHERS: dict[str, Any] = {
    "expand_dims": _viewing("expand_dims", axis=MISSING),
    "moveaxis": _viewing("moveaxis", source=MISSING, destination=MISSING),
    "swapaxes": _viewing("swapaxes", axis1=MISSING, axis2=MISSING),
    "flipud": lambda t, m: t.view(ops.flip, m, 0),
    "fliplr": lambda t, m: t.view(ops.flip, m, 1),
    "matmul": _elementwise(ops.matmul, 2),
    "where": _where,
    "clip": _clip,
    "round": _round,
    "isclose": _isclose,
    "nan_to_num": _nan_to_num,
    "angle": _angle,
    "astype": _astype,
    "transpose": _transpose,
    "matrix_transpose": _matrix_transpose,
    "broadcast_to": _broadcast_to,
    "broadcast_arrays": _broadcast_arrays,
    "full_like": _full_like,
    "zeros_like": _filled_like(0),
    "ones_like": _filled_like(1),
    "empty_like": _filled_like(creation.UNSET),
    "copy": _copy,
    "size": _size,
    "shape": lambda t, a: () if isinstance(a, SymbolicInt) else a.shape,
    "ndim": lambda t, a: 0 if isinstance(a, SymbolicInt) else a.ndim,
    "result_type": _result_type,
    "count_nonzero": _count_nonzero,
}


def _table() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for count in (1, 2):
        verbs = elementwise_verbs(count)
        table |= {n: _elementwise(verb, count) for n, verb in verbs.items()}
    table |= {n: _folding(n, typed=True) for n in ("sum", "prod", "mean")}
    table |= {n: _folding(n) for n in ("max", "min", "any", "all", "ptp")}
    table |= {n: _var(n) for n in ("var", "std", "var_mean")}
    table |= {n: _argument(n) for n in ("argmax", "argmin")}
    table |= {n: _viewing(n, axis=None) for n in ("squeeze", "flip")}
    table |= {n: _viewing(n) for n in ("real", "imag")}
    table |= _OTHERS
    table |= {alias: table[name] for alias, name in _ALIASES.items()}
    ufuncs = (n for n in table if isinstance(getattr(np, n, None), np.ufunc))
    table |= {f"{n}.outer": outer_of(n) for n in ufuncs if getattr(np, n).nin == 2}
    for more in (
        activations,
        moves,
        joins,
        pads,
        gathers,
        scatters,
        fills,
        masks,
        scans,
        creation,
        composed,
        ufunc_methods,
    ):
        table |= more.HANDLERS
    return table


_WITH_OUTPUTS = frozenset(
    {
        *("clip", "round", "sum", "prod", "mean", "var", "std", "max", "min", "any"),
        *("all", "argmax", "argmin", "cumsum", "cumprod", "dot", "take"),
        *("amax", "amin", "around"),
    }
)
"""Functions that read all before they write into ``out=``, which joins do not."""

HANDLERS = {
    name: in_numpy(
        unwatched(told(name, into(name, verb) if name in _WITH_OUTPUTS else verb))
    )
    for name, verb in _table().items()
}
