# SPDX-License-Identifier: Apache-2.0
"""``nfuser.check``: run a function fused and unfused, and compare."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.dtypes.tensors import as_array
from nfuser.compiler.ir.base import value
from nfuser.compiler.trace.call import tree
from nfuser.compiler.trace.torch.unfused import call_unfused
from nfuser.execution.device.describe.descriptor import library_of
from nfuser.execution.device.describe.libraries import Library
from nfuser.frontend.fuse.decorator import fuse
from nfuser.frontend.fuse.fused import Fused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DIGITS = {DType.F16: 11, DType.BF16: 8, DType.F32: 24, DType.F64: 53}
_SLACK = 64  # units in the last place of the largest element: order of sums, functions
_AS_NUMPY = 4  # times NumPy's own error


@value
class Check:
    """What a comparison found, an entry an output."""

    errors: tuple[float, ...]
    limits: tuple[float, ...]

    def __str__(self) -> str:
        pairs = zip(self.errors, self.limits, strict=True)
        listed = (f"{error:.3g} (limit {limit:.3g})" for error, limit in pairs)
        return "largest differences: " + ", ".join(listed)


def check(
    function: Callable[..., Any], *args: Any, rtol: float | None = None, **kwargs: Any
) -> Check:
    """Return how far the fused ``function`` lies from the plain one on copies.

    Copies of tensors are tensors; those of other arrays are NumPy's.

    The limit is ``rtol`` of the largest element of an output, by default a few units of
    its dtype's last place. Beyond it, or where shapes or dtypes differ, AssertionError.
    A function that cancels magnifies the rounding of either: without ``rtol`` the fused
    one may lie a few times as far from the same in long doubles as NumPy itself does.

    >>> str(check(lambda x: np.exp(x) + 1, np.zeros(3, np.float32)))
    'largest differences: 0 (limit 1.53e-05)'
    >>> str(check(lambda n: n + 1, np.arange(3)))
    'largest differences: 0 (limit 0)'
    """
    fused = (
        cast("Fused[..., Any]", function)
        if isinstance(function, Fused)
        else fuse(function)
    )
    plain = partial(_unfused, fused)
    actual, _ = tree.flatten(fused(*args, **kwargs))
    leaves, shape = tree.flatten((args, kwargs))
    copied_args, copied = tree.unflatten(shape, [_copy(x) for x in leaves])
    with np.errstate(all="ignore"):
        expected, _ = tree.flatten(plain(*copied_args, **copied))
    if len(actual) != len(expected):
        message = f"{len(actual)} outputs fused, {len(expected)} unfused"
        raise AssertionError(message)
    exact = _Exact(plain, copied_args, copied)
    found = [
        compare(k, to_numpy(a), to_numpy(e), rtol, exact=exact)
        for k, (a, e) in enumerate(zip(actual, expected, strict=True))
    ]
    return Check(tuple(e for e, _ in found), tuple(x for _, x in found))


def _unfused(fused: Any, *args: Any, **kwargs: Any) -> Any:
    return call_unfused(fused.__wrapped__, args, kwargs, fused._dialect)


class _Exact:
    """What the plain function gives for long doubles, worked out when it is asked."""

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]
    ) -> None:
        self._call = function, args, kwargs
        self._found: list[Any] | None = None

    def output(self, number: int) -> Any:
        """Return an output; None where the function takes no long doubles."""
        if self._found is None:
            function, args, kwargs = self._call
            leaves, shape = tree.flatten((args, kwargs))
            args, kwargs = tree.unflatten(shape, [_lengthened(x) for x in leaves])
            try:
                with np.errstate(all="ignore"):
                    self._found, _ = tree.flatten(function(*args, **kwargs))
            except Exception:  # noqa: BLE001 (it may raise whatever it likes)
                self._found = []
        return self._found[number] if number < len(self._found) else None


def _copy(item: Any) -> Any:
    is_tensor = library_of(cast("type[object]", type(item))) is Library.TORCH
    return item.detach().clone() if is_tensor else to_numpy(item)


def _lengthened(item: Any) -> Any:
    if library_of(cast("type[object]", type(item))) is Library.TORCH:
        if item.dtype.is_complex:
            return item.cdouble()
        return item.double() if item.dtype.is_floating_point else item
    kind = getattr(getattr(item, "dtype", None), "kind", None)
    if type(item) is float:
        return np.longdouble(item)
    if kind not in ("f", "c"):
        return item
    return item.astype(np.longdouble if kind == "f" else np.clongdouble)


def to_numpy(item: Any) -> Any:
    """Return a NumPy copy of an array of any library; anything else as it is."""
    if library_of(cast("type[object]", type(item))) is None:
        return item
    if hasattr(item, "detach"):  # torch
        return as_array(item.detach())
    for name in ("get", "copy_to_host"):  # CuPy, Numba
        if hasattr(item, name):
            return getattr(item, name)()
    return np.array(item)


def compare(
    number: int,
    actual: Any,
    expected: Any,
    rtol: float | None,
    sides: tuple[str, str] = ("fused", "unfused"),
    exact: _Exact | None = None,
) -> tuple[float, float]:
    """Return how far two arrays lie apart and the limit; beyond it AssertionError.

    ``sides`` are the words for the one and for the other; ``exact`` is asked where they
    lie farther apart.
    """
    a, e = np.asarray(actual), np.asarray(expected)
    if a.shape != e.shape or a.dtype != e.dtype:
        message = (
            f"output {number} is {a.dtype}{list(a.shape)} {sides[0]}, "
            f"{e.dtype}{list(e.shape)} {sides[1]}"
        )
        raise AssertionError(message)
    dtype = as_dtype(e.dtype)
    wide = np.complex128 if dtype.is_complex else np.float64
    x, y = a.astype(wide), e.astype(wide)
    with np.errstate(all="ignore"):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        gap = np.where(same, 0, np.abs(x - y))
        scale = float(np.max(np.abs(y), initial=0, where=np.isfinite(y)))
    error = float(np.max(gap, initial=0))
    unit = 2.0 ** -_DIGITS[dtype.real] if dtype.real in _DIGITS else 0.0
    limit = scale * (rtol if rtol is not None else 2 * _SLACK * unit)
    if not error <= limit and exact is not None and rtol is None:
        error, limit = _against(exact.output(number), a, e, error, limit)
    if not error <= limit:
        at = tuple(int(k) for k in np.unravel_index(np.nanargmax(gap), gap.shape))
        message = (
            f"output {number} differs by {error:.3g} (limit {limit:.3g}) at {at}: "
            f"{a[at]} {sides[0]}, {e[at]} {sides[1]}"
        )
        raise AssertionError(message)
    return error, limit


def _against(
    exact: Any, a: Any, e: Any, error: float, limit: float
) -> tuple[float, float]:
    """Return how far ``a`` lies from what is exact, and how far it may, as ``e`` does.

    Both are as they were where nothing exact is known.
    """
    wide = np.clongdouble if np.iscomplexobj(e) else np.longdouble
    if exact is None or np.shape(exact) != e.shape or e.dtype.kind not in "fcV":
        return error, limit
    with np.errstate(all="ignore"):
        own, ours = (np.abs(x.astype(wide) - np.asarray(exact, wide)) for x in (e, a))
    if not (np.isfinite(own).all() and np.isfinite(ours).all()):
        return error, limit
    return float(np.max(ours)), limit + _AS_NUMPY * float(np.max(own))
