# SPDX-License-Identifier: Apache-2.0
"""What must run before an array is written into, and what may not share its kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.assigned_rows import are_apart
from nfuser.compiler.domains.in_step import read_in_step
from nfuser.compiler.domains.same_place import computed_in_place, reads_elsewhere
from nfuser.compiler.domains.seen_outside import assigned_outside, in_turn
from nfuser.compiler.ir.expr import VIEWS, Assign, Loop, Pointwise, sources
from nfuser.compiler.ir.point_op import is_copy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView


class Overwriting:
    """The order that assignments add to that of data.

    ``arrays`` are the tensors whose memory is written into. What stores a value runs
    ``after`` all that reads the array as it was, and after what left it there;
    ``before`` is the same, seen from the value. So does what may fail, among the values
    that are stored where the caller sees them. A value that is ``copied`` was computed
    of other elements of that array: by another kernel. What is ``left_by_loops`` is to
    lie where it is assigned, first of all: others would be stored before that.
    """

    def __init__(self, fusion: Fusion) -> None:
        self._fusion = fusion
        self.arrays = frozenset(a.source for a in fusion.assignments)
        self.before: dict[Expr, list[Expr]] = {}
        self.after: dict[Expr, list[Expr]] = {}
        self._writes = {fusion.definition[a.value]: a for a in fusion.assignments}
        self._own = {
            a: computed_in_place(fusion, a, or_apart=True) for a in fusion.assignments
        }
        for assign in fusion.assignments if fusion.loops else ():
            self._own[assign] |= read_in_step(fusion, assign)
        self.left_by_loops = _left_by_loops(fusion)
        pairs = self._writes.items()
        self.copied = {
            writer for writer, a in pairs if reads_elsewhere(fusion, a, self._own[a])
        }
        self._readers: dict[Expr, frozenset[Expr]] = {}
        for writer, assign in pairs:
            made, readers = _left_before(fusion, assign)
            self._readers[writer] = frozenset(readers)
            for expr in (made, *readers):
                if sources(expr):
                    self._order(expr, writer)
        for first, second in in_turn(fusion):
            self._order(first, second)

    def _order(self, first: Expr, second: Expr) -> None:
        """Let ``first`` run before ``second``, if they are two that are here."""
        if first is not second and sources(second):
            self.before.setdefault(second, []).append(first)
            self.after.setdefault(first, []).append(second)

    def comes_between(self, exprs: Sequence[Expr], user: Expr) -> bool:
        """Tell whether a write may have to run after ``exprs``, but before ``user``."""
        return user in self.before and any(e in self.after for e in exprs)

    def allows(self, exprs: Sequence[Expr], stored: Sequence[TensorView]) -> bool:
        """Tell whether one kernel may run ``exprs``, and leave what is ``stored``.

        It may read an array that it writes into element by element, each before it is
        overwritten, for that value and no other. If it folds rows it leaves nothing
        else: loops for others would come later. What a loop inside reads in a turn is
        read before that turn stores anything.
        """
        if not self._writes:
            return True
        own = set(exprs)
        for writer in own & self._writes.keys():
            assign = self._writes[writer]
            if self._fusion.definition[assign.source] in own:
                return False
            readers = own & self._readers[writer]
            if any(assign.source not in sources(e) for e in readers):
                return False  # of the array as it was before other parts changed
            if readers - self._own[assign]:
                return False
            turns = any(isinstance(e, Loop) for e in self._own[assign])
            alone = tuple(stored) == (assign.value,) or _folds_nothing(exprs)
            if readers and not turns and not alone:
                return False
        return True


def _folds_nothing(exprs: Sequence[Expr]) -> bool:
    return all(isinstance(e, (Pointwise, *VIEWS)) for e in exprs)


def _left_before(fusion: Fusion, assign: Assign) -> tuple[Expr, list[Expr]]:
    """Return what left the array of ``assign`` as it was, and who reads it like that.

    Of an array that the caller does not have, and that nothing reads meanwhile, parts
    which lie apart are written in any order.
    """
    first, writer = assign, fusion.definition[assign.value]
    made = fusion.definition[first.source]
    while (
        isinstance(made, Assign)
        and fusion.users[made.result] == (first,)
        and made.result not in fusion.outputs
        and writer not in fusion.users[made.source]
        and are_apart(made, assign)
        and assign not in assigned_outside(fusion)
    ):
        first, made = made, fusion.definition[made.source]
    return made, [e for e in fusion.users[first.source] if e is not first]


def _left_by_loops(fusion: Fusion) -> list[Expr]:
    """Return the views and copies by which values come from loops, in order."""
    found: list[Expr] = []
    for assign in fusion.assignments if fusion.loops else ():
        chain: list[Expr] = []
        expr = fusion.definition[assign.value]
        while isinstance(expr, VIEWS) or (
            isinstance(expr, Pointwise) and is_copy(expr.op)
        ):
            chain.append(expr)
            (source,) = sources(expr)
            expr = fusion.definition[source]
        if isinstance(expr, Loop):
            found += reversed(chain)
    return found
