# SPDX-License-Identifier: Apache-2.0
"""Read a value where it was computed, though an array keeps it, too.

What goes on with a value element by element shares its kernel, which has it in a
register. Who reads it out of the array waits until that kernel is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.same_place import computed_in_place, reads_elsewhere
from nfuser.compiler.ir.expr import Assign, Pointwise, Slice, sources
from nfuser.compiler.ir.fusion import Fusion, rebuild

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView

MOST = 256  # expressions that are looked at for one value


def forward_beside_arrays(fusion: Fusion) -> Fusion:
    """Forward values of assignments to what can go on with them in their kernel.

    Elsewhere a value would be stored twice, in the array and for its readers. Elements
    of which memory holds fewer bits than kernels compute with are read from memory.
    """
    if not fusion.assignments:
        return fusion
    forwarded = _Finder(fusion).forwarded()
    if not forwarded:
        return fusion
    starts = {read: read.result for read in forwarded}
    values = {starts[read]: assign.result for read, assign in forwarded.items()}
    made: dict[TensorView, TensorView] = {}

    def change(expr: Expr) -> TensorView | None:
        if isinstance(expr, Assign):
            made[expr.result] = expr.value  # which may be another by now
        if isinstance(expr, Slice) and expr.result in values:
            return made[values[expr.result]]
        return None

    return rebuild(fusion, change)


class _Finder:
    """Finds the parts that are values which their readers go on with."""

    def __init__(self, fusion: Fusion) -> None:
        self._fusion = fusion
        self._order = {e: k for k, e in enumerate(fusion.exprs)}
        self._found: dict[Slice, Assign] = {}

    def forwarded(self) -> dict[Slice, Assign]:
        """Return the slices that need not be, each with what assigned its elements."""
        for expr in self._fusion.exprs:
            if isinstance(expr, Slice) and expr.result not in self._fusion.outputs:
                assign = self._fusion.definition[expr.source]
                if not isinstance(assign, Assign) or not _is_all_of(expr, assign):
                    continue
                if not _is_updated(self._fusion, assign):
                    self._found[expr] = assign
                    if not self._goes_on(expr, assign.value):
                        del self._found[expr]
        return self._found

    def _goes_on(self, read: Slice, value: TensorView) -> bool:
        """Tell whether all that reads a slice can share the kernel of its elements."""
        own = self._cone(value)
        users = self._fusion.users[read.result]
        return bool(own) and all(self._waits_for_none(e, own, value) for e in users)

    def _cone(self, value: TensorView) -> set[Expr]:
        """Return what computes ``value`` element by element; nothing if it is much."""
        found: set[Expr] = set()
        stack = [value]
        while stack:
            expr = self._defined(stack.pop())
            if expr in found or not _is_along(expr, value):
                continue
            found.add(expr)
            if len(found) > MOST:
                return set()
            stack += sources(expr)
        return found

    def _waits_for_none(self, user: Expr, own: set[Expr], value: TensorView) -> bool:
        """Tell whether ``user`` goes on with ``own``, and reads it no other way."""
        if isinstance(user, Assign):
            stack = [(user.value, True), (user.source, False)]
        elif _is_along(user, value):
            stack = [(t, True) for t in sources(user)]
        else:
            return False
        first = min(self._order[e] for e in own)
        seen: set[tuple[Expr, bool]] = set()
        while stack:
            tensor, is_along = stack.pop()
            expr = self._defined(tensor)
            if (expr, is_along) in seen or self._order[expr] < first:
                continue
            seen.add((expr, is_along))
            if len(seen) > MOST or (expr in own and not is_along):
                return False
            is_along = is_along and _is_along(expr, value)
            stack += [(t, is_along) for t in sources(expr)]
        return True

    def _defined(self, tensor: TensorView) -> Expr:
        """Return what defines ``tensor``, where it is read from."""
        expr = self._fusion.definition[tensor]
        while isinstance(expr, Slice) and expr in self._found:
            expr = self._fusion.definition[self._found[expr].value]
        return expr


def _is_updated(fusion: Fusion, assign: Assign) -> bool:
    """Tell whether a kernel overwrites elements by what it makes of them.

    If others read the value, too, it has to be stored apart, and copied there.
    """
    own = computed_in_place(fusion, assign, or_apart=True)
    is_read = any(assign.source in sources(e) for e in own)
    return is_read and not reads_elsewhere(fusion, assign, own)


def _is_all_of(read: Slice, assign: Assign) -> bool:
    """Tell whether a slice is what was assigned, and no memory rounds it."""
    value = assign.value
    same = read.starts == assign.starts and read.steps == assign.steps
    is_exact = value.dtype.compute is value.dtype
    return same and is_exact and read.result.shape == value.shape


def _is_along(expr: Expr, value: TensorView) -> bool:
    return isinstance(expr, Pointwise) and expr.result.shape == value.shape
