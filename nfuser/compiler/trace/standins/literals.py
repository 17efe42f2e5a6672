# SPDX-License-Identifier: Apache-2.0
"""Lists of numbers, and arrays made while tracing, as constants of the program."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.compiler.trace.standins.standin import Standin, is_ndarray
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.tensor import SourceLine, TensorView
    from nfuser.compiler.trace.tracer import Tracer

_LONGEST = 128


def array_of(t: Tracer, item: Any, dtype: DType | None = None) -> TensorView:
    """Return what ``numpy.asarray`` makes of an array, a number or a list.

    With a ``dtype`` it is one that is cast to it, which integers of Python's have to
    fit in.
    """
    b = t.builder
    wanted = dtype if dtype is not None and dtype.is_integer else None
    if is_ndarray(item) or not is_sequence(item):
        taken = t.operand(item)
        is_python = wanted is not None and b.type_of(taken) is int
        held = b.convert(taken, wanted) if is_python and wanted else b.tensor(taken)
        # An array made of a Python number promotes like any other.
        return b.point("copy", held) if held in b.weak else held
    if holds_standins(item):
        return ops.stack(b, [array_of(t, x, wanted) for x in item], dtype=wanted)
    return constant(t, np.asarray(item, None if wanted is None else wanted.numpy))


def holds_standins(item: Any) -> bool:
    """Tell whether an array or a size of the trace is in nested lists."""
    if isinstance(item, (tuple, list)):
        return any(holds_standins(x) for x in item)
    return isinstance(item, Standin)


def constant(t: Tracer, item: np.ndarray[Any, Any]) -> TensorView:
    """Return an array whose elements are part of the program."""
    made = regular(t, item)
    if made is not None:
        return made
    if item.size > _LONGEST:
        message = (
            f"pass the list of {item.size} numbers as an array argument, or write "
            "np.array([...]): as it is, it would become part of the program"
        )
        raise UnsupportedError(message)
    b, dtype = t.builder, as_dtype(item.dtype)
    flat = [b.convert(x, dtype) for x in item.ravel()]
    return ops.reshape(b, ops.stack(b, flat), item.shape)


def made_while_tracing(t: Tracer, item: Any) -> TensorView | None:
    """Return what ``np.zeros(n)``, ones, full or arange made in the function itself.

    All it depends on are sizes and numbers, which are guards by now, unless NumPy
    computed it of arrays from outside.
    """
    if type(item) is not np.ndarray or item.dtype.kind not in "biufc":
        return None
    made = regular(t, item)
    if made is not None:
        what = "an array that plain NumPy makes while tracing"
        warn_of_sizes(t, item.shape, what, "zeros, ones, full and arange")
    return made


_warned: set[SourceLine | None] = set()


def warn_of_sizes(t: Tracer, shape: tuple[int, ...], what: str, instead: str) -> None:
    """Say once for each line that plain NumPy made an open size a constant."""
    asked = t.builder.questions
    for condition, answer in asked.answers.items():
        is_size = not isinstance(condition, Binary) or condition.op not in (
            Op.LT,
            Op.EQ,
        )
        line = asked.lines[condition]
        if is_size and answer in shape and line not in _warned:
            _warned.add(line)
            message = (
                f"{what} has size {answer} compiled in, and another size is traced "
                f"again; {instead} of nfuser.numpy keep it open"
            )
            if line is None:
                warnings.warn(message, RuntimeWarning, stacklevel=2)
            else:
                message += line.note
                warnings.warn_explicit(message, RuntimeWarning, line.file, line.line)


def regular(t: Tracer, item: np.ndarray[Any, Any]) -> TensorView | None:
    """Return an array of one value, or of evenly spaced integers; else None."""
    b, dtype = t.builder, as_dtype(item.dtype)
    flat = item.ravel()
    first = flat[0] if item.size else item.dtype.type(0)
    if flat.tobytes() == first.tobytes() * item.size:
        return ops.copy(b, ops.full(b, item.shape, first, dtype), _order(item))
    if item.size not in item.shape or not dtype.is_integer:
        return None
    start, step = int(flat[0]), int(flat[1]) - int(flat[0])
    listed = range(start, start + step * item.size, step) if step else ()
    if flat.tolist() != list(listed):
        return None
    # In i64, where every start and step of a narrower dtype fits.
    made = ops.arange(b, item.size, _wrapped(start), _wrapped(step))
    return ops.reshape(b, b.cast(made, dtype), item.shape)


def _order(item: np.ndarray[Any, Any]) -> str:
    return "F" if item.flags.fnc else "C"


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63
