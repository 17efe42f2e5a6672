# SPDX-License-Identifier: Apache-2.0
"""Expressions: how one tensor comes of others."""

# A loop has a fusion, which has expressions: a cycle of types.
# pyright: reportImportCycles=false

from __future__ import annotations

from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from nfuser.compiler.ir.base import node, value
from nfuser.compiler.ir.folds import (
    LIBRARY_CALLS,
    Called,
    LibraryCall,
    Matmul,
    PartialSum,
    Reduce,
    Scan,
    Scatter,
    Sort,
)
from nfuser.compiler.ir.folds import SCANS as SCANS
from nfuser.compiler.ir.folds import ReduceOp as ReduceOp
from nfuser.compiler.ir.folds import ScatterOp as ScatterOp
from nfuser.compiler.ir.scalars.scalar import Const

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.point_op import PointOp
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView


class Part(Enum):
    """Which part of an array an argument is; complex arrays come as two reals."""

    WHOLE = ""
    REAL = ".real"
    IMAG = ".imag"


@value
class Home:
    """An argument of the whole program, or a part of it if that is complex."""

    slot: int
    part: Part = Part.WHOLE


@node
class Argument:
    """What the caller passes in place ``slot``; a scalar is passed by value.

    In the body of a loop it may be what turns have made of an array of the caller's,
    whose ``home`` is that array: there it belongs, also if a turn fails.
    """

    slot: int
    result: TensorView
    by_value: bool = False
    part: Part = Part.WHOLE
    home: Home | None = None


@node
class Constant:
    """A number that is part of the program, with no axes.

    One that ``is_unset`` stands for any: what lies in memory that nobody has written.
    """

    value: bool | int | float | complex
    result: TensorView
    is_unset: bool = False


@node
class FromScalar:
    """A size, or what is computed of sizes, as a value with no axes."""

    scalar: Scalar
    result: TensorView


@node
class Iota:
    """The index along the only axis."""

    result: TensorView


@node
class Pointwise:
    """``op`` on each element; operands stretch as NumPy broadcasts them."""

    op: PointOp
    operands: tuple[TensorView, ...]
    result: TensorView


@node
class Expand:
    """Stretch axes of extent 1, and add axes in front (``broadcast_to``)."""

    source: TensorView
    result: TensorView


@node
class SumTo:
    """Sum what ``Expand`` would stretch: axes in front, and those of extent 1.

    The transpose of broadcasting. Which axes these are is known once sizes are; those
    in ``axes``, which stand in front, are gone from the result.
    """

    source: TensorView
    result: TensorView
    axes: tuple[int, ...]


@node
class ExpandDims:
    """Insert axes of extent 1; ``axes`` are their places in the result."""

    source: TensorView
    result: TensorView
    axes: tuple[int, ...]


@node
class Squeeze:
    """Drop axes of extent 1; ``axes`` are their places in the source."""

    source: TensorView
    result: TensorView
    axes: tuple[int, ...]


@node
class Permute:
    """Axis k of the result is axis ``order[k]`` of the source."""

    source: TensorView
    result: TensorView
    order: tuple[int, ...]


@node
class Slice:
    """Element i along an axis is element ``start + step * i`` of the source."""

    source: TensorView
    result: TensorView
    starts: tuple[Scalar, ...]
    steps: tuple[int, ...]


Group: TypeAlias = "tuple[tuple[int, ...], tuple[int, ...]]"


@node
class Reshape:
    """The same elements in C order over other axes.

    ``groups`` pair runs of source axes with the result axes that have the same
    product; they are known once sizes are, as None says. ``inferred`` is the result
    axis that was spelled -1.
    """

    source: TensorView
    result: TensorView
    groups: tuple[Group, ...] | None = None
    inferred: int | None = None


@node
class Pad:
    """Element i is element ``i - left`` of the source, or ``fill`` where it has none.

    A negative ``left`` drops elements; how many the right side gains or loses follows
    from the extents.
    """

    source: TensorView
    fill: TensorView
    result: TensorView
    lefts: tuple[Scalar, ...]


@node
class Concatenate:
    """The parts one after another along ``axis``."""

    parts: tuple[TensorView, ...]
    result: TensorView
    axis: int


@node
class Remap:
    """Element i is the element of the source at ``index``.

    ``index`` has a scalar for each source axis, written in ``place(k, extent)``, the
    index along axis k of the result (roll, tile, repeat, the modes of pad).
    """

    source: TensorView
    result: TensorView
    index: tuple[Scalar, ...]


@node
class Take:
    """The elements of the source along ``axis`` that ``index`` names.

    The axes of ``index`` stand in place of ``axis``. With ``along``, ``index`` has all
    axes, and each of its elements names one element (``take_along_axis``). An index
    counts from the end if negative. With ``leads``, the result lies in memory as
    NumPy's ``x[:, index]`` does: the axes of ``index`` outermost. One that is
    ``inside`` is promised to count from the front, and to name nothing but elements.
    """

    source: TensorView
    index: TensorView
    result: TensorView
    axis: int
    along: bool = False
    leads: bool = False
    inside: bool = False


