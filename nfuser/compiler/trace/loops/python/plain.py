# SPDX-License-Identifier: Apache-2.0
"""Loops and branches of plain Python, as a function that was written anew has them.

Python runs them where it can. A loop of many turns, or of a number of turns that is not
known while tracing, is tried as one expression: its body runs once, and must do nothing
but compute and assign to arrays. A branch that hangs on an array is run on both sides.
"""

# What a traced function holds has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import operator
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.ops.loops.loop as verb
import nfuser.compiler.trace.call.tree as tree
import nfuser.compiler.trace.loops.effects.writers as writers
import nfuser.compiler.trace.loops.forms as forms
import nfuser.compiler.trace.standins.host_numbers as known
from nfuser.compiler.ir.expr import FOLDING, Loop
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.trace.captures.parts import is_users_file
from nfuser.compiler.trace.loops.effects.harmless import is_harmless
from nfuser.compiler.trace.loops.effects.lasting import Lasting
from nfuser.compiler.trace.loops.python.complaints import (
    ASSERTION,
    MOST_NESTED,
    RECURSION,
    name_of,
    raising,
    refused,
    without_source,
)
from nfuser.compiler.trace.loops.python.counted import run_counted
from nfuser.compiler.trace.loops.python.extremes import extreme
from nfuser.compiler.trace.loops.python.items import OpenItems, open_items, opening
from nfuser.compiler.trace.loops.python.ranges import ComputedRange
from nfuser.compiler.trace.loops.python.shared import mark_shared
from nfuser.compiler.trace.loops.python.state import (
    UNBOUND,
    State,
    Variables,
    is_array,
    is_same,
)
from nfuser.compiler.trace.loops.python.tables import length_of
from nfuser.compiler.trace.loops.python.turns import Turning, run_one
from nfuser.compiler.trace.loops.rewriting.jumps import PREFIX
from nfuser.compiler.trace.loops.rewriting.originals import originals
from nfuser.compiler.trace.loops.rewriting.rewritten import RUNTIME, rewritten
from nfuser.compiler.trace.numpy.generators import method_of
from nfuser.compiler.trace.standins.asked import AnewError
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.watch.unrolled import MOST_UNROLLED
from nfuser.errors import NfuserError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nfuser.compiler.trace.tracer import Tracer

_MOST_OTHERS = 300  # of a loop whose body cannot be run once for all


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda x, y: x in y,
    "NotIn": lambda x, y: x not in y,
}


