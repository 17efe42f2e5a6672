# SPDX-License-Identifier: Apache-2.0
"""How wide the loops of a CPU kernel are, where LLVM would make them narrower."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.dtypes import DType
from nfuser.ir import scalar as sc
from nfuser.ir.point_op import POINT_OPS
from nfuser.lower.kernel.kernel_ir import (
    Call,
    DrawPacket,
    Element,
    For,
    If,
    Let,
    Load,
    Stmt,
)
from nfuser.lower.kernel.parameters import scalars_in
from nfuser.lower.kernel.walk import every

if TYPE_CHECKING:
    from nfuser.ir.scalar import Scalar

ANGULAR = ("sin", "cos", "tan")
REACHES = ("_bounded", "_narrow", "_unit")  # of angles that are known to be small
_SLOW = {"divide", "divide_near", "sqrt", "sqrt_near", "rsqrt"}  # and short
_DISTANCES = (sc.Size, sc.Stride)
_FUNCTION, _WIDE_FUNCTION = 16, 32  # instructions of a polynomial, of f64
_REDUCTION = 128  # of what takes any angle of f64 to a small one
_MOST_INSIDE = 4096  # instructions of functions, which LLVM compiles in a second
_ABREAST = ((16, 4), (256, 2))  # vectors, of polynomials of so many instructions
_BLOCKS_ABREAST = 2  # vectors of Philox's blocks, each round of which waits for another
_ABREAST_NARROW = ((16, 4), (512, 2))  # the same where none is of f64


def of_any_reach(name: str) -> str:
    """Return the name of a function whose angles have the reach that ``name`` says."""
    for reach in REACHES:
        name = name.removesuffix(reach)
    return name


def has_narrow_work(loop: For) -> bool:
    """Tell whether ``loop`` sums in 64 bits what is dear to compute in 32.

    LLVM takes as many lanes as the widest variable that a loop carries has in a vector,
    and half of each vector is left to the narrow work. Light work does not gain: the
    conversions cost as much in either way.
    """
    inside = list(every(loop.body))
    if any(isinstance(x, For) or _is_wide(x) for x in inside):
        return False
    sums = (x for x in inside if isinstance(x, Let) and x.var.dtype is DType.F64)
    dear = [x.dtype for x in inside if isinstance(x, Call) and _is_dear(x.op)]
    dear = [dtype for dtype in dear if dtype.is_float]
    folds = any(let.var in set(every([let.value])) for let in sums)
    return folds and bool(dear) and all(dtype is DType.F32 for dtype in dear)


def has_many_functions(body: tuple[Stmt, ...]) -> bool:
    """Tell whether to hold all functions in ``body`` would take LLVM very long."""
    calls = [x for x in every(body) if isinstance(x, Call) and x.dtype.is_float]
    angles = sum(x.op in ANGULAR for x in calls)
    rest = sum(_size(x) for x in calls if _is_dear(x.op) and x.op not in ANGULAR)
    return angles * _REDUCTION + rest > _MOST_INSIDE


def dear_strides(body: tuple[Stmt, ...]) -> frozenset[Scalar]:
    """Return what lies between elements that loops of dear operations go through."""
    loops = [x for x in every(body) if isinstance(x, For)]
    found: set[Scalar] = set()
    for loop in loops:
        inside = list(every(loop.body))
        if any(isinstance(x, For) for x in inside):
            continue
        if not any(isinstance(x, Call) and _is_dear(x.op) for x in inside):
            continue
        for index in scalars_in(loop.body):
            for product in sc.terms_of(index):
                if len(product) == 2 and loop.index in product:
                    found.update(x for x in product if isinstance(x, _DISTANCES))
    return frozenset(found)


def interleave(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return ``body`` with several vectors side by side in loops of dear operations.

    Each of these waits for the one before it, mostly: a quotient, a polynomial. While
    one vector waits another can be worked on, but a processor does not look that far
    ahead, and LLVM leaves loops that are not short as they are.
    """
    return tuple(map(_widened, body))


def _widened(stmt: Stmt) -> Stmt:
    match stmt:
        case For(body=body):
            return replace(stmt, body=interleave(body), interleave=_vectors(stmt))
        case If(body=body):
            return replace(stmt, body=interleave(body))
        case _:
            return stmt


def _vectors(loop: For) -> int:
    inside = list(every(loop.body))
    if any(isinstance(x, DrawPacket) for x in loop.body):
        return _BLOCKS_ABREAST
    dear = [x for x in inside if isinstance(x, Call) and _is_dear(x.op)]
    if any(isinstance(x, For) for x in inside) or not dear:
        return 1
    if not all(x.dtype.is_float for x in dear):
        return 1
    size = sum(_size(x) for x in dear)
    is_narrow = all(x.dtype is DType.F32 for x in dear)
    limits = _ABREAST_NARROW if is_narrow else _ABREAST
    return next((count for most, count in limits if size <= most), 1)


def _size(x: Call) -> int:
    """Return about how many instructions ``x`` is, without short ones."""
    if x.op in _SLOW:
        return 0
    if x.dtype is not DType.F64:
        return _FUNCTION
    return _REDUCTION if x.op in ANGULAR else _WIDE_FUNCTION


def _is_wide(item: object) -> bool:
    return isinstance(item, (Load, Element)) and item.dtype.bits == 64


def _is_dear(name: str) -> bool:
    op = POINT_OPS.get(of_any_reach(name))
    return op is not None and op.is_costly
