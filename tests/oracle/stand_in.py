# SPDX-License-Identifier: Apache-2.0
"""What can stand in for an array in a fused function, and have its own meaning."""

from __future__ import annotations

import math
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

_METHODS = (
    *("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax"),
    *("argmin", "astype", "transpose", "squeeze", "clip", "conj", "swapaxes"),
    *("reshape", "ravel", "flatten", "repeat", "take", "cumsum", "cumprod"),
)


# Array-API and ndarray spellings of NumPy's names.
ALIASES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atan2": "arctan2",
    "atanh": "arctanh",
    "abs": "absolute",
    "amax": "max",
    "amin": "min",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "bitwise_not": "invert",
    "conj": "conjugate",
    "expit": "sigmoid",
    "pow": "power",
    "true_divide": "divide",
    "permute_dims": "transpose",
    "round": "rint",
}


class StandIn(np.lib.mixins.NDArrayOperatorsMixin):
    """Sends every NumPy function, operator, method and view to ``dispatch``."""

    __slots__ = ()

    def dispatch(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Give the function called ``name`` its meaning."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes along the axes."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any
    ) -> Any:
        if method == "accumulate":
            return self.dispatch(f"{ufunc.__name__}.accumulate", args, kwargs)
        if method != "__call__":
            return NotImplemented
        return self.dispatch(ufunc.__name__, args, kwargs)

    def __pow__(self, other: Any) -> Any:
        # Of this power alone NumPy takes the square, which makes an int8 of a bool.
        is_bool = getattr(self, "dtype", None) == np.dtype(bool)
        if type(other) is int and other == 2 and is_bool:
            return self.dispatch("square", (self,), {})
        return self.dispatch("power", (self, other), {})

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        return self.dispatch(function.__name__, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS:
            return self._method(name)
        if name in ("T", "mT", "real", "imag"):
            return self.dispatch(name, (self,), {})
        raise AttributeError(name)

    def _method(self, name: str) -> Callable[..., Any]:
        def method(*args: Any, **kwargs: Any) -> Any:
            return self.dispatch(name, (self, *args), kwargs)

        return method

    def __getitem__(self, index: Any) -> Any:
        return self.dispatch("getitem", (self, index), {})


class Namespace:
    """What ``nfuser.numpy`` is to traced arrays, for stand-ins of one class."""

    def __init__(self, meaning: Callable[..., Any]) -> None:
        self._meaning = meaning

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self._meaning(name, args, kwargs)


def with_namespace(
    function: Callable[..., Any], namespace: object
) -> Callable[..., Any]:
    """Return ``function`` with its global ``xp`` being ``namespace``."""
    assert isinstance(function, FunctionType)
    names = {**function.__globals__, "xp": namespace}
    made = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made
