# SPDX-License-Identifier: Apache-2.0
"""How large the values of a loop can be, given that some of them are small.

A sine lies within 1 of zero, whatever its angle, and so on through sums and products:
the angles of a chain of sines are as small as those at its beginning, which alone are
looked at. No sine has to be computed to look at them.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from nfuser.compiler.lower.cpu.vectors.lanes import of_any_reach
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    For,
    Let,
    Number,
    SetElement,
    Store,
    Var,
)
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.lower.kernel.kernel_ir import Stmt, Value

LIMITS = {"sin": 1.0, "cos": 1.0, "tanh": 1.0, "tanh_near": 1.0, "erf": 1.0} | {
    "sign": 1.0,
    "atan": 1.58,
    "asin": 1.58,
    "acos": 3.15,
    "atan2": 3.15,
}
_SAME = ("negative", "absolute", "to_f32", "to_f64", "copysign")
_LARGEST = ("maximum", "minimum", "fmax", "fmin")
_ROUNDING = 1 + 2.0**-20  # of sums and products, in f32
_SMALL = 0.5  # of a limit, for what is tested: as much again may be added to it
_PART = 2.0**-9  # of what is small, for what an angle is only made of
_MOST = 64  # values that one angle is followed back through


class Sizes:
    """Which angles of a loop are up to their limit if those ``tested`` are small."""

    def __init__(
        self,
        body: tuple[Stmt, ...],
        is_angular: Callable[[object], bool],
        limits: Mapping[DType, float],
    ) -> None:
        self.near: set[Value] = set()
        self.tested: dict[Value, float] = {}  # and how large they may be
        self._limits = limits
        self._is_angular = is_angular
        self._known: dict[Value, float] = {}
        self._made: dict[Var, Value | None] = {}  # None of what several statements make
        self._order: dict[Var, int] = {}
        self._deep: set[Var] = set()  # what comes of a sine
        stmts = [x for x in every(body) if isinstance(x, (Let, SetElement, Store, For))]
        self._later = Counter(x.var for x in stmts if isinstance(x, Let))
        if any(isinstance(x, For) for x in stmts):
            return
        for stmt in stmts:
            assert not isinstance(stmt, For)
            for inner in reversed(every([stmt.value])):
                if isinstance(inner, Call) and is_angular(inner):
                    self._consider(inner.operands[0])
            if isinstance(stmt, Let):
                self._define(stmt)

    def _define(self, let: Let) -> None:
        var, value = let.var, let.value
        is_new = var not in self._made
        size = self.size(value)
        self._order.setdefault(var, len(self._order))
        self._made[var] = value if is_new else None
        self._known[var] = size if is_new else max(size, self._known[var])
        self._later[var] -= 1
        if self._is_deep(value):
            self._deep.add(var)

    def _is_deep(self, value: Value) -> bool:
        return any(x in self._deep or self._is_angular(x) for x in every([value]))

    def _is_open(self, value: Value) -> bool:
        """Tell whether ``value`` changes later in a turn of the loop."""
        return any(isinstance(x, Var) and self._later[x] > 0 for x in every([value]))

    def size(self, value: Value) -> float:
        """Return what the size of ``value`` is at most, or infinity."""
        if value in self._known:
            return self._known[value]
        if isinstance(value, Number):
            return abs(float(value.value))
        if not isinstance(value, Call):
            return math.inf
        name = of_any_reach(value.op)
        if name in LIMITS:
            return LIMITS[name]
        return _of_call(name, value, [self.size(x) for x in value.operands])

    def _consider(self, angle: Value) -> None:
        """Let ``angle`` be near if what is tested already, or little more, says so."""
        limit = self._limits[angle.dtype]
        if self.size(angle) > limit:
            found = self._roots(angle)
            if found is None:
                return
            roots, between = found
            before = {x: self._known.get(x, math.inf) for x in (*roots, *between)}
            for root in roots:  # an angle may be a sum of many of these
                self._known[root] = limit * _SMALL * (1 if root is angle else _PART)
            for var in between:
                made = self._made[var]
                assert made is not None
                self._known[var] = self.size(made)
            if self.size(angle) > limit:
                self._known.update(before)
                return
            self.tested.update((root, self._known[root]) for root in roots)
        self.near.add(angle)

    def _roots(self, angle: Value) -> tuple[list[Value], list[Var]] | None:
        """Return what makes ``angle`` large, no sine in it, and what lies between."""
        roots: dict[Value, None] = {}
        between: dict[Var, None] = {}
        stack = [angle]
        while stack:
            value = stack.pop()
            if self.size(value) < math.inf:
                continue
            if self._is_open(value) or len(between) + len(roots) > _MOST:
                return None
            if not self._is_deep(value):
                roots[value] = None
                continue
            made = value
            if isinstance(value, Var):
                made = self._made.get(value)
                between.pop(value, None)
                between[value] = None
            if not isinstance(made, Call):
                return None
            stack.extend(made.operands[made.op == "select" :])
        if not all(x.dtype.is_float for x in roots):
            return None
        return list(roots), sorted(between, key=self._order.__getitem__)


def _of_call(name: str, call: Call, sizes: Sequence[float]) -> float:
    if name in ("add", "subtract"):
        return sum(sizes) * _ROUNDING
    if name == "multiply":
        return math.prod(sizes) * _ROUNDING if max(sizes) < math.inf else math.inf
    if name == "divide" and isinstance(call.operands[1], Number) and sizes[1]:
        return sizes[0] / sizes[1] * _ROUNDING
    if name in _SAME:
        return sizes[0]
    if name in _LARGEST:
        return max(sizes)
    return max(sizes[1:]) if name == "select" else math.inf
