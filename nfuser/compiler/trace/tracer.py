# SPDX-License-Identifier: Apache-2.0
"""The state of one trace, and the way from stand-ins to verbs and back."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
import nfuser.compiler.trace.python_numbers as python_numbers
import nfuser.compiler.trace.standins.asked as asked
import nfuser.compiler.trace.standins.host_numbers as known
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars.scalar import Const, Scalar
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.ops.python_integers import look_at_product
from nfuser.compiler.trace.call.call import Guard, ValueGuard
from nfuser.compiler.trace.source_line import current_line
from nfuser.compiler.trace.standins.arithmetic_guards import OutcomeGuard, outcome_guard
from nfuser.compiler.trace.standins.containers import array_in
from nfuser.compiler.trace.standins.dialect import NUMPY
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.watch.unrolled import TurnCounts
from nfuser.errors import ArgumentError, TraceError

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable, Generator, Mapping

    from nfuser.compiler.ops import Builder
    from nfuser.compiler.trace.standins.host_numbers import HostNumber

VARIABLE: ContextVar[Tracer | None] = ContextVar("nfuser_tracer", default=None)


def current_tracer() -> Tracer | None:
    """Return the trace that is running in this thread, if any."""
    return VARIABLE.get()


class Tracer:
    """One run of a user's function over stand-ins.

    ``handlers`` maps names of NumPy functions to what they do to stand-ins; ``wrap``
    makes the stand-in of a tensor; ``capture`` makes an input of a foreign array,
    ``vary`` a variable of that, and ``list_items`` an array of a list. ``made`` lists
    the stand-ins of arrays; ``converts`` says that NumPy's conversions take them,
    ``makes`` that its functions which make arrays give them, ``compares`` that arrays
    from outside may have gone into whatever else is an array. ``dialect`` is what
    stand-ins speak now, ``array_class`` what they say they are; ``note`` is told of
    what the trace depends on. ``outside`` are arrays that are assigned to and are no
    arguments, and ``stand_for`` what stands for one; ``owner`` is the captured array
    whose memory one shares.
    """

    def __init__(
        self,
        builder: Builder,
        values: Mapping[int, Any],
        handlers: Mapping[str, Callable[..., Any]],
        wrap: Callable[..., Any],
    ) -> None:
        self.builder = builder
        self.values = values
        self.handlers = handlers
        self._wrap = wrap
        self.capture: Callable[[Any], TensorView | None] = lambda _: None
        self.list_items: Callable[[Any], TensorView] = self.tensor
        self.meet_number: Callable[[Any], None] = lambda _: None
        self.draw: Callable[[Any], Any] = _ended
        self.tokens: dict[int, TensorView] = {}  # of NumPy's generators, by slot
        self.captured: dict[int, TensorView] = {}
        self.vary: Callable[[Any, TensorView], TensorView] = lambda _, held: held
        self.names: dict[TensorView, str] = {}  # that checkpoint_name gave
        self.told: dict[TensorView, bool] = {}  # whether checkpoint keeps what it made
        self.runs = 0  # those under way of functions that are differentiated
        self.tables: set[TensorView] = set()
        today: Any = builder.questions.today  # one dictionary, be it empty by now
        self.today: dict[Scalar, int] = {} if today is None else today
        self.namespace: Any = None
        self.converts = self.makes = self.makes_ranges = self.compares = False
        self.opens = False  # float(x) and its like, of what calls compute
        self.may_open = False  # one that was asked for, whoever caught the refusal
        self.plain: Any = None  # what functions call that were written anew
        self.dialect = self.home = NUMPY
        self.array_class: type = np.ndarray
        self.device: Any = "cpu"
        self.note: Callable[[Any, Any], None] = lambda _, __: None
        self.outside: frozenset[int] = frozenset()  # arrays, by identity
        self.assigned: dict[int, Any] = {}  # their stand-ins by slot
        self.owner: Callable[[Any], Any] = lambda _: None
        self.stand_for: Callable[[Any], Any] = lambda item: item
        self.may_write: Callable[[Any], bool] = lambda _: False
        self.holds: Callable[[Any], bool] = lambda _: False
        self.turns = TurnCounts(builder.name)
        self.value_guards: dict[int, ValueGuard] = {}
        self.outcome_guards: dict[object, OutcomeGuard] = {}
        self.made: list[weakref.ref[Standin]] = []
        self.ended: set[TensorView] = set()  # what bodies of loops, or vmap, computed
        self.roots: list[tuple[Any, TensorView]] = []  # arguments, as they were passed
        self._has_ended = False

    @contextmanager
    def running(self) -> Generator[None]:
        """Make this the current trace."""
        before = VARIABLE.get()
        try:
            VARIABLE.set(self)
            yield
        finally:
            VARIABLE.set(before)
            self._has_ended = True
            # They hold what the function held.
            self.capture, self.meet_number, self.draw = _ended, _ended, _ended
            self.note = lambda _, __: None
            self.owner, self.stand_for = lambda _: None, lambda item: item
            self.may_write = lambda _: False
            self.roots.clear()
            self.assigned.clear()
            self.builder.customs.clear()
            self.vary = lambda _, held: held

    def as_called(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what is called in place of ``function``: it may be written anew."""
        return function if self.plain is None else self.plain.call(function)

    @property
    def is_looping(self) -> bool:
        """Whether this is within the body of a plain loop, or in a branch."""
        return self.plain is not None and self.plain.is_once

    def operand(self, item: Any) -> Any:
        """Return what verbs take for ``item``."""
        if isinstance(item, Standin):
            is_ours = item._tracer is self  # pyright: ignore[reportPrivateUsage]
            if not is_ours or self._has_ended:
                message = "a traced array outlived its trace; return it instead"
                raise TraceError(message)
            found = item._operand()  # pyright: ignore[reportPrivateUsage]
            if self.ended and found in self.ended:
                message = (
                    "return it from the body of the loop, or the function of vmap: "
                    "what that computes is another array in each iteration, or row, "
                    "and cannot be read outside"
                )
                raise TraceError(message)
            return found
        if isinstance(item, (bool, int, float, complex, np.generic)):
            self.meet_number(item)
            return self.dialect.number(item)
        captured = self.capture(item)
        if captured is not None:
            return captured
        if isinstance(item, (list, tuple)):  # as NumPy takes them
            return self.list_items(item)
        message = f"expected an array or a number, found {type(item).__name__}"
        if (instead := array_in(type(item))) is not None:
            message = f"write {instead}, outside the fused function: {message}"
        if type(item) is np.ndarray:
            message = (
                "pass the arrays as arguments, and return what changes: plain NumPy "
                "computed this array of arrays from outside while tracing, and later "
                "calls would have the same"
            )
        raise ArgumentError(message)

    def class_of(self, held: TensorView) -> type:
        """Return the class that the stand-in of a result says it is of."""
        return self.home.class_of(held, self.array_class)

    def tensor(self, item: Any) -> TensorView:
        """Return ``item`` as a tensor."""
        return self.builder.tensor(self.operand(item))

    def call(self, verb: Callable[..., Any], *operands: Any, **options: Any) -> Any:
        """Apply ``verb`` of ``nfuser.compiler.ops`` to stand-ins and numbers."""
        self.builder.source = self.turns.line()
        found = verb(self.builder, *[self.operand(x) for x in operands], **options)
        return self.wrap(found)

    def call_operator(self, verb: Callable[..., Any], *operands: Any) -> Any:
        """Apply the verb of an operator, after the operands met."""
        self.builder.source = self.turns.line()
        self.dialect.check_operands(operands)
        taken = self.dialect.meet(self, verb, [self.operand(x) for x in operands])
        return self.wrap(verb(self.builder, *taken))

    def call_on_tensor(
        self, verb: Callable[..., Any], x: Any, *args: Any, **options: Any
    ) -> Any:
        """Apply ``verb``, which takes one tensor and options, to ``x``."""
        self.builder.source = self.turns.line()
        return self.wrap(verb(self.builder, self.tensor(x), *args, **options))

    def apply(self, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Apply ``verb`` to what verbs take already."""
        self.builder.source = self.turns.line()
        return self.wrap(verb(self.builder, *args, **options))

    def operate(self, verb: Callable[..., Any], *operands: Any) -> Any:
        """Apply an operator: of Python numbers alone the result is one, too."""
        self.builder.source = self.turns.line()
        self.dialect.check_operands(operands)
        taken = [self.operand(x) for x in operands]
        kinds = [self.builder.type_of(x) for x in taken]
        are_weak = self.builder.weak and any(x in self.builder.weak for x in taken)
        if are_weak and any(type(x) in (list, tuple) for x in operands):
            raise refusals.repeated()
        are_python = DType not in map(type, kinds)
        if are_python and (number := self._outcome(verb, taken)) is not None:
            return number
        if are_python and verb not in _OF_TRUTHS:
            taken = [self._counted(x) for x in taken]
        if are_python and self.opens and len(taken) == 2:
            found = self._of_python(verb, *taken)
        else:
            found = verb(self.builder, *self.dialect.meet(self, verb, taken))
        if are_python:
            for result in found if isinstance(found, tuple) else (found,):
                self.builder.weak[result] = _PYTHON[result.dtype.kind]
                if self.opens:
                    continue
                if verb is ops.multiply and self.builder.weak[result] is int:
                    look_at_product(self.builder, result, *taken)
        return self.wrap(found)

    def _of_python(self, verb: Any, x: Any, y: Any) -> Any:
        """Apply an operator to numbers of Python's, as exactly as Python does."""
        b = self.builder
        is_known = isinstance(y, TensorView) and known.host_number(b, y) is not None
        is_known |= not isinstance(y, TensorView)
        if is_known and verb in python_numbers.DIVISIONS:
            self._outcome(verb, [1, y])  # which raises where y is zero
            return verb(b, x, y)
        return python_numbers.operation(b, verb, x, y)

    def python_number(self, x: Any, kind: type) -> Any:
        """Return the one element ``x`` as a number of Python's, ``kind`` of it."""
        self.builder.source = self.turns.line()
        return self.wrap(python_numbers.number_of(self.builder, self.tensor(x), kind))

    def _counted(self, x: Any) -> Any:
        """Return a truth value of Python's as the integer that it is to operators."""
        if not isinstance(x, TensorView) or not x.dtype.is_bool:
            return x
        found = self.builder.cast(x, DType.I64)
        self.builder.weak[found] = int
        return found

    def _outcome(self, verb: Callable[..., Any], taken: list[Any]) -> Any:
        """Guard how Python itself ends; raise what it raises.

        Return a number only where it is one that no float can stand for.
        """
        guard = outcome_guard(self.builder, verb, taken, current_line())
        if guard is None:
            return None
        try:
            found = guard.run(self.today, self.values)
        except ArithmeticError as error:
            self.outcome_guards.setdefault(guard.key, guard.ended(type(error)))
            raise
        self.outcome_guards.setdefault(guard.key, guard.ended(type(found)))
        if not isinstance(found, complex):
            return None
        for x in taken:
            if isinstance(x, TensorView):
                self.consume(x, "a complex power")
            elif isinstance(x, Scalar):
                self.consume_scalar(x)
        return found

    def wrap(self, found: Any) -> Any:
        """Return the stand-in of each tensor in ``found``."""
        if isinstance(found, tuple):
            return tuple([self.wrap(x) for x in found])
        return self._wrap(self, found) if isinstance(found, TensorView) else found

    def view(self, verb: Callable[..., Any], x: Any, *args: Any) -> Any:
        """Apply a verb that shares memory with ``x`` in NumPy."""

        def again(source: TensorView) -> TensorView:
            return verb(self.builder, source, *args)

        self.builder.source = self.turns.line()
        held = self.tensor(x)
        base = x if hasattr(x, "_remake") else self.wrap(held)
        return self._wrap(self, again(held), base=base, remake=again)

    def written(self) -> list[tuple[int, Any]]:
        """Return the slot and the stand-in of each argument that was assigned to."""
        return [
            (root._slot, root)
            for root, passed in self.roots
            if root._operand() is not passed
        ]

    def consume(self, x: TensorView, what: str) -> Any:
        """Return today's value of a 0-d tensor made of scalars alone; guard it."""
        found = known.host_number(self.builder, x)
        if found is None:
            raise asked.wanted(what)
        return self._consumed(found)

    def consume_if_number(self, x: TensorView, otherwise: Any) -> Any:
        """Return what ``consume`` does, or ``otherwise`` for an array."""
        found = known.host_number(self.builder, x)
        return otherwise if found is None else self._consumed(found)

    def _consumed(self, found: HostNumber) -> Any:
        line = current_line()
        for slot in found.slots:
            guard = ValueGuard(slot, self.values[slot], line)
            self.value_guards.setdefault(slot, guard)
        for size in found.scalars:
            self.consume_scalar(size)
        return found.value(self.today, self.values)

    def consume_scalar(self, x: Scalar) -> int:
        """Return today's value of ``x``; another value traces again."""
        if isinstance(x, Const):
            return x.value
        return self.ask(x)

    def ask(self, condition: Scalar, usual: int = 0) -> int:
        """Return today's value of ``condition``, and guard it."""
        self.builder.source = self.turns.line()
        return self.builder.ask(condition, usual)

    def guards(self) -> tuple[Guard, ...]:
        """Return the answers this trace depends on."""
        asked = self.builder.questions
        return tuple(Guard(c, a, asked.lines[c]) for c, a in asked.answers.items())


def _ended(_: Any) -> Any:
    """Take the place of what served a trace."""


_OF_TRUTHS = {ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor}
_PYTHON: dict[str, Any] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
