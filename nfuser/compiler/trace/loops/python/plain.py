# SPDX-License-Identifier: Apache-2.0
"""Loops and branches of plain Python, as a function that was written anew has them.

Python runs them where it can. A loop of many turns, or of a number of turns that is not
known while tracing, is tried as one expression: its body runs once, and must do nothing
but compute and assign to arrays. A branch that hangs on an array is run on both sides.
"""

# What a traced function holds has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import operator
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.ops.loops.loop as verb
import nfuser.compiler.trace.loops.effects.writers as writers
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.trace.captures.parts import is_users_file
from nfuser.compiler.trace.loops.effects.harmless import is_harmless
from nfuser.compiler.trace.loops.python.choices import Choices
from nfuser.compiler.trace.loops.python.complaints import (
    ASSERTION,
    let_through,
    name_of,
    refused,
    unequal,
    without_source,
)
from nfuser.compiler.trace.loops.python.counted import run_counted
from nfuser.compiler.trace.loops.python.items import OpenItems, open_items, opening
from nfuser.compiler.trace.loops.python.numbers import of_numbers
from nfuser.compiler.trace.loops.python.ranges import ComputedRange
from nfuser.compiler.trace.loops.python.state import (
    State,
    Variables,
)
from nfuser.compiler.trace.loops.python.tables import fold_of, length_of
from nfuser.compiler.trace.loops.python.turns import Turning
from nfuser.compiler.trace.loops.rewriting.originals import originals
from nfuser.compiler.trace.loops.rewriting.rewritten import RUNTIME, rewritten
from nfuser.compiler.trace.numpy.dispatch.protocols import OF_NUMPY
from nfuser.compiler.trace.numpy.generators import method_of
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.watch.unrolled import MOST_UNROLLED
from nfuser.errors import DTypeError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nfuser.compiler.trace.loops.python.sites import BodySite
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


