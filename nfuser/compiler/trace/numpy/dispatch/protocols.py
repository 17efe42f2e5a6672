# SPDX-License-Identifier: Apache-2.0
"""The protocols by which NumPy, scipy and the array API hand calls to a stand-in."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.trace.standins.asked import to_be_assigned, wanted
from nfuser.compiler.trace.standins.standin import Standin, chosen_by_masks
from nfuser.compiler.trace.watch.unwatched import unwatched
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable


_HARMLESS = {"casting": "same_kind", "order": "K", "subok": True}
_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}


_OF_TENSORS = {
    name: verb
    for verb, names in {
        "add": "add",
        "subtract": "sub __rsub__",
        "multiply": "mul",
        "divide": "div true_divide __rtruediv__ __rdiv__",
        "floor_divide": "__floordiv__ floor_divide __rfloordiv__",
        "remainder": "remainder __mod__ __rmod__",
        "power": "pow __pow__ __rpow__",
        "matmul": "matmul __matmul__ __rmatmul__",
        "less": "lt",
        "less_equal": "le",
        "equal": "eq",
        "not_equal": "ne",
        "greater": "gt",
        "greater_equal": "ge",
    }.items()
    for name in names.split()
}
"""Operators by the names that torch hands over, of functions that take two."""


class NumpyProtocols(Standin):
    """What NumPy asks of objects that are not its own arrays."""

    __slots__ = ()
    __array_priority__ = 1000.0

    @unwatched
    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any
    ) -> Any:
        for x in inputs:
            if type(x) in chosen_by_masks:
                return NotImplemented
        tracer = self._tracer
        name = ufunc.__name__
        if method == "__call__":
            return _called(tracer, ufunc, inputs, options)
        if method == "reduce" and name in _REDUCTIONS:
            axis = options.pop("axis", 0)
            x, *rest = inputs
            return tracer.handlers[_REDUCTIONS[name]](tracer, x, axis, *rest, **options)
        scan = tracer.handlers.get(f"{name}.{method}")
        if scan is None:
            raise refusals.function(f"{name}.{method}")
        return scan(tracer, *inputs, **options)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        for kind in types:
            if kind in chosen_by_masks:
                return NotImplemented
        tracer = self._tracer
        module, name, inner = _names[func]
        if inner not in tracer.handlers:
            raise refusals.function(name, module)
        return tracer.handlers[inner](tracer, *args, **kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        del api_version
        return self._tracer.namespace

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise wanted()

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        del types
        name = getattr(func, "__name__", str(func))
        if name in _OF_TENSORS and len(args) == 2 and not kwargs:
            return _operated(name, *args)
        # Torch is there; and it imports what imports this.
        words: Any = import_module("nfuser.compiler.trace.torch.words.table")
        return words.call_function(name, args, dict(kwargs or {}))


def _called(
    tracer: Any, ufunc: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Return what a ufunc gives of stand-ins."""
    name = ufunc.__name__
    handler = tracer.handlers.get(name)
    if handler is None:
        raise refusals.function(name, "numpy" if hasattr(np, name) else "the ufunc")
    if not options:
        if tracer.dialect.is_operator(name, inputs):
            return tracer.operate(getattr(ops, name), *inputs)
        return handler(tracer, *inputs)
    outputs = options.pop("out", None)
    for target in () if tracer.makes else outputs or ():
        if not (target is None or isinstance(target, Standin)):
            raise to_be_assigned()
    where = options.pop("where", True)
    core = {key: options.pop(key) for key in _core_options(ufunc) & options.keys()}
    taken = _converted(tracer, name, inputs, options)
    found = handler(tracer, *taken, **core)
    if outputs is None:
        if where is not True:
            raise refusals.keyword(name, "where")
        return found
    return _written(tracer, name, inputs, outputs, found, where)


class _Names(dict["Callable[..., Any]", tuple[str, str, str]]):
    """The module of a function, its name, and that by which it is handled.

    They are looked up without a call, which whoever watches the trace would see.
    """

    def __missing__(self, func: Callable[..., Any]) -> tuple[str, str, str]:
        module = func.__module__.removeprefix("nfuser.").split("._")[0]
        name = func.__name__
        found = module, name, f"{module}.{name}".removeprefix("numpy.")
        if type(func) is OF_NUMPY and module.startswith("numpy"):
            self[func] = found
        return found


OF_NUMPY: type = type(np.roll)
"""Functions of NumPy's, which hand calls on to their arguments."""
_names = _Names()


def _operated(name: str, x: Any, y: Any) -> Any:
    """Return what an operator of a tensor gives, as ``weight * x`` does."""
    tracer = next(a for a in (x, y) if isinstance(a, Standin))._tracer
    verb = getattr(ops, _OF_TENSORS[name])
    return tracer.call_operator(verb, *((y, x) if name[:3] == "__r" else (x, y)))


def _core_options(ufunc: np.ufunc) -> frozenset[str]:
    """Return the keywords that say along which axis vectors lie."""
    return frozenset(("axis", "keepdims") if ufunc.signature == "(n),(n)->()" else ())


def _converted(tracer: Any, name: str, inputs: Any, options: dict[str, Any]) -> Any:
    """Apply the keyword ``dtype``; refuse keywords that are not understood."""
    dtype = options.pop("dtype", None)
    for option, given in options.items():
        if _HARMLESS.get(option) != given:
            raise refusals.keyword(name, option)
    if dtype is None:
        return inputs
    target = as_dtype(dtype)
    return [tracer.call(_in_dtype, x, dtype=target) for x in inputs]


def _in_dtype(b: Any, x: Any, *, dtype: Any) -> Any:
    return b.convert(x, dtype)


def _written(
    tracer: Any, name: str, given: Any, outputs: Any, found: Any, where: Any
) -> Any:
    """Write ``found`` into the arrays given as ``out=``, where ``where`` holds."""
    results = found if isinstance(found, tuple) else (found,)
    for target, result in zip(outputs, results, strict=True):
        if target is None:
            continue
        if not isinstance(target, Standin):
            is_in_place = any(target is x for x in given)
            raise refusals.plain_output(
                name, is_in_place=is_in_place, is_made=_is_made(tracer, target)
            )
        chosen: Any = result
        if where is not True:
            chosen = tracer.handlers["where"](tracer, where, result, target)
        target._write(chosen)  # pyright: ignore[reportAttributeAccessIssue]
    return outputs[0] if len(outputs) == 1 else outputs


def _is_made(tracer: Any, target: Any) -> bool:
    """Tell whether plain NumPy made an array in the function that is traced."""
    try:
        held = tracer.tensor(target)
        return held in tracer.tables or held not in tracer.captured.values()
    except TraceError:
        return True
