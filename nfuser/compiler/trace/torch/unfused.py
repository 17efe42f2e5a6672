# SPDX-License-Identifier: Apache-2.0
"""What functions mean on tensors where nothing is traced: the same as in a trace.

NumPy's functions, and those of ``nfuser.numpy``, mean NumPy's and give tensors. Methods
and operators are torch's own; what torch does not have is NumPy's.
"""

# What a plain function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import operator
import sys
import threading
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.dtypes.tensors import as_array, as_tensor
from nfuser.compiler.trace.torch.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SCALARS = frozenset((bool, *(d.numpy.type for d in DType)))
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "less": operator.lt,
    "less_equal": operator.le,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "matmul": operator.matmul,
}


_DUNDERS = [f"__{verb.__name__.strip('_')}__" for verb in _OPERATORS.values()]


class _Running(threading.local):
    """The device of the unfused call on tensors that runs in a thread."""

    device: Any = None


_running = _Running()


def call_unfused(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dialect: str | None = None,
) -> Any:
    """Call a plain function, on tensors with the meaning that it has fused."""
    leaves, shape = tree.flatten((args, dict(kwargs)))
    first = _first_tensor(leaves)
    if first is None or _running.device is not None:
        return function(*args, **kwargs)
    if dialect == "numpy":
        return on_tensors(function, args, kwargs)
    _running.device = first.device
    try:
        given, named = tree.unflatten(shape, [_unfused(x) for x in leaves])
        found, shape = tree.flatten(function(*given, **named))
        held = [_unfused(x) for x in found]
    finally:
        _running.device = None
    return tree.unflatten(shape, [_as_torchs(x) for x in held])


def on_tensors(
    function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """Call a function of NumPy's arrays, which gives tensors where it is given any."""
    if "torch" not in sys.modules:
        return function(*args, **options)
    leaves, shape = tree.flatten((args, dict(options)))
    first = _first_tensor(leaves)
    device = _running.device if first is None else first.device
    args, options = tree.unflatten(shape, [_to_numpy(x) for x in leaves])
    found = function(*args, **options)
    if device is None:
        return found
    leaves, shape = tree.flatten(found)
    return tree.unflatten(shape, [_to_torch(x, device) for x in leaves])


def _call_numpys(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return on_tensors(function, args, options)


def _first_tensor(leaves: list[Any]) -> Any:
    kind = getattr(sys.modules.get("torch"), "Tensor", ())
    return next((x for x in leaves if isinstance(x, kind)), None)


def _to_numpy(x: Any) -> Any:
    torch: Any = sys.modules["torch"]
    if isinstance(x, torch.Tensor):
        return as_array(_as_torchs(x))
    return as_dtype(x).numpy if isinstance(x, torch.dtype) else x


def _to_torch(x: Any, device: Any) -> Any:
    is_numpys = isinstance(x, (np.ndarray, np.generic))
    if not is_numpys or not hasattr(sys.modules["torch"], x.dtype.name):
        return x
    made = as_tensor(x).to(device)
    return made if _running.device is None else _unfused(made)


def _unfused(x: Any) -> Any:
    """Return an array as what it is while an unfused call on tensors runs."""
    if isinstance(x, sys.modules["torch"].Tensor):
        return x.as_subclass(_unfused_tensor())
    return _to_torch(x, _running.device) if isinstance(x, np.ndarray) else x


def _as_torchs(x: Any) -> Any:
    if not isinstance(x, _unfused_tensor()):
        return x
    return x.as_subclass(sys.modules["torch"].Tensor)


def _as_operand(x: Any) -> Any:
    """Return what torch takes for what a traced tensor takes."""
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, np.ndarray):
        return as_tensor(x)
    is_type = isinstance(x, np.dtype) or (isinstance(x, type) and x in _SCALARS)
    return getattr(sys.modules["torch"], as_dtype(x).numpy.name) if is_type else x


class _Count(int):
    """The number of elements, which traced arrays have as ``x.size``."""

    shape: Any

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]


@cache
def _unfused_tensor() -> Any:
    """Return the class of tensors in an unfused call."""
    torch: Any = sys.modules["torch"]

    class UnfusedTensor(torch.Tensor):
        """A tensor on which NumPy's functions mean NumPy's."""

        def __array_function__(
            self, func: Any, types: Any, args: Any, kwargs: Any
        ) -> Any:
            return on_tensors(func, args, kwargs)

        def __array_ufunc__(
            self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
        ) -> Any:
            name = ufunc.__name__
            if isinstance(inputs[0], np.generic) and name in _OPERATORS and not options:
                return _OPERATORS[name](inputs[0].item(), inputs[1])
            return on_tensors(getattr(ufunc, method), inputs, options)

        def __getattr__(self, name: str) -> Any:
            found = getattr(np.ndarray, name, None)
            if not callable(found) or name.startswith("__"):
                message = f"'Tensor' object has no attribute {name!r}"
                raise AttributeError(message)
            return partial(_call_numpys, found, self)

        @property
        def size(self) -> _Count:
            count = _Count(self.numel())
            count.shape = self.shape
            return count

    for name in (*_DUNDERS, *METHODS):
        setattr(UnfusedTensor, name, _converting(getattr(torch.Tensor, name)))
    return UnfusedTensor


def _converting(method: Any) -> Callable[..., Any]:
    """Return a method of torch's that also takes what NumPy has for numbers."""

    def converted(*args: Any, **options: Any) -> Any:
        leaves, shape = tree.flatten((args, options))
        args, options = tree.unflatten(shape, [_as_operand(x) for x in leaves])
        return method(*args, **options)

    return converted
