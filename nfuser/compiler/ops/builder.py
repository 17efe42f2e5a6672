# SPDX-License-Identifier: Apache-2.0
"""What verbs write into: expressions in order, weak tensors, questions, checks."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, get_args

import numpy as np

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.dtypes import DType, as_dtype, check_fits, out_of_bounds, promote
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import (
    Argument,
    Constant,
    Expr,
    FromScalar,
    Pointwise,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, with_sources
from nfuser.compiler.ir.point_op import CAST, COPY, POINT_OPS
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar import Const, Scalar, ScalarInput
from nfuser.compiler.ir.scalars.scalar_walk import evaluate, symbols
from nfuser.compiler.ir.tensor import TensorView, tensor
from nfuser.compiler.ops.mismatch import no_common_shape, shape_text
from nfuser.compiler.ops.stretched import Stretched
from nfuser.compiler.ops.unread import live_or_checked
from nfuser.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from nfuser.compiler.dtypes.promotion import Weak
    from nfuser.compiler.ir.tensor import SourceLine
    from nfuser.compiler.ops.customs import Custom

Number: TypeAlias = bool | int | float | complex
Operand: TypeAlias = TensorView | Scalar | Number | np.generic
_SCALARS: tuple[type, ...] = get_args(Scalar)


@value
class ScalarFits:
    """A run-time integer meets a narrow dtype: each call checks that it fits.

    The first ``{}`` of ``message`` is the place of the number.
    """

    scalar: Scalar
    dtype: DType
    message: str


@value
class TurnIndex:
    """A number by which an array is read along an axis, in each turn of a loop.

    ``within`` are the definitions of the bodies in which it is read, those of loops
    around them last; ``trips`` says how many turns their counters count.
    """

    index: TensorView
    extent: Scalar
    axis: int
    within: tuple[dict[TensorView, Expr], ...] = ()
    trips: tuple[tuple[TensorView, Scalar], ...] = ()


@dataclass(slots=True)
class BuilderQuestions:
    """Answers taken while building, and checks that each call repeats.

    ``today`` gives the value of each symbol in the call being traced; without it
    nothing is known, and the usual answer is assumed. ``lines`` say who asked.
    """

    today: Mapping[Scalar, int] | None
    answers: dict[Scalar, int]
    checks: dict[ScalarFits, None]
    lines: dict[Scalar, SourceLine | None]


class Builder:
    """Collects the expressions of one fusion.

    ``weak`` holds the tensors that stand for Python numbers, which NEP 50 promotes
    by kind, and ``counters`` those that turns of open loops count, with the least and
    the greatest; ``constants`` those that numbers have; ``expanded`` what is stretched,
    with what it was before; ``source`` is the user's line that new tensors carry.
    ``narrow`` casts a computed integer of Python's to a dtype that may lack it.
    ``rounds_integers``: what meets 16-bit floats is first made one, as by NumPy; torch
    computes with it as it is. ``orders_complex``: complex numbers are compared, as by
    NumPy.

    ``meant`` says what a result is to derivatives, where it is written otherwise: an
    elementwise function, or a way to write the same; ``stopped`` are constants to them,
    and ``customs`` the results whose way back is given. ``places`` lists what is read
    by numbers of the loop whose body is written, or is None where it may not be read;
    ``open_bodies`` says how many such bodies are written within each other, and
    ``looks`` stand after what the loop that was written last leaves in arrays.
    """

    rounds_integers = True
    orders_complex = False

    def __init__(
        self, today: Mapping[Scalar, int] | None = None, name: str = "fusion"
    ) -> None:
        self.name = name
        self.exprs: list[Expr] = []
        self.weak: dict[TensorView, Weak] = {}
        self.narrow: Callable[[Builder, TensorView, DType], TensorView] | None = None
        self.counters: dict[TensorView, tuple[Scalar, Scalar]] = {}
        self.expanded: dict[TensorView, TensorView] = {}
        self.meant: dict[TensorView, Pointwise | Callable[[], TensorView]] = {}
        self.stopped: set[TensorView] = set()
        self.customs: dict[TensorView, Custom] = {}
        self._twins: dict[TensorView, TensorView] = {}
        self._instead: dict[TensorView, TensorView] = {}
        self.source: SourceLine | None = None
        self.places: list[TurnIndex] | None = []
        self.open_bodies = 0
        self.looks: list[Expr] = []
        self.questions = BuilderQuestions(today, {}, {}, {})
        self.constants: dict[tuple[DType, str], TensorView] = {}
        self._stretched = Stretched()
        self._today: dict[Scalar, int] = {}

    def emit(self, expr: Expr) -> None:
        """Append ``expr``."""
        self.exprs.append(expr)

    def look(self) -> None:
        """Look whether the last loop went wrong: arrays are now as it leaves them."""
        self.exprs += self.looks
        self.looks.clear()

    @contextmanager
    def perhaps(self) -> Generator[None]:
        """Let what is written meanwhile be what may not run."""
        before, self.places = self.places, None
        try:
            yield
        finally:
            self.places = before

    def new(self, shape: Sequence[Scalar | int], dtype: DType) -> TensorView:
        """Return a tensor at the current line, still without definition."""
        return tensor(shape, dtype, self.source)

    def argument(
        self, slot: int, ndim: int, dtype: DType, *, by_value: bool = False
    ) -> TensorView:
        """Add the input in place ``slot``, with symbolic extents."""
        result = tensor([scalar_symbols.size(slot, k) for k in range(ndim)], dtype)
        self.emit(Argument(slot, result, by_value))
        return result

    def constant(self, number: Number, dtype: DType) -> TensorView:
        """Return ``number`` as a 0-d tensor; a 16-bit float keeps its extra digits."""
        key = (dtype, repr(number))
        if key not in self.constants:
            result = self.new((), dtype)
            self.emit(Constant(number, result))
            self.constants[key] = result
        return self.constants[key]

    def unset(self, dtype: DType) -> TensorView:
        """Return a 0-d tensor that may be any number, as of ``numpy.empty``."""
        result = self.new((), dtype)
        self.emit(Constant(0, result, is_unset=True))
        return result

    def from_scalar(self, x: Scalar | int, dtype: DType) -> TensorView:
        """Return a size, or what is computed of sizes, as a 0-d tensor."""
        x = sc.as_scalar(x)
        if isinstance(x, Const):
            return self.constant(_converted(x.value, dtype), dtype)
        result = self.new((), dtype)
        self.emit(FromScalar(x, result))
        return result

    def point(
        self, name: str, *operands: TensorView, dtype: DType | None = None
    ) -> TensorView:
        """Emit the elementwise operation ``name``; ``dtype`` if not implied."""
        op = POINT_OPS[name]
        given = DType.BOOL if op.gives == "bool" else operands[-1].dtype
        result = self.new(self.broadcast(*operands, name=name), dtype or given)
        self.emit(Pointwise(op, operands, result))
        return result

    def twin(self, x: TensorView) -> TensorView:
        """Return ``x`` under another name, by which derivatives tell the two apart.

        The program reads ``x`` itself in its place.
        """
        result = self.new(x.shape, x.dtype)
        self.emit(Pointwise(COPY, (x,), result))
        self._twins[result] = self._twins.get(x, x)
        if x in self.weak:
            self.weak[result] = self.weak[x]
        return result

    def is_twin(self, x: TensorView) -> bool:
        """Tell whether ``x`` is another name of something."""
        return x in self._twins

    def read_instead(self, x: TensorView, other: TensorView) -> None:
        """Let the program read ``other`` wherever it would read ``x``, its equal."""
        self._instead[x] = other

    def broadcast(self, *operands: TensorView, name: str) -> tuple[Scalar, ...]:
        """Return the shape in which the operands of ``name`` meet, or refuse them."""
        shapes = [t.shape for t in operands]
        if shapes.count(shapes[0]) == len(shapes):
            return shapes[0]
        rank = max(map(len, shapes))
        shape: list[Scalar] = []
        for back in range(rank, 0, -1):
            meet = self.meet([s[-back] for s in shapes if len(s) >= back])
            if meet is None:
                today = [[self.today(x) for x in s] for s in shapes]
                raise ShapeError(no_common_shape(name, today))
            shape.append(meet)
        return tuple(shape)

    def meet(self, extents: Sequence[Scalar]) -> Scalar | None:
        """Return the extent in which others meet when they stretch, if they do."""
        if extents.count(extents[0]) == len(extents):
            return extents[0]
        known = {self.today(e) for e in extents} - {1, None}
        if len(known) > 1:
            return None
        fixed = {e.value for e in extents if isinstance(e, Const)} - {1}
        if fixed:
            return sc.const(fixed.pop()) if len(fixed) == 1 else None
        meet = self._stretched.meet(extents)
        self._today.update((meet, number) for number in known if number is not None)
        return meet

    def type_of(self, operand: Operand) -> DType | Weak:
        """Return how ``operand`` takes part in promotion: a dtype, or a weak type."""
        if isinstance(operand, TensorView):
            return self.weak.get(operand, operand.dtype)
        if isinstance(operand, np.generic):
            return as_dtype(operand.dtype)
        if isinstance(operand, (bool, int, float, complex)):
            return type(operand) if type(operand) in _WEAK else _weak_base(operand)
        return int

    def promote(self, *operands: Operand) -> DType:
        """Return the dtype in which ``operands`` meet."""
        return promote(*[self.type_of(x) for x in operands])

    def convert(self, operand: Operand, dtype: DType) -> TensorView:
        """Return ``operand`` as a tensor of ``dtype``, as promotion converts it."""
        if isinstance(operand, TensorView):
            is_narrow = dtype.is_integer and operand.dtype is not dtype
            if is_narrow and self.narrow and self.weak.get(operand) is int:
                return self.narrow(self, operand, dtype)
            return self.cast(operand, dtype)
        if isinstance(operand, np.generic):
            return self.constant(_rounded(operand, dtype), dtype)
        if isinstance(operand, _SCALARS):
            return self._scalar_in(operand, dtype)  # pyright: ignore[reportArgumentType]
        if isinstance(operand, int):
            check_fits(operand, dtype, "a constant of the program")
        return self.constant(_converted(operand, dtype), dtype)  # pyright: ignore[reportArgumentType]

    def _scalar_in(self, x: Scalar, dtype: DType) -> TensorView:
        number = self.today(x)
        what = "a size or an integer argument"
        if number is not None:
            check_fits(number, dtype, what)
        given = any(isinstance(s, ScalarInput) for s in symbols([x]))
        if dtype.is_integer and (given or dtype is not DType.I64):
            message = out_of_bounds("{}", dtype, what)
            if self.source:
                message += self.source.note
            self.questions.checks[ScalarFits(x, dtype, message)] = None
        if dtype.is_half and self.rounds_integers:
            return self.cast(self.from_scalar(x, DType.F64), dtype)
        return self.from_scalar(x, dtype)

    def tensor(self, operand: Operand) -> TensorView:
        """Return ``operand`` as a tensor of its own dtype."""
        if isinstance(operand, TensorView):
            return operand
        return self.convert(operand, self.promote(operand))

    def cast(self, x: TensorView, dtype: DType) -> TensorView:
        """Return ``x`` with ``dtype``, as NumPy's ``astype`` does."""
        if x.dtype is dtype:
            return x
        if x.dtype.is_complex and not dtype.is_complex:
            if dtype.is_bool:
                return self.point("not_equal", x, self.constant(0j, x.dtype))
            part = self.point("real", x, dtype=x.dtype.real)
            return self.cast(part, dtype)
        result = self.new(x.shape, dtype)
        self.emit(Pointwise(CAST, (x,), result))
        return result

    def unrounded(self, x: TensorView, dtype: DType) -> TensorView:
        """Return ``x``, which is f32, as what has the 16 bits of ``dtype``.

        Where that is computed with, it has all digits of ``x``: no cast is asked for.
        """
        if x.dtype is dtype:
            return x
        result = self.new(x.shape, dtype)
        self.emit(Pointwise(COPY, (x,), result))
        return result

    def today(self, x: Scalar | int) -> int | None:
        """Return the value of ``x`` in the call being traced, if there is one."""
        if isinstance(x, int):
            return x
        if isinstance(x, Const):
            return x.value
        known = self.questions.today
        if known is None:
            return None
        if x not in self._today:
            self._today[x] = evaluate(x, known)
        return self._today[x]

    def ask(self, condition: Scalar, usual: int = 0) -> int:
        """Return today's value of ``condition``; other values trace again."""
        if isinstance(condition, Const):
            return condition.value
        answer = self.today(condition)
        if answer is None:
            return usual
        self.questions.answers[condition] = answer
        self.questions.lines.setdefault(condition, self.source)
        return answer

    def shape_text(self, shape: Sequence[Scalar]) -> str:
        """Render today's shape as NumPy's messages do."""
        return shape_text([self.today(s) for s in shape])

    def fusion(self, outputs: Sequence[TensorView]) -> Fusion:
        """Return the program that gives ``outputs``; every argument stays.

        So does what nobody reads, where another call may have sizes that do not fit.
        """
        exprs = [self._of_one_name(e) for e in self.exprs]
        program = Fusion(self.name, exprs, outputs)
        needed = live_or_checked(outputs, exprs, program.definition)
        live = set(needed)
        kept = [e for e in exprs if e in live or isinstance(e, Argument)]
        if self._instead:  # which may be defined later than it is read
            unread = (e for e in kept if e not in live)
            kept = [*unread, *needed]
        return Fusion(self.name, kept, outputs)

    def _of_one_name(self, expr: Expr) -> Expr:
        if not (self._twins or self._instead):
            return expr
        return with_sources(expr, [self._named(t) for t in sources(expr)])

    def _named(self, x: TensorView) -> TensorView:
        found = self._twins.get(x, x)
        return self._instead.get(found, found)


_WEAK = (bool, int, float, complex)


def _weak_base(operand: object) -> Weak:
    for kind in _WEAK:
        if isinstance(operand, kind):
            return kind
    message = f"{type(operand).__name__} is not a number"
    raise DTypeError(message)


def _rounded(number: np.generic, dtype: DType) -> Number:
    with np.errstate(all="ignore"):
        return _shortest(number.astype(dtype.numpy))


def _converted(number: Number, dtype: DType) -> Number:
    if type(number) is float and dtype is DType.F64:
        return number
    if dtype.is_bool:
        return bool(number)
    if dtype.is_integer:
        return int(number)  # pyright: ignore[reportArgumentType]
    with np.errstate(all="ignore"):
        return _shortest(np.asarray(number, dtype.numpy)[()])  # pyright: ignore[reportArgumentType]


def _shortest(number: np.generic) -> Number:
    """Return the shortest Python number that rounds to the f32 ``number``."""
    if number.dtype == np.float32:
        return float(str(number))
    return number.item()
