# SPDX-License-Identifier: Apache-2.0
"""The loops of ``nfuser.lax`` on stand-ins."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
import nfuser.compiler.ops.loops.loop as verb
import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.dtypes import DType, promote, widest
from nfuser.compiler.ir.expr import FOLDING, Loop
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import equal, maximum
from nfuser.compiler.trace.loops.carried import (
    CarriedLeaf,
    Form,
    leaf,
    leaves,
    names_of,
    require_structure,
)
from nfuser.compiler.trace.loops.record import Effects, IterationStep, run_loop
from nfuser.compiler.trace.standins.sizes import passed_integer, size
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.standins.symbolic import SymbolicInt, integer
from nfuser.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.dtypes.promotion import Weak
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.trace.tracer import Tracer


def fori_loop(t: Tracer, lower: Any, upper: Any, body: Any, init: Any) -> Any:
    """Return ``nfuser.lax.fori_loop``."""
    bounds = _bound(t, lower), _bound(t, upper)
    items, shape = tree.flatten(init)
    if None in bounds:
        return _counted_as_carried(t, lower, upper, body, init)
    first, last = (sc.as_scalar(x) for x in bounds if x is not None)
    trips = maximum(last - first, 0)

    def step(values: list[Any], turn: Any) -> IterationStep:
        at = turn if first is sc.const(0) else turn + integer(t, first)
        return IterationStep(
            _same(shape, body(at, tree.unflatten(shape, values)), "the body")
        )

    found, _ = run_loop(t, items, names_of(shape, "init"), step, trips)
    return tree.unflatten(shape, found)


def _counted_as_carried(t: Tracer, lower: Any, upper: Any, body: Any, init: Any) -> Any:
    """Loop between bounds of which one is computed of arrays."""

    def goes_on(carried: Any) -> Any:
        return carried[0] < upper

    def step(carried: Any) -> Any:
        at, values = carried
        return at + 1, body(at, values)

    return while_loop(t, goes_on, step, (lower, init))[1]


def _bound(t: Tracer, x: Any) -> Scalar | int | None:
    """Return a bound that is known when the loop begins to run; else None."""
    if isinstance(x, Standin) and not isinstance(x, SymbolicInt):
        held = t.tensor(x)
        if held.ndim or not held.dtype.is_integer:
            message = (
                "write int(n) or n // m: a loop counts between integers, found "
                f"{held.dtype} with {held.ndim} axes"
            )
            raise ArgumentError(message)
        return passed_integer(t, held)
    return size(t, x, "fori_loop")


def _same(shape: tree.Tree, returned: Any, what: str) -> list[Any]:
    items, found = tree.flatten(returned)
    require_structure(shape, found, what)
    return items


def while_loop(t: Tracer, cond: Any, body: Any, init: Any) -> Any:
    """Return ``nfuser.lax.while_loop``."""
    items, shape = tree.flatten(init)
    names = names_of(shape, "init")

    def goes_on(values: list[Any]) -> Any:
        return _truth(t, cond(tree.unflatten(shape, values)))

    def step(values: list[Any], _: Any) -> IterationStep:
        after = body(tree.unflatten(shape, values[:-1]))
        carried = _same(shape, after, "the body")
        forms = [leaf(t, x, "a value") for x in carried]
        return IterationStep([*carried, goes_on(standins_of(t, forms))])

    begun = standins_of(t, leaves(t, items, names))
    all_names = [*names, "the condition"]
    count = len(items)
    found, _ = run_loop(t, [*items, goes_on(begun)], all_names, step, None, flag=count)
    return tree.unflatten(shape, found[:-1])


def standins_of(t: Tracer, found: list[CarriedLeaf]) -> list[Any]:
    """Return stand-ins of values, which may be numbers of Python's."""
    made: list[Any] = []
    for one in found:
        if one.form.weak is not None:
            t.builder.weak[one.held] = one.form.weak
        standin = t.wrap(one.held)
        standin._is_array = one.form.is_array
        made.append(standin)
    return made


def _truth(t: Tracer, found: Any) -> Any:
    """Return whether a loop goes on, as one truth value that is carried."""
    held = t.tensor(found)
    if held.ndim:
        message = (
            "write (...).any() or (...).all(): expected one truth value from the "
            f"condition, found an array of {held.ndim} axes"
        )
        raise ShapeError(message)
    b = t.builder
    return t.wrap(b.point("copy", ops.truth(b, held)))


def scan(
    t: Tracer, f: Any, init: Any, xs: Any, length: Any, *, reverse: bool
) -> tuple[Any, Any]:
    """Return ``nfuser.lax.scan``."""
    items, shape = tree.flatten(init)
    arrays, form = tree.flatten(xs)
    trips = _length(t, arrays, names_of(form, "xs"), length)
    parts: list[tree.Tree] = []

    def step(values: list[Any], turn: Any) -> IterationStep:
        at = integer(t, trips - 1) - turn if reverse else turn
        rows = [_row(t, x, at) for x in arrays]
        returned = f(tree.unflatten(shape, values), tree.unflatten(form, rows))
        if type(returned) is not tuple or len(returned) != 2:
            message = (
                "return (carry, y) from the function that is scanned: expected a pair, "
                f"found {type(returned).__name__}"
            )
            raise ArgumentError(message)
        added, part = tree.flatten(returned[1])
        parts.append(part)
        return IterationStep(_same(shape, returned[0], "the scanned function"), added)

    names = names_of(shape, "init")
    found, rows = run_loop(t, items, names, step, trips, backwards=reverse)
    return tree.unflatten(shape, found), tree.unflatten(parts[-1], rows)


