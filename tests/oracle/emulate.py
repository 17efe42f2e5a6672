# SPDX-License-Identifier: Apache-2.0
"""NumPy as a kernel would compute: the stand-in that tests generator and oracle.

16-bit floats compute in f32, and round at outputs and explicit casts only.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from scipy import special

from tests.oracle import composites
from tests.oracle.binary import kind_of
from tests.oracle.moves import JOINS
from tests.oracle.number_types import (
    BOOL,
    F64,
    I64,
    Array,
    Type,
    common,
    is_inexact,
    loop,
    precision,
    round_to,
)
from tests.oracle.reductions import summed_type
from tests.oracle.scans import CUMULATIVE, NAMES, UFUNCS, along, target_type
from tests.oracle.stand_in import ALIASES, Namespace, StandIn
from tests.oracle.views import VIEWS, padded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _compute(dtype: Type) -> Type:
    return precision(dtype).compute if is_inexact(dtype) else dtype


class Emulated(StandIn):
    """An array of ``dtype``, held in the type that kernels compute it in."""

    __slots__ = ("data", "dtype")

    def __init__(self, data: Any, dtype: Type) -> None:
        self.data: Array = np.asarray(data, _compute(dtype))
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes along the axes."""
        return self.data.shape

    def dispatch(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compute with NumPy."""
        return compute(name, args, kwargs)

    def result(self) -> Array:
        """Return the array, rounded to its dtype."""
        with np.errstate(all="ignore"):
            return self.data.astype(self.dtype)


def _data(x: Any, dtype: Type) -> Array:
    if isinstance(x, Emulated):
        return x.data.astype(_compute(dtype))
    return np.array(x, _compute(dtype))


def ufunc(name: str, *operands: Any) -> Emulated:
    function = getattr(np, name)
    *taken, given = loop(function, *map(kind_of, operands))
    data = [_data(x, t) for x, t in zip(operands, taken, strict=True)]
    return Emulated(function(*data), given)


def astype(x: Emulated, dtype: Any) -> Emulated:
    dtype = np.dtype(dtype)
    if dtype.itemsize == 2 and is_inexact(dtype):
        return Emulated(round_to(dtype, x.data.astype(np.longdouble)), dtype)
    return Emulated(x.data.astype(dtype), dtype)


def _where(condition: Any, a: Any, b: Any) -> Emulated:
    dtype = common(kind_of(a), kind_of(b))
    chosen = np.where(_data(condition, BOOL), _data(a, dtype), _data(b, dtype))
    return Emulated(chosen, dtype)


def _clip(x: Any, low: Any = None, high: Any = None) -> Emulated:
    given = [v for v in (x, low, high) if v is not None]
    dtype = common(*map(kind_of, given))
    limits = [None if v is None else _data(v, dtype) for v in (low, high)]
    data = _data(x, dtype)
    for limit, function in zip(limits, (np.maximum, np.minimum), strict=True):
        data = data if limit is None else function(data, limit)
    return Emulated(data, dtype)


def fold(name: str, x: Emulated, *args: Any, **kwargs: Any) -> Emulated:
    dtype = kwargs.pop("dtype", None)
    if name in ("sum", "prod"):
        target = summed_type(x.dtype) if dtype is None else np.dtype(dtype)
    elif name in ("mean", "var", "std"):
        target = np.dtype(dtype) if dtype else x.dtype if is_inexact(x.dtype) else F64
    else:
        target = {"max": x.dtype, "min": x.dtype, "any": BOOL, "all": BOOL}.get(
            name, I64
        )
        return Emulated(getattr(np, name)(x.data, *args, **kwargs), target)
    data = _pairwise(_data(x, target), *args, **kwargs)
    return Emulated(getattr(np, name)(*data, **kwargs), target)


def _pairwise(data: Array, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Lay the folded axes out last: only there does NumPy add up in pairs."""
    axis = args[0] if args else kwargs.get("axis")
    axes = range(data.ndim) if axis is None else normalize_axis_tuple(axis, data.ndim)
    kept = [k for k in range(data.ndim) if k not in axes]
    order = [*kept, *axes]
    stored = np.array(data.transpose(order), order="C")
    return stored.transpose(np.argsort(order)), *args


def _scan(
    name: str, x: Emulated, axis: Any = None, dtype: Any = None, **options: Any
) -> Emulated:
    target = target_type(name, x.dtype, dtype)
    data = _data(x, target)
    if name in CUMULATIVE:
        made = getattr(np, name)(data, axis=axis, dtype=data.dtype, **options)
        return Emulated(made, target)
    if name in UFUNCS:
        verb = getattr(np, name.partition(".")[0])
        return Emulated(verb.accumulate(data, axis or 0, data.dtype), target)
    data, axis = along(data, axis)
    return Emulated(getattr(np, name)(data, axis, data.dtype), target)


def _float_function(
    function: Callable[[Array], Array],
) -> Callable[[Emulated], Emulated]:
    def apply(x: Emulated) -> Emulated:
        x = composites.activated(x)
        return Emulated(function(x.data), x.dtype)

    return apply


_sigmoid = _float_function(lambda x: 1 / (1 + np.exp(-x)))
_erf = _float_function(special.erf)


def _silu(x: Emulated) -> Emulated:
    return composites.silu(x, _sigmoid)


def _gelu(x: Emulated, approximate: str = "none") -> Emulated:
    if approximate == "tanh":
        return composites.gelu_tanh(x)
    return composites.gelu_erf(x, _erf)


def _part(name: str) -> Callable[[Emulated], Emulated]:
    def apply(x: Emulated) -> Emulated:
        data = np.array(getattr(x.data, name))
        return Emulated(data, data.dtype if x.dtype.kind == "c" else x.dtype)

    return apply


def _join(name: str) -> Callable[..., Emulated]:
    def apply(parts: Sequence[Any], *args: Any, **options: Any) -> Emulated:
        dtype = common(*map(kind_of, parts))
        data = [_data(x, dtype) for x in parts]
        return Emulated(getattr(np, name)(data, *args, **options), dtype)

    return apply


def _pad(x: Emulated, widths: Any, constant_values: Any = 0) -> Emulated:
    fill = _data(constant_values, x.dtype)
    return Emulated(padded(x.data, widths, fill), x.dtype)


def _take(name: str) -> Callable[..., Emulated]:
    def apply(x: Emulated, index: Any, axis: Any = None) -> Emulated:
        where = index.data if isinstance(index, Emulated) else np.asarray(index)
        return Emulated(getattr(np, name)(x.data, where, axis=axis), x.dtype)

    return apply


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "astype": astype,
    "where": _where,
    "clip": _clip,
    "rsqrt": _float_function(lambda x: (1 / np.sqrt(x.astype(F64))).astype(x.dtype)),
    "erf": _erf,
    "erfc": _float_function(special.erfc),
    "sigmoid": _sigmoid,
    "silu": _silu,
    "gelu": _gelu,
    "real": _part("real"),
    "imag": _part("imag"),
    "pad": _pad,
    "take": _take("take"),
    "take_along_axis": _take("take_along_axis"),
}
FUNCTIONS.update({name: _join(name) for name in JOINS})
FUNCTIONS.update({name: getattr(composites, name) for name in composites.NAMES})
FOLDS = (
    *("sum", "prod", "max", "min", "any", "all", "count_nonzero"),
    *("argmax", "argmin", "mean", "var", "std"),
)


def compute(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the function called ``name`` on emulated arrays."""
    name = ALIASES.get(name, name)
    with np.errstate(all="ignore"):
        if name in FUNCTIONS:
            return FUNCTIONS[name](*args, **kwargs)
        if name in VIEWS:
            x, *rest = args
            return Emulated(VIEWS[name](x.data, *rest, **kwargs), x.dtype)
        if name in NAMES:
            return _scan(name, *args, **kwargs)
        if name in FOLDS:
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
                return fold(name, *args, **kwargs)
        return ufunc(name, *args)


NAMESPACE = Namespace(compute)
