# SPDX-License-Identifier: Apache-2.0
"""Branches of plain Python that hang on arrays: both sides run while tracing."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
import nfuser.compiler.ops.loops.loop as verb
import nfuser.compiler.trace.call.tree as tree
import nfuser.compiler.trace.loops.forms as forms
import nfuser.compiler.trace.standins.host_numbers as known
from nfuser.compiler.ir.expr import FOLDING, Loop
from nfuser.compiler.trace.loops.effects.lasting import Lasting
from nfuser.compiler.trace.loops.python.complaints import (
    MOST_NESTED,
    RECURSION,
    let_through,
    raising,
)
from nfuser.compiler.trace.loops.python.shared import mark_shared
from nfuser.compiler.trace.loops.python.sites import BodySite
from nfuser.compiler.trace.loops.python.state import (
    UNBOUND,
    State,
    Variables,
    is_array,
    is_same,
)
from nfuser.compiler.trace.loops.python.turns import Turning
from nfuser.compiler.trace.loops.rewriting.jumps import PREFIX
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import NfuserError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import CodeType

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.trace.tracer import Tracer


class Choices(Lasting):
    """What statements that choose call, and where on the way through a trace is."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__(tracer)
        self._site = BodySite()
        self._choices = 0  # one within the other

    def site(self, code: CodeType) -> BodySite:
        """Return the site of a body that the trace comes to."""
        return self._site.inner(code)

    @contextmanager
    def inside(self, site: BodySite) -> Generator[None]:
        """Let what runs meanwhile be one run of a body."""
        around, self._site = self._site, site
        site.begin()
        try:
            yield
        finally:
            self._site = around

    def is_unknown(self, x: Any) -> bool:
        """Tell whether ``x`` is one truth value that a call computes."""
        if not isinstance(x, Standin) or not hasattr(type(x), "_remake"):
            return False
        held = self._t.operand(x)
        return not held.ndim and known.host_number(self._t.builder, held) is None

    def truth(self, x: Any) -> Any:
        """Return ``x`` as a truth value of the trace."""
        t = self._t
        return t.wrap(ops.truth(t.builder, t.tensor(x)))

    def pick(self, test: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """Return ``then() if test else other()``."""
        if not self.is_unknown(test):
            return then() if test else other()
        return self._sides(test, (then, other), ())

    def tail(self, test: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """Return what one of two ends of a function returns."""
        return self.pick(test, then, other)

    def choose(
        self,
        test: Any,
        then: Callable[[], Any],
        other: Callable[[], Any],
        names: tuple[str, ...],
    ) -> None:
        """Run one of two branches; ``names`` are the variables that are read later."""
        if not self.is_unknown(test):
            _ = then() if test else other()
            return
        self._sides(test, (then, other), names)

    def _sides(self, test: Any, sides: tuple[Any, Any], names: tuple[str, ...]) -> Any:
        """Run both sides of a choice, and choose between what they leave."""
        if self._choices == MOST_NESTED:
            raise TraceError(RECURSION)
        self._choices += 1
        try:
            return self._chosen(test, sides, names)
        except NfuserError:
            raise
        except Exception as error:
            let_through(error)
            raise raising(error) from error
        finally:
            self._choices -= 1

    def _chosen(self, test: Any, sides: tuple[Any, Any], names: tuple[str, ...]) -> Any:
        t, pred = self._t, self.truth(test)
        variables = Variables(*sides)
        before = State(t, variables)
        sites = [self.site(side.__code__) for side in sides]
        if any(map(self._is_dear, sides, sites, (before, before))):
            return _run_one(self, variables, names, pred, sides, sites)
        b = t.builder
        begin, constants = len(b.exprs), dict(b.constants)
        ends: list[tuple[Any, dict[str, Any], dict[int, tuple[Any, Any]]]] = []
        chosen: dict[int, tuple[Any, Any]] = {}  # as each side leaves them
        for side, site in zip(sides, sites, strict=True):
            try:
                with self.perhaps(), self.inside(site):
                    value = side()
                held = {id(x): (x, x._held) for x in before.written()}
                left = {n: variables[n] for n in names}
                ends.append((value, left, held))
                for x in filter(is_array, tree.flatten((value, left))[0]):
                    x._operand()  # which is read here, if it may be read at all
                    chosen.setdefault(id(x), (x, x._chosen_of))
            finally:
                before.restore()
            site.is_dear = _holds_dear(b.exprs[begin:])
            if site.is_dear:  # now, as what was one number before is carried on
                verb.taken_back(b, begin, constants)
                return _run_one(self, variables, names, pred, sides, sites)
        (one, ours, mine), (two, theirs, others) = ends
        for x, _ in chosen.values():
            x._chosen_of = ()
        # First, as a name may hold such an array on one side, and another on the other.
        for key, (x, _) in (mine | others).items():
            held = [side.get(key, (x, x._held))[1] for side in (mine, others)]
            found = ops.where(t.builder, t.tensor(pred), *held)
            self.assign(x, t.wrap(found))
        merged = {n: self._merged(pred, ours[n], theirs[n], n) for n in names}
        found = self._merged(pred, one, two, "what is returned")
        others = {key: [a for a, _ in arrays] for key, (_, arrays) in chosen.items()}
        for name, given in merged.items():
            sides = ours[name], theirs[name]
            variables[name] = mark_shared(t, given, before, sides, others)
        found = mark_shared(t, found, before, (one, two), others)
        for x, arrays in chosen.values():
            x._chosen_of = arrays
        return found

    def assign(self, x: Any, found: Any) -> None:
        """Let an array that was there have other elements."""
        import nfuser.compiler.trace.numpy.movement.writes as writes  # noqa: PLC0415

        writes.write(self._t, x, found, "unsafe")

    def _is_dear(self, side: Callable[[], Any], site: BodySite, before: State) -> bool:
        """Tell whether ``side`` is to run only where it is chosen."""
        if site.is_dear is None:
            b = self._t.builder
            try:
                with self.perhaps(), verb.recorded(b, ()) as body, self.inside(site):
                    side()
            finally:
                before.restore()
            site.is_dear = _holds_dear(body.exprs)
        return site.is_dear

    def _merged(self, pred: Any, yes: Any, no: Any, name: str) -> Any:
        if yes is no or is_same(yes, no):
            return yes
        if yes is UNBOUND or no is UNBOUND:
            # Nobody reads a value that is to be returned and is not there.
            is_ours = name.startswith(PREFIX)
            return (no if yes is UNBOUND else yes) if is_ours else UNBOUND
        (ours, shape), (theirs, other) = tree.flatten(yes), tree.flatten(no)
        if shape != other:
            message = (
                f"bind {name} to values of one structure in both branches: which one "
                f"runs is not known while tracing; found {yes!r} and {no!r}"
            )
            raise TraceError(message)
        pairs = zip(ours, theirs, strict=True)
        found = [
            x if is_same(x, y) else forms.between(self._t, pred, x, y, name)
            for x, y in pairs
        ]
        return tree.unflatten(shape, found)


def _run_one(
    plain: Any,
    variables: Variables,
    names: tuple[str, ...],
    pred: Any,
    sides: tuple[Any, Any],
    sites: list[BodySite],
) -> Any:
    """Run the side of a choice that is taken, as a loop of one turn at most."""
    variables.add(_RESULT)
    never = plain._t.call(ops.logical_not, pred)
    for wanted, side, site in zip((pred, never), sides, sites, strict=True):

        def body(_: Any, side: Callable[[], Any] = side) -> None:
            variables[_RESULT] = side()

        turning = Turning(plain, variables, (*names, _RESULT), site)
        turning.until_settled(body, None, wanted, lambda: False)
    return variables[_RESULT]


_RESULT = "_nf_result"


def _holds_dear(exprs: list[Expr]) -> bool:
    return any(isinstance(e, (*FOLDING, Loop)) for e in exprs)
