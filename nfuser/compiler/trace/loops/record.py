# SPDX-License-Identifier: Apache-2.0
"""Trace the body of a loop once, and write the loop down."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import nfuser.compiler.ops.loops.loop as verb
from nfuser.compiler.dtypes import check_fits
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Constant, Home, Part
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ops.loops.induction import ends_of
from nfuser.compiler.trace.loops.carried import (
    CarriedLeaf,
    Form,
    joint_dtype,
    leaves,
    real_parts,
    settled,
    standins,
)
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer


FormChange: TypeAlias = "tuple[Form, Form]"  # of a value: as it begins, as it goes on


@node
class IterationStep:
    """What one iteration gives: the carried values to come, and what it adds."""

    carried: Sequence[Any]
    added: Sequence[Any] = ()


_ONCE = (
    "the body of a loop is traced once, and it would be written once instead of in "
    "each iteration"
)
_MOST_FORMS = 5  # bool, int, float, complex, and the one that is kept


def run_loop(
    t: Tracer,
    inits: Sequence[Any],
    names: Sequence[str],
    body: Callable[[list[Any], Any], IterationStep],
    trips: Scalar | None,
    *,
    flag: int | None = None,
    backwards: bool = False,
    looks: bool = True,
    slots: Mapping[int, int] = MappingProxyType({}),
    known: dict[int, FormChange] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Return the carried values after the loop, and what iterations added.

    ``slots`` are the arguments of the call, by the numbers of the values that belong in
    them. ``body`` takes the values and how many iterations came before; it may run more
    than once, where numbers of Python's become arrays. Values that begin in the form of
    another time are given what they were ``known`` to become; that is put there, too.
    What does not look yet whether the loop went wrong has the builder look later.
    """
    b = t.builder
    b.source = t.turns.line()
    first = leaves(t, inits, names)
    at_first = [one.form for one in first]
    for k, (before, after) in (known or {}).items():
        if k < len(first) and at_first[k] == before:
            first[k] = _in_form(t, first[k], after)
    for _ in range(_MOST_FORMS):
        forms = [one.form for one in first]
        begun = real_parts(t, first)
        always = trips is not None and flag is None
        homes = [h for k, f in enumerate(forms) for h in _homes(f, slots.get(k))]
        recording = _traced(t, begun, homes, at_first, forms, body, trips, always)
        pairs = zip(at_first, forms, recording.carried, names, strict=True)
        kept = [settled(*pair) for pair in pairs]
        if kept == forms:
            break
        first = [_in_form(t, one, form) for one, form in zip(first, kept, strict=True)]
    else:
        message = "start with arrays: the numbers that the loop carries change again"
        raise TraceError(message)
    if known is not None:
        known.clear()
        known.update(enumerate(zip(at_first, forms, strict=True)))
    outputs = recording.outputs
    if not outputs:  # but it may raise
        again = partial(_with_nothing, body)
        run_loop(t, [False], ["nothing"], again, trips, backwards=backwards)
        return [], []
    place = None if flag is None else len(real_parts_before(forms, flag))
    closed = recording.body.close(outputs)
    made = verb.loop(
        b, begun, closed, trips, flag=place, backwards=backwards, looks=looks
    )
    count = len(begun)
    after = standins(t, forms, made[:count])
    rows = [one.form for one in recording.added]
    return after, standins(t, [_row(form) for form in rows], made[count:])


def _with_nothing(
    body: Callable[[list[Any], Any], IterationStep], given: list[Any], turn: Any
) -> IterationStep:
    """Run a body that gives nothing, and give what was there before."""
    body([], turn)
    return IterationStep(given)


def real_parts_before(forms: Sequence[Form], number: int) -> list[int]:
    """Return the places of real parts before those of value ``number``."""
    widths = (1 + form.dtype.is_complex for form in forms[:number])
    return list(range(sum(widths)))