def _row(t: Tracer, x: Any, at: Any) -> Any:
    """Return row ``at`` of an array, which has it."""
    return t.apply(ops.take_inside, t.tensor(x), t.tensor(at))


def _length(t: Tracer, arrays: list[Any], names: list[str], length: Any) -> Scalar:
    known: list[tuple[Scalar, str]] = []
    for item, name in zip(arrays, names, strict=True):
        held = t.tensor(item)
        if not held.ndim:
            message = (
                f"pass an array with axes as {name}: scan takes its rows one by one"
            )
            raise ShapeError(message)
        known.append((held.shape[0], name))
    if length is not None:
        known.append((sc.as_scalar(size(t, length, "scan")), "length"))
    if not known:
        message = "pass length=n to scan: there is no xs that says how many steps to do"
        raise ArgumentError(message)
    first, whose = known[0]
    for other, name in known[1:]:
        if not t.ask(equal(first, other), usual=1):
            sizes = [t.builder.today(x) for x in (first, other)]
            message = (
                f"scan: {name} says {sizes[1]} steps, and {whose} says {sizes[0]}; "
                "expected the same"
            )
            raise ShapeError(message)
    return first


def cond(
    t: Tracer, pred: Any, true_fun: Any, false_fun: Any, operands: tuple[Any, ...]
) -> Any:
    """Return ``nfuser.lax.cond``.

    Where it costs more than a few operations, only the side that is taken runs.
    """
    chosen = _truth(t, pred)
    sides = [_Side(t, f, operands) for f in (true_fun, false_fun)]
    require_structure(sides[0].shape, sides[1].shape, "both functions of cond")
    if any(side.is_dear for side in sides):
        return _run_one(t, chosen, sides)
    made = [side.inline() for side in sides]
    pairs = zip(*made, sides[0].names, strict=True)
    found = [between(t, chosen, *pair) for pair in pairs]
    return tree.unflatten(sides[0].shape, found)


_BOTH = "both functions of cond are traced, and both would write"


class _Side:
    """One function of a choice: what it gives, and whether it is dear to compute."""

    def __init__(self, t: Tracer, function: Callable[..., Any], operands: Any) -> None:
        self._t = t
        self._call = lambda: function(*operands)
        effects = Effects(t)
        with verb.recorded(t.builder, ()) as body:
            items, self.shape = tree.flatten(self._call())
            self.names = names_of(self.shape, "what cond returns")
            found = leaves(t, items, self.names)
        effects.refuse(_BOTH)
        t.ended.update(body.tensors())
        self.leaves = found
        self.is_dear = any(isinstance(e, (*FOLDING, Loop)) for e in body.exprs)

    def inline(self) -> list[Any]:
        """Write the function down where the trace is."""
        with self._t.builder.perhaps():
            return tree.flatten(self._call())[0]


def between(t: Tracer, pred: Any, yes: Any, no: Any, name: str) -> Any:
    """Return one of two values, which are alike."""
    kind = _require_alike(leaf(t, yes, name).form, leaf(t, no, name).form, name)
    b, chosen = t.builder, t.tensor(pred)
    one, other = t.operand(yes), t.operand(no)
    is_truth = b.promote(one, other) is DType.BOOL
    if is_truth and (chosen is one or chosen is other):  # as ``and`` and ``or`` are
        verb = ops.logical_or if chosen is one else ops.logical_and
        found = t.tensor(t.call(verb, yes, no))
        if kind is bool:
            b.weak[found] = bool
        return t.wrap(found)
    dtype = b.promote(one, other) if kind is None else promote(kind)
    found = ops.where(b, chosen, *(b.convert(x, dtype) for x in (one, other)))
    if kind is not None:
        b.weak[found] = kind
    return t.wrap(found)


def _require_alike(yes: Form, no: Form, name: str) -> Weak | None:
    """Refuse results of a choice that differ; numbers of Python's become others.

    Return the class of Python's whose number it is, whichever is chosen. What NumPy
    compares to, True or False, meets arrays as Python's numbers do.
    """
    alike = yes.dtype is no.dtype or not (yes.weak is None and no.weak is None)
    if yes.ndim != no.ndim or not alike:
        message = (
            "return arrays of one dtype and as many axes from both functions of cond: "
            f"found {yes} and {no} as {name}"
        )
        raise DTypeError(message)
    others = [x for x in (yes, no) if x.weak is None]
    if any(x.is_array or not x.dtype.is_bool for x in others):
        return None
    kind = widest(x.weak for x in (yes, no) if x.weak is not None)
    return None if others and kind is bool else kind


def _run_one(t: Tracer, pred: Any, sides: list[_Side]) -> Any:
    """Run the side that is taken as a loop of one iteration at most."""
    b = t.builder
    first, second = sides
    shape = first.shape
    names = first.names
    begun: list[Any] = []
    for one, other, name in zip(first.leaves, second.leaves, names, strict=True):
        kind = _require_alike(one.form, other.form, name)
        if kind is not None:
            begun.append(kind(0))
            continue
        zero = b.constant(one.form.dtype.numpy.type(0).item(), one.form.dtype)
        held = ops.broadcast_to(b, zero, one.held.shape) if one.held.ndim else zero
        begun.append(t.wrap(b.point("copy", held)))
    never = t.wrap(ops.logical_not(b, t.tensor(pred)))
    for wanted, side in ((pred, first), (never, second)):

        def step(_: list[Any], __: Any, side: _Side = side) -> IterationStep:
            stop = t.wrap(b.constant(False, DType.BOOL))
            return IterationStep([*side.inline(), stop])

        all_names = [*names, "the condition"]
        found, _ = run_loop(t, [*begun, wanted], all_names, step, None, flag=len(begun))
        begun = found[:-1]
    return tree.unflatten(shape, begun)
