# SPDX-License-Identifier: Apache-2.0
"""Products of small matrices: NumPy's own BLAS, called without NumPy.

What NumPy does around a product takes several times as long as a small one. Native
calls perform these like kernels; other calls make them by the same function of the same
parameters, so that all calls of a kind give the same bits.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nfuser.compiler.ir.base import value
from nfuser.execution.device.cuda.parameters import word_of
from nfuser.execution.device.native.blas import gemm, gemv
from nfuser.execution.device.native.library import procedure_caller
from nfuser.execution.device.native.owned import address_of, new_words
from nfuser.execution.host.call.program import SlotPart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.execution.host.call.program import CallLibrary, Operand, Slot, ViewOf

MOST_WORK = 1 << 18
"""The most multiplications (15 us): other Python threads wait for them."""

_MOST_LEAD = (1 << 31) - 1
_ROW_MAJOR, _AS_IS, _TRANSPOSED = 101, 111, 112  # in the words of BLAS
_RUN = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 4)


@value
class SmallProduct:
    """A C function, what calls it, and its parameters: words, or where a part lies."""

    address: int
    caller: int
    parameters: tuple[int | SlotPart, ...]


def small_product(stmt: CallLibrary) -> SmallProduct | None:
    """Return the product that ``stmt`` asks for; None where NumPy has to make it.

    A matrix times itself, transposed, is NumPy's: it makes half and copies the rest.
    """
    matrices = _matrices(stmt)
    if matrices is None:
        return None
    lhs, rhs, out = matrices
    if 1 in (out.rows, out.columns):
        return _by_vector(stmt.result.dtype, lhs, rhs, out)
    known = gemm(stmt.result.dtype)
    if not out.is_in_rows:
        lhs, rhs, out = rhs.transposed, lhs.transposed, out.transposed
    if known is None or not (lhs.is_dense and rhs.is_dense and out.is_in_rows):
        return None
    one, zero = _factors(stmt.result.dtype)
    sizes = (out.rows, out.columns, lhs.columns)
    read = (lhs.part, lhs.lead, rhs.part, rhs.lead)
    words = (_ROW_MAJOR, lhs.how, rhs.how, *sizes, one, *read, zero, out.part, out.lead)
    return SmallProduct(known.address, procedure_caller(known.kinds), words)


def _by_vector(
    dtype: DType, lhs: _Matrix, rhs: _Matrix, out: _Matrix
) -> SmallProduct | None:
    """Return the product of a matrix and a column, or of a row and a matrix.

    The function for two matrices takes several times as long.
    """
    if out.columns > 1:
        lhs, rhs, out = rhs.transposed, lhs.transposed, out.transposed
    known = gemv(dtype)
    if known is None or not (lhs.is_dense and rhs.is_column and out.is_column):
        return None
    one, zero = _factors(dtype)
    stored = lhs if lhs.is_in_rows else lhs.transposed
    read = (lhs.part, lhs.lead, rhs.part, rhs.down)
    sizes = (stored.rows, stored.columns)
    words = (_ROW_MAJOR, lhs.how, *sizes, one, *read, zero, out.part, out.down)
    return SmallProduct(known.address, procedure_caller(known.kinds), words)


def _factors(dtype: DType) -> tuple[int, int]:
    """Return the words of what a product is multiplied by, and what it is added to."""
    return word_of(str(dtype), 1.0), word_of(str(dtype), 0.0)


def by_blas(
    product: SmallProduct, slots: Sequence[Slot], otherwise: Callable[..., None]
) -> Callable[..., None]:
    """Return what makes the product of arrays: those of ``slots``, the result's last.

    A result that overlaps what is read is left to ``otherwise``.
    """
    run = _RUN(product.caller)

    def call(*given: Any) -> None:
        *read, out = given
        if any(np.may_share_memory(x, out) for x in read):
            otherwise(*given)
            return
        firsts = dict(zip(slots, (x.ctypes.data for x in given), strict=True))
        words = new_words(
            firsts[x.slot] + x.offset if isinstance(x, SlotPart) else x
            for x in product.parameters
        )
        run(product.address, 0, 1, address_of(words))

    return call


# -- how matrices lie ----------------------------------------------------------------


class _Matrix(NamedTuple):
    """A matrix in memory; its steps are counted in elements."""

    part: SlotPart
    rows: int
    columns: int
    down: int
    across: int

    @property
    def transposed(self) -> _Matrix:
        return _Matrix(self.part, self.columns, self.rows, self.across, self.down)

    @property
    def is_in_rows(self) -> bool:
        """Whether elements of a row lie side by side, and rows apart."""
        is_apart = self.rows == 1 or self.columns <= self.down <= _MOST_LEAD
        return is_apart and (self.across == 1 or self.columns == 1)

    @property
    def is_column(self) -> bool:
        return self.columns == 1 and 0 < self.down <= _MOST_LEAD

    @property
    def is_dense(self) -> bool:
        return self.is_in_rows or self.transposed.is_in_rows

    @property
    def how(self) -> int:
        return _AS_IS if self.is_in_rows else _TRANSPOSED

    @property
    def lead(self) -> int:
        """From one row to the next, or from column to column where those lie whole."""
        if not self.is_in_rows:
            return self.transposed.lead
        return self.columns if self.rows == 1 else self.down


class _Lying(NamedTuple):
    """Elements in memory: of each axis how many, and how many elements apart."""

    part: SlotPart
    shape: tuple[int, ...]
    steps: tuple[int, ...]


def _matrices(stmt: CallLibrary) -> tuple[_Matrix, _Matrix, _Matrix] | None:
    """Return operands and result; None if it is no small product of two matrices."""
    result, operands = stmt.result, stmt.operands
    parts = [
        x.part for x in operands if isinstance(x.part, SlotPart) and not x.part.step
    ]
    is_plain = not stmt.offset and all(x.dtype is result.dtype for x in operands)
    if not is_plain or len({part.slot for part in parts}) < len(operands):
        return None
    lying = [x for x in map(_lying, operands) if x and len(x.shape) in (1, 2)]
    if len(lying) < len(operands):
        return None
    lhs, rhs = (_matrix(x, is_row=not k) for k, x in enumerate(lying))
    out = _result(SlotPart(result), lhs.rows, rhs.columns, len(lying[0].shape) == 1)
    is_small = 0 < lhs.rows * lhs.columns * rhs.columns <= MOST_WORK
    return (lhs, rhs, out) if is_small else None


def _matrix(lying: _Lying, *, is_row: bool) -> _Matrix:
    """Return a matrix, or a vector as one row or as one column."""
    part, shape, steps = lying
    if len(shape) == 2:
        return _Matrix(part, shape[0], shape[1], steps[0], steps[1])
    row = _Matrix(part, 1, shape[0], 1, steps[0])
    return row if is_row else row.transposed


def _result(part: SlotPart, rows: int, columns: int, is_row: bool) -> _Matrix:
    """Return where the product goes, which lacks axes that operands lack."""
    steps = part.slot.strides
    if len(steps) == 2:
        return _Matrix(part, rows, columns, steps[0], steps[1])
    (step,) = steps or (1,)
    down, across = (1, step) if is_row else (step, 1)
    return _Matrix(part, rows, columns, down, across)


def _lying(operand: Operand) -> _Lying | None:
    """Return how an operand lies; None if that takes a copy, or it is a number."""
    part = operand.part
    if not isinstance(part, SlotPart):
        return None
    found: _Lying | None = _Lying(part, part.slot.shape, part.slot.strides)
    for view in operand.views:
        found = found and _viewed(found, view)
    return found


def _viewed(lying: _Lying, view: ViewOf) -> _Lying | None:
    part, shape, steps = lying
    numbers = view.numbers
    match view.how:
        case "permute":
            order = numbers
            return _Lying(
                part, tuple(shape[k] for k in order), tuple(steps[k] for k in order)
            )
        case "slice":
            bounds = [numbers[k : k + 3] for k in range(0, len(numbers), 3)]
            first = sum(
                s * begin for s, (begin, _, _) in zip(steps, bounds, strict=True)
            )
            moved = part.offset + first * part.slot.dtype.itemsize
            return _Lying(
                replace(part, offset=moved),
                tuple(len(range(*bound)) for bound in bounds),
                tuple(s * step for s, (_, _, step) in zip(steps, bounds, strict=True)),
            )
        case "select":
            axis, at = numbers
            moved = part.offset + at * steps[axis] * part.slot.dtype.itemsize
            return _Lying(
                replace(part, offset=moved),
                (*shape[:axis], *shape[axis + 1 :]),
                (*steps[:axis], *steps[axis + 1 :]),
            )
        case "reshape" if steps == _in_order(shape):
            return _Lying(part, numbers, _in_order(numbers))
        case _:
            return None


def _in_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the steps of elements that lie in C order, one after another."""
    return tuple(prod(shape[k + 1 :]) for k in range(len(shape)))
