# SPDX-License-Identifier: Apache-2.0
"""Let assignments write into the memory of what they assign to.

Afterwards each value is stored for its assignment alone, and is defined right before
it; all that reads the old elements comes earlier.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.domains.assigned_rows import are_apart
from nfuser.compiler.domains.same_place import computed_in_place, reads_elsewhere
from nfuser.compiler.domains.seen_outside import fails_between
from nfuser.compiler.ir.expr import (
    VIEWS,
    Assign,
    ExpandDims,
    Permute,
    Pointwise,
    Reduce,
    Scan,
    Scatter,
    Slice,
    Squeeze,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, Replacement, rebuild, with_sources
from nfuser.compiler.ir.point_op import COPY
from nfuser.compiler.ir.same_value import original
from nfuser.compiler.rewrite.dead_code import drop_dead_code

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView

# What a kernel writes where it is told; copies that others wait for stay apart.
_STORED = (Pointwise, Reduce, Scan, ExpandDims, Squeeze, Permute, Slice)


def place_assignments(fusion: Fusion) -> Fusion:
    """Return ``fusion`` in an order in which every assignment can be done in place."""
    if not fusion.assignments:
        return fusion
    for step in (
        _without_identities,
        _without_copies,
        _without_overwritten,
        drop_dead_code,  # a loop may have left rows for what is overwritten
        _with_one_assignment_each,
        _with_own_values,
        _with_buffers,
        _with_values_last,
        _with_old_elements_first,
    ):
        fusion = step(fusion)
    return fusion


def _without_identities(fusion: Fusion) -> Fusion:
    """Leave out what assigns to an array what that holds already.

    Of a complex array one part may be assigned to, and the other stay as it is. What
    is assigned to a copy that is then assigned to the array is assigned to that.
    """

    def source_of(assign: Assign) -> TensorView:
        return original(fusion.definition, assign.source)

    def change(expr: Expr) -> TensorView | Replacement | None:
        if not isinstance(expr, Assign) or not expr.is_whole:
            return None
        made = assigned.get(expr.value)
        if expr.value is expr.source or (made and made.source is expr.source):
            return expr.value
        if made and source_of(made) is source_of(expr):
            there = replace(made, source=expr.source, result=replace(expr.result))
            return Replacement((there,), (there.result,))
        return None

    assigned: dict[TensorView, Assign] = {}
    for assign in fusion.assignments:
        if len(fusion.users[assign.result]) == 1:
            assigned[assign.result] = assign
    return drop_dead_code(rebuild(fusion, change))


def _without_copies(fusion: Fusion) -> Fusion:
    """Assign to what was computed, not to a copy that nothing else reads.

    Later steps copy what is read afterwards. Where another assignment goes on with what
    was computed, that has its memory, which may be the caller's.
    """
    kept = {assign.source for assign in fusion.assignments} | set(fusion.outputs)

    def change(expr: Expr) -> Replacement | None:
        if not isinstance(expr, Assign):
            return None
        copy = fusion.definition.get(expr.source)
        if not isinstance(copy, Pointwise) or copy.op is not COPY:
            return None
        (whole,) = copy.operands
        is_private = len(fusion.users[expr.source]) == 1
        if not is_private or expr.source in fusion.outputs or whole in kept:
            return None
        if not isinstance(fusion.definition[whole], (Pointwise, Assign)):
            return None
        return Replacement((replace(expr, source=whole),), (expr.result,))

    return drop_dead_code(rebuild(fusion, change))


def _without_overwritten(fusion: Fusion) -> Fusion:
    """Leave out assignments of which another one overwrites every element.

    ``x += 1`` and then ``x *= 2`` is one assignment, of a value computed at once.
    """
    while found := _overwritten(fusion):
        fusion = _left_out(fusion, found)
    return fusion


def _overwritten(fusion: Fusion) -> dict[Assign, Assign]:
    """Return assignments that another one overwrites, under that one.

    Of a row of them it is every other one, so that ``n`` take ``log(n)`` rounds.
    """
    found: dict[Assign, Assign] = {}
    for later in fusion.assignments:
        earlier = fusion.definition[later.source]
        if not isinstance(earlier, Assign) or earlier in found:
            continue
        if _is_overwritten(fusion, earlier, later):
            found[later] = earlier
    return found


def _is_overwritten(fusion: Fusion, earlier: Assign, later: Assign) -> bool:
    """Tell whether nothing but ``later`` sees what ``earlier`` assigned.

    It may be the same element of its value that reads it, by way of the same part; who
    reads a row beside it reads what was there before.
    """
    is_seen = earlier.result in fusion.outputs or earlier.result is later.value
    if is_seen or not _is_same_part(earlier, later):
        return False
    if fails_between(fusion, earlier, later):
        return False
    own = computed_in_place(fusion, later)
    readers = [e for e in fusion.users[earlier.result] if e is not later]
    before = {e for e in readers if _is_apart(e, earlier)}
    if before:
        order = {e: k for k, e in enumerate(fusion.exprs)}
        before = {e for e in before if order[e] < order[later]}
    return all(
        e in before or (e in own and (later.is_whole or _reads(e, later)))
        for e in readers
    )


def _is_apart(expr: Expr, assign: Assign) -> bool:
    """Tell whether ``expr`` takes a row of which ``assign`` leaves all as it was."""
    return isinstance(expr, Slice) and are_apart(expr, assign)


def _reads(expr: Expr, assign: Assign) -> bool:
    """Tell whether ``expr`` takes what ``assign`` overwrites out of the whole."""
    return isinstance(expr, Slice) and _is_same_part(expr, assign)


def _is_same_part(one: Assign | Slice, other: Assign) -> bool:
    """Tell whether two expressions are about the same elements of a whole."""
    part = one.result if isinstance(one, Slice) else one.value
    same = one.starts == other.starts and one.steps == other.steps
    return same and part.shape == other.value.shape


def _left_out(fusion: Fusion, overwritten: dict[Assign, Assign]) -> Fusion:
    """Return ``fusion`` without what is overwritten: who read it reads its value.

    Who took the part of the array that was assigned takes all of the value.
    """
    earlier = {e.result: e for e in overwritten.values()}
    instead: dict[TensorView, TensorView] = {}
    exprs: list[Expr] = []
    for expr in fusion.exprs:
        if isinstance(expr, Assign) and expr in overwritten:
            expr = replace(expr, source=overwritten[expr].source)
        if isinstance(expr, Assign) and expr.result in earlier:
            instead[expr.result] = instead.get(expr.value, expr.value)
            continue
        made = earlier.get(expr.source) if isinstance(expr, Slice) else None
        if made is not None and _is_apart(expr, made):
            exprs.append(with_sources(expr, [made.source]))
        elif made is not None and _reads(expr, made):
            instead[results(expr)[0]] = instead[made.result]
        else:
            own = [instead.get(tensor, tensor) for tensor in sources(expr)]
            exprs.append(with_sources(expr, own))
    return Fusion(fusion.name, exprs, fusion.outputs)


def _with_one_assignment_each(fusion: Fusion) -> Fusion:
    """Copy an array for all assignments to its elements but the last."""
    last = {assign.source: assign for assign in fusion.assignments}

    def change(expr: Expr) -> Replacement | None:
        if not isinstance(expr, Assign) or last.get(expr.source) in (expr, None):
            return None
        own = replace(expr.source)
        copy = Pointwise(COPY, (expr.source,), own)
        return Replacement((copy, replace(expr, source=own)), (expr.result,))

    if len(last) == len(fusion.assignments):
        return fusion
    return rebuild(fusion, change)


def _with_own_values(fusion: Fusion) -> Fusion:
    """Give each assignment a value that a kernel stores, and for nothing else."""
    shared = {
        assign
        for assign in fusion.assignments
        if fusion.users[assign.value] != (assign,)
        or assign.value is assign.source
        or assign.value in fusion.outputs
        or not _is_stored(fusion.definition[assign.value], assign)
        or len(results(fusion.definition[assign.value])) > 1
    }
    return _with_copied_values(fusion, shared)


def _is_stored(made: Expr, assign: Assign) -> bool:
    """Tell whether what makes a value can leave it where it belongs."""
    if isinstance(made, Scatter):  # which changes an array in its own place
        return assign.is_whole and made.source is assign.source
    return isinstance(made, _STORED)


def _with_buffers(fusion: Fusion) -> Fusion:
    """Copy the values that are computed of other elements that they overwrite.

    So are those of assignments of which each overwrites what another one's value reads,
    as where two arrays are exchanged.
    """
    buffered = _in_a_circle(fusion)
    for assign in fusion.assignments:
        made = fusion.definition[assign.value]
        is_copy = isinstance(made, Pointwise) and made.op is COPY
        if is_copy and assign.source not in sources(made):
            continue  # of what another kernel leaves
        own = computed_in_place(fusion, assign, or_apart=True)
        if reads_elsewhere(fusion, assign, own):
            buffered.add(assign)
    return _with_copied_values(fusion, buffered)


def _in_a_circle(fusion: Fusion) -> set[Assign]:
    """Return assignments without which no value waits for one that waits for it."""
    of = {assign.source: assign for assign in fusion.assignments}
    if len(of) < 2:
        return set()

    def reads(assign: Assign) -> list[Assign]:
        seen = list(sources(fusion.definition[assign.value]))
        for tensor in seen:
            expr = fusion.definition[tensor]
            seen += sources(expr) if isinstance(expr, VIEWS) else ()
        return [of[t] for t in seen if t in of and of[t] is not assign]

    before = {assign: reads(assign) for assign in of.values()}
    found: set[Assign] = set()
    for assign in reversed(of.values()):
        left, waiting = list(before[assign]), set[Assign]()
        while left and assign not in waiting:
            other = left.pop()
            if other not in waiting:
                waiting.add(other)
                left += before[other]
        if assign in waiting:
            found.add(assign)
            before[assign] = []  # its value is stored apart
    return found


def _with_copied_values(fusion: Fusion, assignments: set[Assign]) -> Fusion:
    """Let each of ``assignments`` assign a copy of its value."""
    if not assignments:
        return fusion
    exprs: list[Expr] = []
    for expr in fusion.exprs:
        if isinstance(expr, Assign) and expr in assignments:
            own = replace(expr.value)
            exprs.append(Pointwise(COPY, (expr.value,), own))
            exprs.append(replace(expr, value=own))
        else:
            exprs.append(expr)
    return Fusion(fusion.name, exprs, fusion.outputs)


def _with_values_last(fusion: Fusion) -> Fusion:
    """Compute values after what reads what they overwrite, or may fail before."""
    order = {e: k for k, e in enumerate(fusion.exprs)}
    late: dict[Expr, Assign] = {}
    for assign in fusion.assignments:
        made = fusion.definition[assign.value]
        readers = fusion.users[assign.source]
        is_read = any(order[made] < order[e] < order[assign] for e in readers)
        if is_read or fails_between(fusion, made, assign):
            late[made] = assign
    if not late:
        return fusion
    before = {assign: made for made, assign in late.items()}
    exprs: list[Expr] = []
    for expr in fusion.exprs:
        if isinstance(expr, Assign) and expr in before:
            exprs.append(before[expr])
        if expr not in late:
            exprs.append(expr)
    return Fusion(fusion.name, exprs, fusion.outputs)


def _with_old_elements_first(fusion: Fusion) -> Fusion:
    """Copy what is read of an array after it is assigned to, before that happens.

    A copy that is read late itself is made early, and is read by the others.
    """
    order = {e: k for k, e in enumerate(fusion.exprs)}
    kept = set(fusion.outputs) - {a.source for a in fusion.assignments}
    late: dict[TensorView, set[Expr]] = {}
    for assign in fusion.assignments:
        users = fusion.users[assign.source]
        at = order[assign]
        after = {e for e in users if order[e] > at}
        if after or assign.source in fusion.outputs:
            late.setdefault(assign.source, after)
    if not late:
        return fusion
    exprs: list[Expr] = []
    old: dict[TensorView, TensorView] = {}
    early: set[Expr] = set()
    for expr in fusion.exprs:
        if expr in early:
            continue
        own = [old[t] if t in old and expr in late[t] else t for t in sources(expr)]
        exprs.append(with_sources(expr, own))
        for tensor in results(expr):
            if tensor in late:
                copies = (e for e in fusion.users[tensor] if e in late[tensor])
                copy = next((e for e in copies if _is_left(e, kept)), None)
                copy = copy or Pointwise(COPY, (tensor,), replace(tensor))
                early.add(copy)
                exprs.append(copy)
                (old[tensor],) = results(copy)
    return Fusion(fusion.name, exprs, [old.get(t, t) for t in fusion.outputs])


def _is_left(expr: Expr, kept: set[TensorView]) -> bool:
    """Tell whether ``expr`` is a copy that is returned, and left as it is."""
    is_copy = isinstance(expr, Pointwise) and expr.op is COPY
    return is_copy and expr.result in kept