class Plain(Choices):
    """What the functions of one trace that were written anew call."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__(tracer)
        self._cell = CellType(self)
        self._ufuncs: dict[np.ufunc, Callable[..., Any]] = {}
        self._numpys: dict[Callable[..., Any], Callable[..., Any]] = {}
        self._of_kind: dict[type, Callable[[Any], Any]] = {
            FunctionType: self._function,
            np.ufunc: self._of_ufunc,
            OF_NUMPY: self._of_numpy,
        }

    def call(self, function: Any) -> Any:
        """Return what is called in place of ``function``."""
        kind: type = type(function)
        if kind in self._of_kind:  # asked so, as what watches the trace sees calls
            return self._of_kind[kind](function)
        if kind is type and self._t.makes and id(function) == id(np.ndarray):
            return partial(self._t.handlers["ndarray"], self._t)
        if kind is MethodType and type(function.__func__) is FunctionType:
            return MethodType(self._function(function.__func__), function.__self__)
        if issubclass(kind, Standin):
            return function
        if (inner := getattr(function, "__nfuser_wrapped__", None)) is not None:
            return self.call(inner)
        own = length_of(function) or of_numbers(self, function)
        own = own or fold_of(self._t, function)
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

    def _of_numpy(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if function not in self._numpys:
            own = writers.writer(function, self.written)
            self._numpys[function] = function if own is None else own
        found = self._numpys[function]
        if self._depth and found is function and not is_harmless(function):
            raise self._lasting(f"it calls {name_of(function)}")
        return found

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

    def python_truth(self, x: Any) -> Any:
        """Return the truth of ``x`` as one of Python's."""
        b = self._t.builder
        found = b.point("copy", ops.truth(b, self._t.tensor(x)))
        b.weak[found] = bool
        return self._t.wrap(found)

    def not_(self, x: Any) -> Any:
        """Return ``not x``."""
        if not self.is_unknown(x):
            return not x
        b = self._t.builder
        found = ops.logical_not(b, self._t.tensor(x))
        b.weak[found] = bool  # one of Python's, of whatever it is the opposite
        return self._t.wrap(found)

    def last(self, x: Any, later: Callable[[], Any]) -> Any:
        """Return ``x and later()``."""
        return self._one_of(x, later, lambda: x)

    def first(self, x: Any, later: Callable[[], Any]) -> Any:
        """Return ``x or later()``."""
        return self._one_of(x, lambda: x, later)

    def _one_of(self, x: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """Return one of two values, in a dtype that holds both if theirs differ."""
        if not self.is_unknown(x):
            return then() if x else other()
        try:
            return self.pick(x, then, other)
        except DTypeError:
            with self.perhaps():
                sides = then(), other()
            return self._t.call(ops.where, self.truth(x), *sides)

    def both(self, x: Any, later: Callable[[], Any]) -> Any:
        """Return the truth of ``x and later()``."""
        if not self.is_unknown(x):
            return x and later()
        return self._of_two(x, later, ops.logical_and, wanted=True)

    def either(self, x: Any, later: Callable[[], Any]) -> Any:
        """Return the truth of ``x or later()``."""
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
        both, b = (self.truth(x), self.truth(y)), self._t.builder
        found = self._t.tensor(self._t.call(combine, *both))
        if all(b.weak.get(self._t.tensor(side)) is bool for side in both):
            b.weak[found] = bool
        return self._t.wrap(found)

    def asserted(self, x: Any) -> Any:
        """Return what is asserted, if it is known."""
        if self.is_unknown(x):
            raise TraceError(ASSERTION)
        return x

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
        site = self.site(body.__code__)
        is_short = found.length is not None and found.length <= MOST_UNROLLED
        stops = is_short and stop and self._stops_unknown(body, variables, stop, site)
        if is_short and not stops:
            self._each(found, body, variables, stop)
            return
        complaint = getattr(found, "complaint", None)
        if complaint is not None and stop is not None:
            raise unequal(complaint)  # which a turn that is the last may come before
        if not self._t.ask(less(0, found.trips), usual=1):
            _raise_if_any(complaint)
            return
        turning = Turning(self, variables, names, site)
        before = State(self._t, variables)
        try:
            turning.run(lambda turn: body(found.item(turn)), found.trips, stop)
        except Exception as error:
            before.restore()
            let_through(error)
            many = (self._t.builder.today(found.trips) or 0) > _MOST_OTHERS
            is_long = many and (found.length is None or isinstance(found, OpenItems))
            if is_long or (self._depth and not isinstance(found, OpenItems)):
                raise refused(error) from error
            self._each(found, body, variables, stop)
            return
        _raise_if_any(complaint)

    def loop_while(
        self,
        test: Callable[[], Any],
        body: Callable[[], None],
        names: tuple[str, ...],
        stop: str | None,
    ) -> None:
        """Run ``while test(): body()`` until ``stop`` is true."""
        variables = Variables(test, body)
        site, count = self.site(body.__code__), 0
        while True:
            goes_on = test()
            is_open = self.is_unknown(goes_on)
            if not is_open and not goes_on:
                return
            is_open = is_open or (
                not count
                and stop is not None
                and self._stops_unknown(lambda _: body(), variables, stop, site)
            )
            if is_open or count >= MOST_UNROLLED:
                before = State(self._t, variables)
                try:
                    turning = Turning(self, variables, names, site)
                    turning.run(lambda _: body(), None, stop, goes_on, test)
                except Exception as error:
                    before.restore()
                    let_through(error)
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
        self,
        body: Callable[[Any], None],
        variables: Variables,
        stop: str,
        site: BodySite,
    ) -> bool:
        """Tell whether it is not known after a first turn if there is a second."""
        before = State(self._t, variables)
        try:
            b = self._t.builder
            with self.perhaps(), verb.recorded(b, ()) as opened, self.inside(site):
                b.weak[opened.turn] = int
                body(self._t.wrap(opened.turn))
                return self.is_unknown(variables[stop])
        except Exception as error:  # noqa: BLE001 (it comes again where Python runs it)
            let_through(error)
            return False
        finally:
            before.restore()


def _raise_if_any(complaint: Exception | None) -> None:
    if complaint is not None:
        raise complaint
