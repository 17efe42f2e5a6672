# SPDX-License-Identifier: Apache-2.0
"""Products that only a sum reads become part of it: one instruction, rounded once.

A GPU's compiler does so by itself. On a CPU it is done here, so that an element has the
same bits in a vector and in what is left of a row. The sum of two products stays as it
is: with one of them exact, ``a * b - b * a`` would not be zero.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from nfuser.dtypes import DType
from nfuser.lower.kernel_ir import Call, For, If, Let, Stmt, Value, Var
from nfuser.lower.walk import every

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from nfuser.schedule.facts import Target

_FLOATS = (DType.F32, DType.F64)
_ELSEWHERE = -1


def contracted(body: tuple[Stmt, ...], target: Target) -> tuple[Stmt, ...]:
    """Return ``body`` with each such sum as one operation, on a CPU."""
    return _contracted(body, ()) if target.kind == "cpu" else body


def _contracted(body: tuple[Stmt, ...], outer: Iterable[Var]) -> tuple[Stmt, ...]:
    """Return ``body``; ``outer`` are the products known where it begins."""
    readers = _readers(body)
    products = dict.fromkeys(outer, _ELSEWHERE)  # and where each is set
    factors: dict[Value, list[Var]] = {}
    made: dict[int, Stmt] = {}
    for place, stmt in enumerate(body):
        made[place] = stmt
        if isinstance(stmt, For | If):
            made[place] = replace(stmt, body=_contracted(stmt.body, products))
        if isinstance(stmt, Let) and _is_float(stmt.value, "add", "subtract"):
            found = _products(stmt.value, products)
            if len(found) == 1 and readers[found[0]] == 1:
                made[place] = Let(stmt.var, _fused(stmt.value, made.pop(found[0])))
        for var in _set_in(stmt):
            products.pop(var, None)
            for product in factors.pop(var, ()):  # of what the factor was before
                products.update({product: _ELSEWHERE} if product in products else {})
        if isinstance(stmt, Let) and _is_float(stmt.value, "multiply"):
            products[stmt.var] = place
            for factor in stmt.value.operands:
                factors.setdefault(factor, []).append(stmt.var)
    return tuple(made.values())


def _fused(total: Call, product: Stmt) -> Call:
    """Return ``total``, one of whose operands is what ``product`` sets."""
    assert isinstance(product, Let)
    assert isinstance(product.value, Call)
    (a, b), (x, y) = product.value.operands, total.operands
    is_first = x is product.var
    c = y if is_first else x
    if total.op == "subtract":
        a, c = (a, _negative(c)) if is_first else (_negative(a), c)
    return Call("fma", (a, b, c), total.dtype)


def _products(total: Call, products: Mapping[Var, int]) -> list[int]:
    """Return where the operands that are products are set."""
    return [
        products[x] if isinstance(x, Var) else _ELSEWHERE
        for x in total.operands
        if (isinstance(x, Var) and x in products) or _is_float(x, "multiply")
    ]


def _negative(x: Value) -> Value:
    return Call("negative", (x,), x.dtype)


def _is_float(value: Value, *names: str) -> TypeGuard[Call]:
    return isinstance(value, Call) and value.op in names and value.dtype in _FLOATS


def _readers(body: tuple[Stmt, ...]) -> Counter[int]:
    """Count the uses of what each statement sets, by its place."""
    latest: dict[Var, int] = {}
    found: Counter[int] = Counter()
    for place, stmt in enumerate(body):
        own = Counter(_set_in(stmt))
        read = Counter(x for x in every([stmt]) if isinstance(x, Var))
        read.subtract(own)
        for var, times in read.items():
            found[latest.get(var, _ELSEWHERE)] += times
        for var in own:
            if not isinstance(stmt, Let):  # which of the two is read after it?
                found[latest.get(var, _ELSEWHERE)] += 2
            latest[var] = place
    del found[_ELSEWHERE]
    return found


def _set_in(stmt: Stmt) -> Iterator[Var]:
    return (x.var for x in every([stmt]) if isinstance(x, Let))
