# SPDX-License-Identifier: Apache-2.0
"""Run the body of a plain loop once, and find out what it carries on."""

# What a traced function holds has no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.ir.scalars.functions import equal
from nfuser.compiler.trace.loops.carried import leaf
from nfuser.compiler.trace.loops.python.complaints import labels_of, let_through
from nfuser.compiler.trace.loops.python.sites import (
    BodySite,
    Settled,
    arrays_at,
    places,
    root_of,
)
from nfuser.compiler.trace.loops.python.state import (
    UNBOUND,
    State,
    Variables,
    is_array,
    is_same,
)
from nfuser.compiler.trace.loops.record import IterationStep, run_loop
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import ShapeError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.trace.loops.record import FormChange
    from nfuser.compiler.trace.tracer import Tracer

_MOST_ATTEMPTS = 40


class _AgainError(Exception):
    """A body carries more than it was given."""


class _OtherError(Exception):
    """What was found out about a body before does not hold now."""


class Turning:
    """One loop; ``names`` are the variables that it may carry on.

    It begins with what was found out at its ``site`` before, if that holds once more.
    """

    def __init__(
        self, plain: Any, variables: Variables, names: tuple[str, ...], site: BodySite
    ) -> None:
        self._plain = plain
        self._t: Tracer = plain._t
        self._variables = variables
        self._all = [n for n in names if n in variables]
        self._site = site
        self._begin()
        if site.settled is not None:
            self._begin_with(site.settled)

    def _begin(self) -> None:
        variables = self._variables
        self._names = list(self._all)
        self._carried = [n for n in self._names if _can_begin(variables[n])]
        self._starts: dict[str, _Zeros] = {}  # of variables that are unbound before
        self._roots: list[Any] = []  # arrays that the body writes into
        self._shared: set[str] = set()
        self._chosen: set[str] = set()  # a choice may have left what was there
        self._may_be: dict[str, dict[int, Any]] = {}  # arrays that turns bind names to
        self._known: Settled | None = None  # what is to be found once more

    def _begin_with(self, found: Settled) -> None:
        held = self._variables.all()
        self._known = found
        self._names = [n for n in self._names if n not in found.left]
        unbound = {n for n in found.starts if held.get(n) is UNBOUND}
        self._starts = {n: found.starts[n] for n in unbound}
        self._carried = [
            n for n in found.carried if n in self._carried or n in unbound
        ] + [n for n in self._carried if n not in {*found.carried, *found.left}]
        self._roots = arrays_at(found.roots, held)
        for name, arrays in found.may_be.items():
            self._may_be[name] = {id(x): x for x in arrays_at(arrays, held)}

    def _known_forms(self, held: list[Any]) -> dict[int, FormChange]:
        """Return what became of the forms of values the time before."""
        found: dict[int, FormChange] = {}
        at = 0
        for name, value in zip(self._carried, held, strict=True):
            count = len(tree.flatten(value)[0])
            forms = () if self._known is None else self._known.forms.get(name, ())
            if len(forms) == count:
                found |= enumerate(forms, at)
            at += count
        return found

    def _require_known(
        self, before: State, own: dict[str, Any], begun: list[Any]
    ) -> None:
        """Begin as if nothing was known if some of it is not found once more."""
        if self._known is None:
            return
        now = self._variables
        is_found = all(now[n] is before.names[n] for n in self._known.left)
        is_found &= all(
            now[n] is not own[n] for n, start in self._starts.items() if start.made
        )
        pairs = zip(self._roots, begun, strict=False)
        is_found &= all(root._held is not held for root, held in pairs)
        if not is_found:
            raise _OtherError

    def _settled(self, before: State, forms: dict[int, FormChange]) -> Settled:
        """Return what was found out."""
        known: dict[str, list[FormChange]] = {}
        at = 0
        for name in self._carried:
            start = self._starts.get(name)
            flat = tree.flatten(before.names[name])[0] if start is None else start.made
            count = len(flat)
            known[name] = [forms[k] for k in range(at, at + count)]
            at += count
        return Settled(
            tuple(self._carried),
            frozenset(self._all) - frozenset(self._names),
            dict(self._starts),
            places(self._roots, before.names),
            {n: places(x.values(), before.names) for n, x in self._may_be.items()},
            known,
        )

    def run(
        self,
        body: Callable[[Any], Any],
        trips: Scalar | None,
        stop: str | None,
        begun: Any = True,
        test: Callable[[], Any] | None = None,
    ) -> None:
        """Write the loop down; ``test`` says after each turn whether there is more."""
        plain = self._plain
        has_flag = stop is not None or test is not None

        def goes_on() -> Any:
            more = True if stop is None else plain.not_(self._variables[stop])
            return more if test is None else plain.both(more, test)

        flag = plain.truth(begun) if has_flag else None
        self.until_settled(body, trips, flag, goes_on)

    def until_settled(
        self,
        body: Callable[[Any], Any],
        trips: Scalar | None,
        flag: Any,
        goes_on: Callable[[], Any],
    ) -> None:
        """Run the body until all that it carries is known, and write the loop down."""
        for _ in range(_MOST_ATTEMPTS):
            try:
                self._recorded(body, trips, flag, goes_on)
            except _AgainError:
                continue
            except Exception as error:
                let_through(error)
                if self._known is None:
                    raise
                self._begin()
                continue
            return
        message = "write the loop with nfuser.lax: what it carries changes again"
        raise TraceError(message)

    def _recorded(
        self,
        body: Callable[[Any], Any],
        trips: Scalar | None,
        flag: Any,
        goes_on: Callable[[], Any],
    ) -> None:
        variables, t = self._variables, self._t
        before = State(t, variables)
        held = [
            self._starts[n].values(t) if n in self._starts else variables[n]
            for n in self._carried
        ]
        flat, shape = tree.flatten(held)
        forms = self._known_forms(held)
        items = [*flat, *self._roots, *([] if flag is None else [flag])]
        slots = {
            len(flat) + k: r._slot
            for k, r in enumerate(self._roots)
            if r._slot is not None
        }
        labels = labels_of(self._carried, held)
        labels += ["a value"] * (len(items) - len(labels))

        def step(given: list[Any], turn: Any) -> IterationStep:
            try:
                return self._step(
                    given, turn, shape, len(flat), before, body, goes_on, flag
                )
            finally:
                before.restore()

        try:
            with self._plain.once():
                found, _ = run_loop(
                    t,
                    items,
                    labels,
                    step,
                    trips,
                    flag=None if flag is None else len(items) - 1,
                    looks=False,
                    slots=slots,
                    known=forms,
                )
        finally:
            before.restore()
        self._site.settled = self._settled(before, forms)
        values = tree.unflatten(shape, found[: len(flat)])
        for name, value in zip(self._carried, values, strict=False):
            variables[name] = value
        for root, value in zip(self._roots, found[len(flat) :], strict=False):
            self._plain.assign(root, value)
        t.builder.look()
        for name, value in zip(self._carried, values, strict=False):
            is_shared = trips is None or name in self._shared
            if is_shared or name in self._chosen:
                firsts = tree.flatten(before.names.get(name))[0]
                _mark(value, [*firsts, *self._may_be.get(name, {}).values()])

    def _step(
        self,
        given: list[Any],
        turn: Any,
        shape: Any,
        count: int,
        before: State,
        body: Callable[[Any], Any],
        goes_on: Callable[[], Any],
        flag: Any,
    ) -> IterationStep:
        variables = self._variables
        values = tree.unflatten(shape, given[:count])
        for name, value in zip(self._carried, values, strict=False):
            variables[name] = value
        heads = [(x, x._held) for x in given if hasattr(x, "_held")]
        begun = [x._operand() for x in given[count : count + len(self._roots)]]
        for root, begins in zip(self._roots, begun, strict=True):
            root._held, root._is_own = begins, False
        own = dict(zip(self._carried, values, strict=False))
        for name, arrays in self._may_be.items():  # since the turn before
            _mark(own.get(name), list(arrays.values()))
        with self._plain.inside(self._site):
            body(turn)
            more = goes_on() if flag is not None else None
        self._look(before, heads, own)
        self._require_known(before, own, begun)
        ends = [variables[n] for n in self._carried]
        after, found = tree.flatten(ends)
        if found != shape:
            message = (
                "bind what a loop carries to values of one structure: expected "
                f"{values!r}, found {ends!r} after one turn"
            )
            raise TraceError(message)
        self._require_sizes(given[:count], after)
        self._find_shared(before, own)
        left = map(self._as_left, [*after, *self._roots])
        return IterationStep(
            [*left, *([] if flag is None else [self._plain.truth(more)])]
        )

    def _as_left(self, x: Any) -> Any:
        """Return what the body has left in an array: it is set back after the turn."""
        if all(root_of(x) is not root for root in self._roots):
            return x
        left = self._t.wrap(x._operand())
        left._is_array = x._is_array
        return left

    def _look(
        self, before: State, heads: list[tuple[Any, Any]], own: dict[str, Any]
    ) -> None:
        """Carry on what turned out to change; run the body again then.

        ``own`` is what each variable was when the turn began.
        """
        again = self._refuse_mixed(before, heads, own)
        for name in self._names:
            now, was = self._variables[name], before.names[name]
            if name in self._carried:
                if now is UNBOUND:
                    self._carried.remove(name)
                    again = True
            elif not (now is was or now is UNBOUND or is_same(now, was)):
                self._carried.append(name)
                if was is UNBOUND:
                    self._starts[name] = _Zeros(self._t, now)
                again = True
        for root in before.written():
            if all(root is not r for r in self._roots):
                self._roots.append(root)
                again = True
        if again:
            raise _AgainError

    def _refuse_mixed(
        self, before: State, heads: list[tuple[Any, Any]], own: dict[str, Any]
    ) -> bool:
        """Leave a variable alone whose array is written, and never bound anew.

        One that is written and bound anew may be another name's array, too.
        """
        written = [x for x, held in heads if x._held is not held and not x._is_number]
        for name in list(self._carried):
            value = self._variables[name]
            is_left = value is own.get(name) and name not in self._starts
            if is_left and any(value is x for x in written):
                self._carried.remove(name)
                self._names.remove(name)
                return True
        firsts = [before.names[n] for n in self._carried if n not in self._starts]
        roots = [root_of(x) for first in firsts for x in tree.flatten(first)[0]]
        if written or any(r is x for r in roots for x in self._roots):
            message = (
                "write y = x.copy() before the loop, and use one name only for what "
                "its body assigns to: an array that is both assigned to and bound anew "
                "may be another name's array, too"
            )
            raise TraceError(message)
        return False

    def _require_sizes(self, given: list[Any], after: list[Any]) -> None:
        """Refuse an array that is of another size after a turn."""
        t = self._t
        for one, other in zip(given, after, strict=True):
            sizes = [t.tensor(x).shape for x in (one, other)]
            for a, b in zip(*sizes, strict=False):
                if a is not b and not t.ask(equal(a, b), usual=1):
                    message = (
                        "start with an array of the size that the body gives it, or "
                        "write nfuser.unroll(range(n)): what a loop carries keeps its "
                        f"sizes, expected {t.builder.today(a)}, found "
                        f"{t.builder.today(b)} after one turn"
                    )
                    raise ShapeError(message)

    def _find_shared(self, before: State, given: dict[str, Any]) -> None:
        """Note variables whose array is, after a turn, not theirs alone."""
        seen: dict[int, str] = {}
        own = {id(x): n for n, value in given.items() for x in tree.flatten(value)[0]}
        bound: dict[str, dict[int, Any]] = {}  # what was there, by who has it
        for name in self._carried:
            for x in tree.flatten(self._variables[name])[0]:
                if not hasattr(type(x), "_remake"):
                    continue
                is_fresh = before.is_own(x) and id(x) not in own
                if any(id(a) in own or not before.is_own(a) for a, _ in x._chosen_of):
                    self._chosen.add(name)
                if not is_fresh or id(x) in seen:
                    self._shared |= {name, seen.get(id(x), name)}
                seen[id(x)] = name
                for root in map(root_of, (x, *(a for a, _ in x._choices))):
                    if id(root) in own or not before.is_own(root):
                        bound.setdefault(name, {})[id(root)] = root
        self._find_bound(before, bound, own)

    def _find_bound(
        self, before: State, bound: dict[str, dict[int, Any]], own: dict[int, str]
    ) -> None:
        """Note which arrays variables may be after some turns, by way of others.

        The body runs again if it writes into arrays: what one reads may be another.
        """
        found = {name: dict(self._may_be.get(name, {})) for name in bound}
        for _ in bound:
            for name, arrays in bound.items():
                for key, root in arrays.items():
                    if key not in own:
                        found[name][key] = root
                        continue
                    firsts = tree.flatten(before.names[own[key]])[0]
                    firsts = (root_of(x) for x in firsts if isinstance(x, Standin))
                    found[name] |= {id(x): x for x in firsts}
                    found[name] |= found.get(own[key], {})
        grown = {n: arrays for n, arrays in found.items() if arrays}
        is_more = any(
            arrays.keys() - self._may_be.get(n, {}).keys()
            for n, arrays in grown.items()
        )
        self._may_be |= grown
        if is_more and self._roots:
            raise _AgainError


