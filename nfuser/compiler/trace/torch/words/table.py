# SPDX-License-Identifier: Apache-2.0
"""All words of torch's: which are methods of tensors, and which functions."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.trace.standins.asked import UpdateError
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.torch.methods import METHODS
from nfuser.compiler.trace.torch.words import (
    activations,
    draws,
    elementwise,
    folds,
    kinds,
    layers,
    losses,
    makers,
    parts,
    shapes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nfuser.compiler.trace.torch.words.common import Word
    from nfuser.compiler.trace.tracer import Tracer

_FUNCTIONS: dict[str, Word] = {
    **elementwise.WORDS,
    **shapes.WORDS,
    **kinds.WORDS,
    **folds.WORDS,
    **parts.WORDS,
    **activations.WORDS,
    **layers.WORDS,
    **losses.WORDS,
    **draws.WORDS,
    **makers.WORDS,
    **METHODS,
    "max": folds.extreme("max"),
    "min": folds.extreme("min"),
}
_IN_PLACE = frozenset(
    (
        *("add", "sub", "mul", "div", "pow", "neg", "abs", "exp", "log", "sqrt"),
        *("rsqrt", "sigmoid", "tanh", "sin", "cos", "floor", "ceil", "round", "trunc"),
        *("clamp", "clip", "clamp_min", "clamp_max", "masked_fill", "relu", "square"),
        *("reciprocal", "remainder", "floor_divide", "lerp", "addcmul", "addcdiv"),
        *("logical_not", "nan_to_num", "erf", "erfc", "expm1", "log1p", "silu"),
        *("tril", "triu", "hardtanh", "leaky_relu", "elu"),
    )
)


def _fill(t: Tracer, x: Any, value: Any = 0) -> Any:
    del t
    x[...] = value
    return x


def _copy(t: Tracer, x: Any, source: Any, non_blocking: Any = False) -> Any:
    del t, non_blocking
    x[...] = source
    return x


_UPDATES = frozenset(
    f"__{name}__" for name in ("setitem", "iand", "ior", "ixor", "ilshift", "irshift")
)
_WRITES: dict[str, Word] = {"fill_": _fill, "zero_": _fill, "copy_": _copy}


def word(name: str) -> Word | None:
    """Return what a name of torch's does, if it has a fused form.

    One that ends with an underscore writes what the other one gives.
    """
    if name in _WRITES:
        return _WRITES[name]
    is_written = name.endswith("_") and name[:-1] in _IN_PLACE
    return _writing(name[:-1]) if is_written else _FUNCTIONS.get(name)


def _writes(name: str) -> bool:
    """Tell whether a name is of what writes into its first argument."""
    return (
        name in _UPDATES
        or name in _WRITES
        or (name.endswith("_") and name[:-1] in _IN_PLACE)
    )


@cache
def _writing(name: str) -> Word:
    found = _FUNCTIONS[name]

    def written(t: Tracer, x: Any, *args: Any, **options: Any) -> Any:
        x[...] = found(t, x, *args, **options)
        return x

    return written


class TensorMethods(Mapping[str, Any]):
    """The words that are methods of tensors."""

    def __getitem__(self, name: str) -> Word:
        """Return what a method does."""
        found = word(name) if hasattr(sys.modules["torch"].Tensor, name) else None
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_FUNCTIONS)

    def __len__(self) -> int:
        return len(_FUNCTIONS)


def call_function(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return what a function of torch's gives for traced tensors."""
    tracer: Any = _tracer_of((*args, *options.values()))
    if tracer is not None and tracer.dialect.has_words and _writes(name):
        _check_written(tracer, name, args)
    found = word(name)
    if found is None or tracer is None or not tracer.dialect.has_words:
        raise refusals.of_torch(name)
    options.pop("_stacklevel", None)
    if options.get("out", 0) is None:
        del options["out"]
    for first in ("input", "tensors"):
        if first in options:
            args = (options.pop(first), *args)
    args = tuple(_traced(tracer, x) for x in args)
    options = {key: _traced(tracer, x) for key, x in options.items()}
    try:
        return found(tracer, *args, **options)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise refusals.torch_options(name, error) from None
        raise


def _check_written(t: Tracer, name: str, args: tuple[Any, ...]) -> None:
    """Ask for a trace in which torch makes tensors that can be written."""
    if not args or isinstance(args[0], Standin):
        return
    if t.owner(args[0]) is not None:
        raise refusals.written_unseen(name)
    if not t.makes:
        raise UpdateError
    raise refusals.written_constant(name)


def _traced(t: Tracer, item: Any) -> Any:
    """Return a tensor from outside as a traced one, also within a list."""
    if isinstance(item, sys.modules["torch"].Tensor) and not isinstance(item, Standin):
        return t.wrap(t.tensor(item))
    if isinstance(item, (tuple, list)) and any(hasattr(x, "dtype") for x in item):
        return type(item)(_traced(t, x) for x in item)
    return item


def _tracer_of(items: tuple[Any, ...]) -> Any:
    """Return the trace of the first traced array, also within a list."""
    for item in items:
        if isinstance(item, Standin):
            return item._tracer  # pyright: ignore[reportPrivateUsage]
        if isinstance(item, (tuple, list)):
            found = _tracer_of(tuple(item))
            if found is not None:
                return found
    return None