class Plain(Lasting):
    """What the functions of one trace that were written anew call."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__(tracer)
        self._cell = CellType(self)
        self._choices = 0  # one within the other
        self._ufuncs: dict[np.ufunc, Callable[..., Any]] = {}
        self._of_kind: dict[type, Callable[[Any], Any]] = {
            FunctionType: self._function,
            np.ufunc: self._of_ufunc,
        }

    def call(self, function: Any) -> Any:
        """Return what is called in place of ``function``."""
        kind: type = type(function)
        own = self._of_kind.get(kind)
        if own is not None:
            return own(function)
        if kind is type and self._t.makes and id(function) == id(np.ndarray):
            return partial(self._t.handlers["ndarray"], self._t)
        if kind is MethodType and type(function.__func__) is FunctionType:
            return MethodType(self._function(function.__func__), function.__self__)
        if issubclass(kind, Standin):
            return function
        if (inner := getattr(function, "__nfuser_wrapped__", None)) is not None:
            return self.call(inner)
        own = length_of(function) or extreme(function)
        own = own or method_of(self._t, function, self.written)
        if own is not None:
            return own
        if kind is partial and not is_harmless(function.func):
            return partial(
                self.call(function.func), *function.args, **function.keywords
            )
        method = None
        if not isinstance(function, type) and callable(function):
            method = getattr(kind, "__call__", None)  # noqa: B004 (its function)
        if type(method) is FunctionType and is_users_file(method.__code__.co_filename):
            return MethodType(self._function(method), function)
        if (writing := writers.writer(function, self.written)) is not None:
            return writing
        if self._depth and not is_harmless(function):
            raise self._lasting(f"it calls {name_of(function)}")
        return function

    def _of_ufunc(self, function: np.ufunc) -> Callable[..., Any]:
        if function not in self._ufuncs:
            made = writers.into_outputs(function, self.written)
            self._ufuncs[function] = made
        return self._ufuncs[function]

    def _function(self, function: FunctionType) -> Any:
        inner = getattr(function, "__nfuser_wrapped__", None)
        if inner is not None:
            return self.call(inner)
        code = function.__code__
        if code in originals:
            return function
        if not is_users_file(code.co_filename):
            if (writing := writers.writer(function, self.written)) is not None:
                return writing
            if self._depth and not is_harmless(function):
                raise self._lasting(f"it calls {name_of(function)}")
            return function
        made = rewritten(code)
        if made is None:
            if self._depth:
                what = f"it calls {name_of(function)}, whose source is not known"
                raise self._lasting(what)
            if self._t.may_write(code):
                raise without_source(function)
            return function
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        cells[RUNTIME] = self._cell
        closure = tuple(cells[name] for name in made.co_freevars)
        found = FunctionType(
            made, function.__globals__, function.__name__, None, closure
        )
        found.__defaults__ = function.__defaults__
        found.__kwdefaults__ = function.__kwdefaults__
        return found

    def ranging(self, function: Any) -> Any:
        """Return what makes a range whose bounds may be open."""
        return opening(self._t, function) or self.call(function)

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

    def not_(self, x: Any) -> Any:
        """Return ``not x``."""
        if not self.is_unknown(x):
            return not x
        return self._t.call(ops.logical_not, self.truth(x))

    def both(self, x: Any, later: Callable[[], Any]) -> Any:
        """Return ``x and later()``."""
        if not self.is_unknown(x):
            return x and later()
        return self._of_two(x, later, ops.logical_and, wanted=True)

    def either(self, x: Any, later: Callable[[], Any]) -> Any:
        """Return ``x or later()``."""
        if not self.is_unknown(x):
            return x or later()
        return self._of_two(x, later, ops.logical_or, wanted=False)

    def chain(self, names: tuple[str, ...], x: Any, *later: Callable[[], Any]) -> Any:
        """Return a chain of comparisons, as ``0 < x < n``."""
        found: Any = True
        for name, right in zip(names, later, strict=True):
            y = right()
            one = _COMPARISONS[name](x, y)
            found = one if found is True else self.both(found, lambda one=one: one)
            if not self.is_unknown(found) and not found:
                return found
            x = y
        return found

    def _of_two(
        self, x: Any, later: Callable[[], Any], combine: Any, *, wanted: bool
    ) -> Any:
        with self.perhaps():
            y = later()
        if not isinstance(y, Standin):
            return self.truth(x) if bool(y) is wanted else bool(y)
        return self._t.call(combine, self.truth(x), self.truth(y))

    def pick(self, test: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """Return ``then() if test else other()``."""
        if not self.is_unknown(test):
            return then() if test else other()
        return self._sides(test, (then, other), ())

    def asserted(self, x: Any) -> Any:
        """Return what is asserted, if it is known."""
        if self.is_unknown(x):
            raise TraceError(ASSERTION)
        return x

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
            raise raising(error) from error
        finally:
            self._choices -= 1

    def _chosen(self, test: Any, sides: tuple[Any, Any], names: tuple[str, ...]) -> Any:
        t, pred = self._t, self.truth(test)
        variables = Variables(*sides)
        before = State(t, variables)
        if any(self._is_dear(side, before) for side in sides):
            return run_one(self, variables, names, pred, sides)
        ends: list[tuple[Any, dict[str, Any], dict[int, tuple[Any, Any]]]] = []
        chosen: dict[int, tuple[Any, Any]] = {}  # as each side leaves them
        for side in sides:
            try:
                with self.perhaps():
                    value = side()
                held = {id(x): (x, x._held) for x in before.written()}
                left = {n: variables[n] for n in names}
                ends.append((value, left, held))
                for x in filter(is_array, tree.flatten((value, left))[0]):
                    x._operand()  # which is read here, if it may be read at all
                    chosen.setdefault(id(x), (x, x._chosen_of))
            finally:
                before.restore()
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

    def _is_dear(self, side: Callable[[], Any], before: State) -> bool:
        b = self._t.builder
        try:
            with self.perhaps(), verb.recorded(b, ()) as body:
                side()
        finally:
            before.restore()
        return any(isinstance(e, (*FOLDING, Loop)) for e in body.exprs)

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

    def loop(
        self,
        turns: Iterable[Any],
        body: Callable[[Any], None],
        names: tuple[str, ...],
        stop: str | None,
    ) -> None:
        """Run ``for item in turns: body(item)`` until ``stop`` is true."""
        variables = Variables(body)
        if isinstance(turns, ComputedRange):
            run_counted(self, turns, body, names, stop)
            return
        found = open_items(self._t, turns)
        if found is None:
            self._each(turns, body, variables, stop)
            return
        is_short = found.length is not None and found.length <= MOST_UNROLLED
        if is_short and not (stop and self._stops_unknown(body, variables, stop)):
            self._each(found, body, variables, stop)
            return
        if not self._t.ask(less(0, found.trips), usual=1):
            return
        turning = Turning(self, variables, names)
        before = State(self._t, variables)
        try:
            turning.run(lambda turn: body(found.item(turn)), found.trips, stop)
        except AnewError:
            raise
        except Exception as error:
            before.restore()
            many = (self._t.builder.today(found.trips) or 0) > _MOST_OTHERS
            is_long = many and (found.length is None or isinstance(found, OpenItems))
            if is_long or (self._depth and not isinstance(found, OpenItems)):
                raise refused(error) from error
            self._each(found, body, variables, stop)

    def loop_while(
        self,
        test: Callable[[], Any],
        body: Callable[[], None],
        names: tuple[str, ...],
        stop: str | None,
    ) -> None:
        """Run ``while test(): body()`` until ``stop`` is true."""
        variables = Variables(test, body)
        count = 0
        while True:
            goes_on = test()
            is_open = self.is_unknown(goes_on)
            if not is_open and not goes_on:
                return
            is_open = is_open or (
                not count
                and stop is not None
                and self._stops_unknown(lambda _: body(), variables, stop)
            )
            if is_open or count >= MOST_UNROLLED:
                before = State(self._t, variables)
                try:
                    turning = Turning(self, variables, names)
                    turning.run(lambda _: body(), None, stop, goes_on, test)
                except AnewError:
                    raise
                except Exception as error:
                    before.restore()
                    if is_open or self._depth or count >= _MOST_OTHERS:
                        raise refused(error) from error
                else:
                    return
            body()
            count += 1
            if stop is not None and variables[stop]:
                return

    def _each(
        self,
        turns: Iterable[Any],
        body: Callable[[Any], None],
        variables: Variables,
        stop: str | None,
    ) -> None:
        for item in turns:
            body(item)
            if stop is not None and variables[stop]:
                return

    def _stops_unknown(
        self, body: Callable[[Any], None], variables: Variables, stop: str
    ) -> bool:
        """Tell whether it is not known after a first turn if there is a second."""
        before = State(self._t, variables)
        try:
            with self.perhaps(), verb.recorded(self._t.builder, ()) as opened:
                self._t.builder.weak[opened.turn] = int
                body(self._t.wrap(opened.turn))
                return self.is_unknown(variables[stop])
        except AnewError:
            raise
        except Exception:  # noqa: BLE001 (it comes again where Python runs the loop)
            return False
        finally:
            before.restore()
