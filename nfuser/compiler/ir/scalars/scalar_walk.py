# SPDX-License-Identifier: Apache-2.0
"""Evaluate, substitute and print scalars; none of it recurses over the DAG."""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.exact_division as exact_division
import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import (
    Binary,
    Const,
    Datum,
    Knob,
    LoopIndex,
    Poly,
    Scalar,
    ScalarInput,
    Select,
    Size,
    Stride,
)
from nfuser.compiler.ir.walk import toposort

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def children(x: Scalar) -> tuple[Scalar, ...]:
    """Return the scalars that ``x`` is computed from."""
    return _CHILDREN[type(x)](x)


_CHILDREN: dict[type, Callable[[Any], tuple[Scalar, ...]]] = {
    Binary: attrgetter("lhs", "rhs"),
    Select: attrgetter("condition", "then", "other"),
    Poly: lambda x: tuple(dict.fromkeys(atom for m, _ in x.terms for atom in m)),
    Datum: lambda x: (*x.index, x.extent),
    **dict.fromkeys((Const, Size, ScalarInput, Stride, Knob, LoopIndex), lambda _: ()),
}


def symbols(roots: Iterable[Scalar]) -> list[Scalar]:
    """Return the symbols in ``roots``, in order of first use."""
    kinds = (Size, ScalarInput, Stride, Knob, LoopIndex)
    return [x for x in toposort(roots, children) if isinstance(x, kinds)]


@lru_cache(64)  # asked for each part of each index, over and over
def varying(x: Scalar) -> tuple[LoopIndex | Datum, ...]:
    """Return the loop indices and the elements of tensors that ``x`` depends on."""
    return tuple(
        s for s in toposort([x], children) if isinstance(s, (LoopIndex, Datum))
    )


def loops_in(x: Scalar) -> list[LoopIndex]:
    """Return the loop indices that ``x`` depends on."""
    return [s for s in varying(x) if isinstance(s, LoopIndex)]


def evaluate(root: Scalar, values: Mapping[Scalar, int]) -> int:
    """Return the value of ``root`` where ``values`` gives that of each symbol."""
    if isinstance(root, Const):
        return root.value
    found = values.get(root)
    return evaluate_all([root], values)[0] if found is None else found


def evaluate_all(roots: Iterable[Scalar], values: Mapping[Scalar, int]) -> list[int]:
    """Return the value of each of ``roots``."""
    roots = list(roots)
    done: dict[Scalar, int] = {}
    for x in toposort(roots, children):
        if x in values:
            done[x] = values[x]
            continue
        match x:  # what there may be most of comes first
            case Select(condition, then, other):
                done[x] = done[then] if done[condition] else done[other]
            case Binary(op, lhs, rhs):
                done[x] = _OPERATORS[op](done[lhs], done[rhs])
            case Const(number):
                done[x] = number
            case Poly(terms):
                total = 0
                for monomial, coefficient in terms:
                    for atom in monomial:
                        coefficient *= done[atom]
                    total += coefficient
                done[x] = total
            case _:
                done[x] = values[x]
    return [done[root] for root in roots]


def prepared_shift(divisor: int) -> int:
    """Return the shift l with ``n // divisor == mulhi(2 n, m) >> l``."""
    return (divisor - 1).bit_length()