@node
class Assign:
    """The source with ``value`` in the place of a part of it.

    Element i of ``value`` is element ``starts + steps * i`` of the result. The value is
    written into the memory of the source, once all else has read that.
    """

    source: TensorView
    value: TensorView
    result: TensorView
    starts: tuple[Scalar, ...]
    steps: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the value takes the place of every element."""
        zeros = all(isinstance(s, Const) and s.value == 0 for s in self.starts)
        return (
            zeros and set(self.steps) <= {1} and self.value.shape == self.source.shape
        )


@node
class Loop:
    """What is left of the carried values after ``body`` ran again and again.

    The first ``carried`` of the operands are what those values are at first; the body
    has an argument for each operand, and may have one more, by value: how many
    iterations came before. Its outputs are the carried values of the next iteration,
    of the same dtype and sizes, and after them what each iteration adds to a
    result, as its element at that place (``backwards``: from the end on).

    There are ``trips`` iterations, if that is not None, and each begins only where
    the carried value number ``flag``, if that is not None, is true.
    """

    operands: tuple[TensorView, ...]
    body: Fusion
    results: tuple[TensorView, ...]
    carried: int
    trips: Scalar | None
    flag: int | None = None
    backwards: bool = False

    @property
    def result(self) -> TensorView:
        """The first result."""
        return self.results[0]

    @property
    def is_choice(self) -> bool:
        """Whether the body runs once at most: a branch that is written as a loop."""
        if self.flag is None or self.trips is not None:
            return False
        last = self.body.definition.get(self.body.outputs[self.flag])
        return isinstance(last, Constant) and not last.value

    @property
    def pairs(self) -> tuple[tuple[TensorView, TensorView, TensorView], ...]:
        """Each carried value: before the loop, after an iteration, after the loop."""
        return tuple(zip(self.operands, self.body.outputs, self.results, strict=False))[
            : self.carried
        ]

    @property
    def forwarded(self) -> tuple[int | None, ...]:
        """For each carried value, which one it was before the iteration, or None.

        None are computed; two that change places are not.
        """
        slots = {a.result: a.slot for a in self.body.arguments if not a.by_value}
        found = (slots.get(t) for t in self.body.outputs[: self.carried])
        return tuple(k if k is not None and k < self.carried else None for k in found)

    @property
    def in_place(self) -> frozenset[int]:
        """Which carried values are what assignments make of those before, in place."""
        slots = {a.result: a.slot for a in self.body.arguments if not a.by_value}
        owner: dict[TensorView, TensorView] = {}
        for assign in self.body.assignments:
            owner[assign.result] = owner.get(assign.source, assign.source)
        outputs = self.body.outputs[: self.carried]
        pairs = enumerate(owner.get(t) for t in outputs)
        return frozenset(k for k, t in pairs if t is not None and slots.get(t) == k)

    @property
    def given(self) -> tuple[tuple[TensorView, TensorView], ...]:
        """Each argument of the body that is an operand, with that operand."""
        arguments = self.body.arguments
        count = len(self.operands)
        return tuple(
            (a.result, self.operands[a.slot]) for a in arguments if a.slot < count
        )

    @property
    def turn(self) -> TensorView | None:
        """The argument of the body that counts iterations, if it has one."""
        count = len(self.operands)
        found = (a.result for a in self.body.arguments if a.slot == count)
        return next(found, None)

    @property
    def added(self) -> tuple[tuple[TensorView, TensorView], ...]:
        """Each output that an iteration adds to a result, with that result."""
        pairs = zip(self.body.outputs, self.results, strict=True)
        return tuple(pairs)[self.carried :]


View: TypeAlias = Expand | ExpandDims | Squeeze | Permute | Slice | Reshape | Remap
VIEWS = (Expand, ExpandDims, Squeeze, Permute, Slice, Reshape, Remap)
Resize: TypeAlias = Slice | Pad | Concatenate
Leaf: TypeAlias = Argument | Constant | FromScalar | Iota
Fold: TypeAlias = Reduce | PartialSum | Scan | LibraryCall
FOLDING = (Reduce, PartialSum, Scan, *LIBRARY_CALLS)
Expr: TypeAlias = (
    Leaf | Pointwise | View | Pad | Concatenate | Take | Assign | Fold | SumTo | Loop
)


def sources(expr: Expr) -> tuple[TensorView, ...]:
    """Return the tensors that ``expr`` reads."""
    return _READ[type(expr)](expr)


def _read(*names: str) -> Callable[[Any], tuple[TensorView, ...]]:
    """Return what gives the tensors in fields of these ``names``."""
    get: Any = attrgetter(*names)
    return get if len(names) > 1 else lambda expr: (get(expr),)


_READ: dict[type, Callable[[Any], tuple[TensorView, ...]]] = {
    **dict.fromkeys(get_args(Leaf), lambda _: ()),
    **dict.fromkeys((Pointwise, Loop, Called), attrgetter("operands")),
    **dict.fromkeys((*VIEWS, SumTo, Reduce, PartialSum, Scan, Sort), _read("source")),
    Pad: _read("source", "fill"),
    Concatenate: attrgetter("parts"),
    Take: _read("source", "index"),
    Scatter: _read("source", "index", "value"),
    Assign: _read("source", "value"),
    Matmul: _read("lhs", "rhs"),
}


def results(expr: Expr) -> tuple[TensorView, ...]:
    """Return the tensors that ``expr`` defines."""
    return expr.results if isinstance(expr, (Reduce, Loop, Called)) else (expr.result,)