def _homes(form: Form, slot: int | None) -> list[Home | None]:
    """Return where the real parts of a carried value belong."""
    parts = (Part.REAL, Part.IMAG) if form.dtype.is_complex else (Part.WHOLE,)
    return [None if slot is None else Home(slot, part) for part in parts]


def _row(form: Form) -> Form:
    """Return the form of many of such values, one after another."""
    return Form(form.dtype, None, form.ndim + 1, is_array=True)


def _in_form(t: Tracer, one: CarriedLeaf, form: Form) -> CarriedLeaf:
    held = one.held
    if held.dtype is not form.dtype:
        _check_number(t, held, form.dtype)
        held = t.builder.cast(held, form.dtype)
    return CarriedLeaf(held, form)


def _check_number(t: Tracer, held: TensorView, dtype: DType) -> None:
    """Refuse a constant of the program that the carried value cannot hold."""
    for expr in t.builder.exprs:
        if isinstance(expr, Constant) and expr.result is held:
            if isinstance(expr.value, int) and dtype.is_integer:
                check_fits(int(expr.value), dtype, "a number that the loop carries")
            return


@node
class _Recording:
    body: verb.Body
    outputs: Sequence[Any]
    carried: Sequence[CarriedLeaf]
    added: Sequence[CarriedLeaf]


def _traced(
    t: Tracer,
    begun: Sequence[Any],
    homes: Sequence[Home | None],
    starts: Sequence[Form],
    forms: Sequence[Form],
    body: Callable[[list[Any], Any], IterationStep],
    trips: Scalar | None,
    always: bool,
) -> _Recording:
    b, effects = t.builder, Effects(t)
    with without_draws(t), verb.recorded(b, begun, homes, always=always) as recorded:
        b.weak[recorded.turn] = int
        if trips is not None:
            b.counters[recorded.turn] = ends_of(trips, (sc.const(0), 1))
        given = standins(t, forms, recorded.parameters)
        step = body(given, t.wrap(recorded.turn))
        carried = leaves(t, step.carried, ["a value"] * len(step.carried))
        added = leaves(t, step.added, ["a value"] * len(step.added))
        kept = [
            _as_carried(t, *each) for each in zip(carried, starts, forms, strict=True)
        ]
        outputs = [*real_parts(t, kept), *real_parts(t, added)]
    effects.refuse(_ONCE)
    t.ended.update(recorded.tensors())
    return _Recording(recorded, outputs, carried, added)


def _as_carried(t: Tracer, one: CarriedLeaf, start: Form, form: Form) -> CarriedLeaf:
    """Return a number in the dtype of the value that it replaces.

    One of both is Python's, or the value was before the loop.
    """
    is_number = one.form.weak is not None
    is_number |= joint_dtype(start, one.form) is form.dtype
    return _in_form(t, one, form) if is_number and not form.dtype.is_bool else one


class Effects:
    """What arrays hold before a body is traced; none of them may be written in it."""

    def __init__(self, t: Tracer) -> None:
        found: list[Any] = [x for x in (ref() for ref in t.made) if x is not None]
        # Views follow the arrays that they are views of once somebody reads them.
        roots = (x for x in found if getattr(x, "_root", None) is None)
        self._held = [(x, x._operand()) for x in roots]

    def refuse(self, why: str) -> None:
        """Refuse what was written meanwhile into an array that was there before."""
        if all(x._held is before for x, before in self._held):
            return
        message = (
            f"return the array, and do not write into it: {why}; expected an array "
            "that was made inside, found one from outside"
        )
        raise TraceError(message)


_DRAWS = (
    "draw before the loop, as rng.normal(size=(n, *shape)), and take row i in the "
    "body: the body of a loop is traced once, and each iteration would draw the same "
    "numbers; expected none, found a draw of random numbers"
)


@contextmanager
def without_draws(t: Tracer, message: str = _DRAWS) -> Generator[None]:
    """Refuse draws from generators meanwhile."""

    def refuse(_: Any) -> NoReturn:
        raise TraceError(message)

    before = t.draw
    t.draw = refuse
    try:
        yield
    finally:
        t.draw = before
