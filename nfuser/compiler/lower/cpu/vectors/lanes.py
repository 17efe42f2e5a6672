# SPDX-License-Identifier: Apache-2.0
"""What the loops of a CPU kernel compute that is dear, and how wide it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.lower.cpu.vectors.chains import longest_chain
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    Element,
    For,
    Let,
    Load,
    Stmt,
    Store,
)
from nfuser.compiler.lower.kernel.parameters import scalars_in
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar

ANGULAR = ("sin", "cos", "tan")
REACHES = ("_bounded", "_narrow", "_moderate")  # of operands that are looked at
_SLOW = {"divide", "divide_near", "sqrt", "sqrt_near", "rsqrt"}  # and short
_WIDE_INSIDE = {
    "hypot",
    *ANGULAR,
    *(f"{name}_bounded" for name in ANGULAR),
}
_DISTANCES = (sc.Size, sc.Stride)
_FUNCTION, _WIDE_FUNCTION = 16, 32  # instructions of a polynomial, of f64
_REDUCTION = 128  # of what takes any angle of f64 to a small one
_MOST_INSIDE = 2048  # instructions of functions, which LLVM compiles in half a second
_MOST_CHAINED = 512  # the same where each waits: one vector after another would
_CHAINED = 1.5  # times the longest chain, at most, is the dear work for each result


def of_any_reach(name: str) -> str:
    """Return the name of a function whose operands have the reach of ``name``."""
    for reach in REACHES:
        name = name.removesuffix(reach)
    return name


def has_narrow_work(loop: For) -> bool:
    """Tell whether ``loop`` sums in 64 bits what is dear to compute in 32.

    LLVM takes as many lanes as the widest variable that a loop carries has in a vector,
    and half of each vector is left to the narrow work. Light work does not gain: the
    conversions cost as much in either way.
    """
    inside = every(loop.body)
    if any(isinstance(x, For) or _is_wide(x) for x in inside):
        return False
    sums = (x for x in inside if isinstance(x, Let) and x.var.dtype is DType.F64)
    dear = [x.dtype for x in inside if isinstance(x, Call) and is_dear(x.op)]
    dear = [dtype for dtype in dear if dtype.is_float]
    folds = any(let.var in set(every([let.value])) for let in sums)
    return folds and bool(dear) and all(dtype is DType.F32 for dtype in dear)


def is_narrow_outside(loop: For) -> bool:
    """Tell whether what ``loop`` computes in 64 bits is inside of functions alone.

    LLVM may take as many lanes as a vector has of those, and do the rest, in 32 bits,
    in halves of vectors.
    """
    inside = every(loop.body)
    if any(isinstance(x, For) or _is_wide(x) or _is_wide_call(x) for x in inside):
        return False
    return any(isinstance(x, Call) and is_wide_inside(x.op) for x in inside)


def has_many_functions(body: tuple[Stmt, ...]) -> bool:
    """Tell whether functions in ``body`` are better called than held.

    To hold all of very many would take LLVM very long. Those that wait for each other
    want several vectors side by side, which registers hold of few.
    """
    loops = (x for x in every(body) if isinstance(x, For))
    return _held(body, _REDUCTION) > _MOST_INSIDE or any(
        _held(x.body, _WIDE_FUNCTION) > _MOST_CHAINED and is_chain(x.body)
        for x in loops
    )


def is_chain(body: tuple[Stmt, ...]) -> bool:
    """Tell whether most of the dear operations wait for the one before."""
    work = sum(_dear_work(x) for x in every(body) if isinstance(x, Call))
    stores = max(sum(isinstance(x, Store) for x in body), 1)
    return work <= _CHAINED * stores * longest_chain(body, _dear_work)


def _dear_work(call: Call) -> int:
    return instructions(call) if is_dear(call.op) else 0


def _held(body: tuple[Stmt, ...], angular: int) -> int:
    """Return about how many instructions the functions in ``body`` are.

    One of an angle that may be large is ``angular``.
    """
    calls = [x for x in every(body) if isinstance(x, Call) and x.dtype.is_float]
    angles = sum(x.op in ANGULAR for x in calls)
    rest = sum(instructions(x) for x in calls if is_dear(x.op) and x.op not in ANGULAR)
    return angles * angular + rest


def dear_strides(body: tuple[Stmt, ...]) -> frozenset[Scalar]:
    """Return what lies between elements that loops of dear operations go through."""
    loops = [x for x in every(body) if isinstance(x, For)]
    found: set[Scalar] = set()
    for loop in loops:
        inside = every(loop.body)
        if any(isinstance(x, For) for x in inside):
            continue
        if not any(isinstance(x, Call) and is_dear(x.op) for x in inside):
            continue
        for index in scalars_in(loop.body):
            for product in sc.terms_of(index):
                if len(product) == 2 and loop.index in product:
                    found.update(x for x in product if isinstance(x, _DISTANCES))
    return frozenset(found)


def instructions(x: Call) -> int:
    """Return about how many instructions ``x`` is, without short ones."""
    if x.op in _SLOW:
        return 0
    if x.dtype is not DType.F64:
        return _FUNCTION
    return _REDUCTION if x.op in ANGULAR else _WIDE_FUNCTION


def _is_wide(item: object) -> bool:
    return isinstance(item, (Load, Element)) and item.dtype.bits == 64


def _is_wide_call(item: object) -> bool:
    return isinstance(item, Call) and item.dtype.bits == 64


def is_wide_inside(name: str) -> bool:
    """Tell whether the function of this name computes in f64 what it gives in f32."""
    return name in _WIDE_INSIDE


def is_dear(name: str) -> bool:
    """Tell whether the function of this name takes a while."""
    op = POINT_OPS.get(of_any_reach(name))
    return op is not None and op.is_costly