class _Zeros:
    """What a variable begins with that nobody reads before it is bound.

    Its dtype and its sizes are those that the body gives it.
    """

    def __init__(self, t: Tracer, value: Any) -> None:
        flat, self.shape = tree.flatten(value)
        found = [leaf(t, x, "a value") for x in flat]
        self.made = [(one.form, one.held.shape) for one in found]

    def values(self, t: Tracer) -> Any:
        """Return zeros, written down where the trace is."""
        b = t.builder
        found: list[Any] = []
        for form, sizes in self.made:
            if form.weak is not None:
                found.append(form.weak(0))
                continue
            zero = b.constant(form.dtype.numpy.type(0).item(), form.dtype)
            held = ops.broadcast_to(b, zero, sizes) if sizes else zero
            one = t.wrap(b.point("copy", held))
            one._is_array = form.is_array
            found.append(one)
        return tree.unflatten(self.shape, found)


def _can_begin(value: Any) -> bool:
    """Tell whether a variable holds what a loop can carry."""
    if value is UNBOUND:
        return False
    for x in tree.flatten(value)[0]:
        if not isinstance(x, (Standin, bool, int, float, complex)):
            return False
    return True


def _mark(value: Any, others: list[Any]) -> None:
    """Mark arrays that may be other names' arrays, too, as that of before the loop."""
    for one in filter(is_array, tree.flatten(value)[0]):
        one._choose(filter(is_array, others))