def prepared_multiplier(divisor: int) -> int:
    """Return the factor m that goes with ``prepared_shift``; exact for n < 2**31."""
    return -(-(1 << (31 + prepared_shift(divisor))) // divisor)


_OPERATORS: dict[Op, Callable[[int, int], int]] = {
    # A size of 0 divides only what is empty too, and nobody reads the answer.
    Op.FLOORDIV: lambda a, b: a // b if b else 0,
    Op.MOD: lambda a, b: a % b if b else 0,
    Op.MIN: min,
    Op.MAX: max,
    Op.LT: lambda a, b: int(a < b),
    Op.EQ: lambda a, b: int(a == b),
    Op.MULTIPLIER: lambda a, _: prepared_multiplier(max(a, 1)),
    Op.SHIFT: lambda a, _: prepared_shift(max(a, 1)),
}
_FOLDERS: dict[Op, Callable[[Scalar, Scalar], Scalar]] = {
    Op.FLOORDIV: sc.floor_divide,
    Op.MOD: sc.modulo,
    Op.MIN: scalar_functions.minimum,
    Op.MAX: scalar_functions.maximum,
    Op.LT: scalar_functions.less,
    Op.EQ: scalar_functions.equal,
    Op.MULTIPLIER: lambda a, _: exact_division.multiplier(a),
    Op.SHIFT: lambda a, _: exact_division.shift(a),
}


def substitute(roots: Iterable[Scalar], by: Mapping[Scalar, Scalar]) -> list[Scalar]:
    """Rebuild ``roots`` with the scalars in ``by`` replaced; everything folds again."""
    roots = list(roots)
    done: dict[Scalar, Scalar] = {}
    for x in toposort(roots, lambda s: () if s in by else children(s)):
        if x in by:
            done[x] = by[x]
            continue
        parts = children(x)
        if parts and all(done[part] is part for part in parts):
            done[x] = x
            continue
        match x:
            case Poly(terms):
                total: Scalar = sc.const(0)
                for monomial, coefficient in terms:
                    total = (
                        total
                        + scalar_functions.product(done[a] for a in monomial)
                        * coefficient
                    )
                done[x] = total
            case Binary(op, lhs, rhs):
                done[x] = _FOLDERS[op](done[lhs], done[rhs])
            case Select(condition, then, other):
                done[x] = scalar_functions.select(
                    done[condition], done[then], done[other]
                )
            case Datum(tensor, index, extent, inside):
                place = [done[i] for i in index]
                done[x] = scalar_symbols.datum(
                    tensor, place, done[extent], inside=inside
                )
            case LoopIndex(number, extent) if not isinstance(extent, Const):
                done[x] = scalar_symbols.loop_index(number, substitute([extent], by)[0])
            case _:
                done[x] = x
    return [done[root] for root in roots]


def text(
    root: Scalar,
    name: Callable[[Scalar], str | None],
    render: Callable[[Binary, str, str], str] | None = None,
) -> str:
    """Render ``root`` as Python source.

    ``name`` spells symbols, and whatever else it has a name for; ``render`` spells
    operators of a target's own, given the operands' text.
    """
    done: dict[Scalar, tuple[str, bool]] = {}  # text, and whether it needs brackets

    def inner(x: Scalar) -> str:
        string, compound = done[x]
        return f"({string})" if compound else string

    def unnamed(x: Scalar) -> tuple[Scalar, ...]:
        return () if not isinstance(x, Const) and name(x) else children(x)

    for x in toposort([root], unnamed):
        if not isinstance(x, Const) and (known := name(x)):
            done[x] = (known, False)
            continue
        match x:
            case Const(number):
                done[x] = (str(number), number < 0)
            case Poly(terms):
                done[x] = (_sum_text(terms, inner), True)
            case Binary() if render is not None:
                done[x] = (render(x, done[x.lhs][0], done[x.rhs][0]), False)
            case Binary(Op.MIN | Op.MAX, lhs, rhs):
                done[x] = (f"{x.op.value}({done[lhs][0]}, {done[rhs][0]})", False)
            case Binary(op, lhs, rhs):
                done[x] = (f"{inner(lhs)} {op.value} {inner(rhs)}", True)
            case Select(condition, then, other):
                parts = (done[s][0] for s in (condition, then, other))
                done[x] = ("select({}, {}, {})".format(*parts), False)
            case _:
                done[x] = (repr(x), False)
    return done[root][0]


def _sum_text(
    terms: tuple[tuple[tuple[sc.Atom, ...], int], ...],
    inner: Callable[[Scalar], str],
) -> str:
    result = ""
    for monomial, coefficient in terms:
        factors = [inner(atom) for atom in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.append(str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+"
        joined = " * ".join(factors)
        if not result:
            result = joined if sign == "+" else f"-{joined}"
        else:
            result += f" {sign} {joined}"
    return result


def every(roots: Iterable[Scalar]) -> list[Scalar]:
    """Return ``roots`` and all that they are computed from, children first."""
    return toposort(roots, children)
