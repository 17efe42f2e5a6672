# SPDX-License-Identifier: Apache-2.0
"""All derivatives of a run at once: each row of a Jacobian is a row of one program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.ir.scalars.functions import product
from nfuser.compiler.transforms.batch import BatchRows
from nfuser.compiler.transforms.differentiate import pullback, pushforward
from nfuser.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder
    from nfuser.compiler.trace.call.tree import Tree
    from nfuser.compiler.trace.tracer import Tracer
    from nfuser.compiler.trace.transforms.derivatives import Run

    Nested = tuple[Tree, list[tuple[Any, ...]]]


def by_pulling(t: Tracer, run: Run, name: str, *, holomorphic: bool) -> Nested:
    """Return the Jacobian of ``run``, a row for each element of what it gave."""
    held = [variable.held for variable in run.variables]
    _check(name, run, held, holomorphic=holomorphic)
    table = [_pulled(t, run, output, held) for output in run.outputs]
    return _nested(t, run, table)


def _pulled(
    t: Tracer, run: Run, output: TensorView, held: Sequence[TensorView]
) -> list[TensorView]:
    b = t.builder
    basis = _identity(b, output)
    rows = BatchRows(b, basis.shape[0], t.ended)
    with rows.written():
        found = pullback(b, [(output, rows.row(basis))], held)
    made: list[TensorView] = []
    for own, variable in zip(found, held, strict=True):
        shape = (*output.shape, *variable.shape)
        if own is None:
            made.append(ops.full(b, shape, 0, variable.dtype))
        else:
            made.append(ops.reshape(b, rows.all(own), shape))
    return made


def by_pushing(t: Tracer, run: Run, name: str, *, holomorphic: bool) -> Nested:
    """Return the Jacobian of ``run``, a column for each element that it was given."""
    held = [variable.held for variable in run.variables]
    _check(name, run, held, holomorphic=holomorphic)
    columns = [_pushed(t, run, variable) for variable in held]
    return _nested(t, run, list(zip(*columns, strict=True)))


def _pushed(t: Tracer, run: Run, variable: TensorView) -> list[TensorView]:
    b = t.builder
    basis = _identity(b, variable)
    rows = BatchRows(b, basis.shape[0], t.ended)
    with rows.written():
        found = pushforward(b, [(variable, rows.row(basis))], run.outputs)
    made: list[TensorView] = []
    for own, output in zip(found, run.outputs, strict=True):
        shape = (*output.shape, *variable.shape)
        if own is None:
            made.append(ops.full(b, shape, 0, output.dtype))
        else:
            last = ops.moveaxis(b, rows.all(own), 0, output.ndim)
            made.append(ops.reshape(b, last, shape))
    return made


def _identity(b: Builder, like: TensorView) -> TensorView:
    """Return, for each element of ``like``, an array like it that has 1 there."""
    count = product(like.shape)
    numbers = ops.arange(b, count)
    rest = tuple(range(1, 1 + like.ndim))
    rows = ops.expand_dims(b, numbers, rest) if rest else numbers
    hit = b.point("equal", rows, ops.reshape(b, numbers, like.shape))
    return b.cast(ops.broadcast_to(b, hit, (count, *like.shape)), like.dtype)


def _nested(t: Tracer, run: Run, table: Sequence[Sequence[TensorView]]) -> Nested:
    """Return the blocks for each result, each as a tuple of nests like arguments."""
    blocks: list[tuple[Any, ...]] = []
    for row in table:
        pairs = zip(row, run.variables, strict=True)
        # Without axes it is a number where the argument is one.
        found = [t.wrap(x) if x.ndim else v.wrap(t, x) for x, v in pairs]
        blocks.append(tuple(run.like_arguments(found)))
    return run.shape, blocks


def _check(
    name: str, run: Run, held: Sequence[TensorView], *, holomorphic: bool
) -> None:
    """Refuse complex numbers whose derivative is not one number, and integers."""
    for tensor in (*held, *run.outputs):
        if tensor.dtype.is_complex and not holomorphic:
            message = (
                "write holomorphic=True if the function is, or take real and "
                f"imaginary parts as arguments and results: nfuser.{name} found "
                f"{tensor.dtype}"
            )
            raise DTypeError(message)
        if holomorphic and not tensor.dtype.is_complex:
            message = (
                f"leave holomorphic out, or write x.astype(complex): nfuser.{name} "
                f"expects complex numbers then, found {tensor.dtype}"
            )
            raise DTypeError(message)
    for tensor in run.outputs:
        if not (tensor.dtype.is_float or tensor.dtype.is_complex):
            message = (
                f"return floats, or name others by has_aux=True: nfuser.{name} takes "
                f"derivatives of floats, found {tensor.dtype}"
            )
            raise DTypeError(message)
