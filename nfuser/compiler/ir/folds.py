# SPDX-License-Identifier: Apache-2.0
"""Expressions that fold elements, and what the array library computes."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from nfuser.compiler.ir.base import node

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView


class ReduceOp(Enum):
    """What a reduction folds with; the value is the name printed for it."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    FMAX = "fmax"
    FMIN = "fmin"
    ANY = "any"
    ALL = "all"
    ARGMAX = "argmax"
    ARGMIN = "argmin"
    MOMENTS = "moments"
    EXPONENTIALS = "sum_of_exponentials"
    EXPONENTIALS_NEAR = "sum_of_exponentials_near"


@node
class Reduce:
    """Fold the ``axes`` of the source; they are gone from the results.

    ``MOMENTS`` gives two results, the mean and the sum of squared deviations from it;
    ``ARGMAX`` and ``ARGMIN`` give the flat index along ``axes``, in their order.
    ``EXPONENTIALS`` is the sum of ``exp(x - max(x))`` in one pass, with ``exp_near``
    if it is the near one; a schedule makes it. ``FMAX`` and ``FMIN`` leave out what is
    not a number, and are not a number where nothing is left.

    ``is_derived`` marks a sum that a derivative asks for, the transpose of stretching:
    its factors may be taken out where another sum has the rest.
    """

    op: ReduceOp
    source: TensorView
    results: tuple[TensorView, ...]
    axes: tuple[int, ...]
    is_derived: bool = False

    @property
    def result(self) -> TensorView:
        """The first result."""
        return self.results[0]


@node
class PartialSum:
    """Add up the source along ``axes`` in parts: a row of the result for each.

    A part has ``share`` neighbours along ``axes``, which run as memory does; the last
    has what is left. Segmentation makes it of a sum whose source is read along its
    other axes in the same kernel; a sum of the rows of the result comes after it.
    """

    source: TensorView
    result: TensorView
    axes: tuple[int, ...]
    share: Scalar


@node
class Scan:
    """Fold ``axis`` of the source, and keep what there is after each element.

    ``op`` is one of those that fold equal things in any grouping: sum, product,
    maximum, minimum, any, all.
    """

    op: ReduceOp
    source: TensorView
    result: TensorView
    axis: int


@node
class Matmul:
    """The product of matrices as ``numpy.matmul`` has it, by the array library.

    Axes but the last two stretch; an operand with one axis is a row or a column, whose
    axis is gone from the result. No kernel runs it: it is a statement of its own. Of
    16-bit floats it may be f32.
    """

    lhs: TensorView
    rhs: TensorView
    result: TensorView

    name: ClassVar[Literal["matmul"]] = "matmul"
    noun: ClassVar = "product"


@node
class Sort:
    """The elements along ``axis`` in order, NaN last, by the array library.

    With ``places`` it is the place that each had, as ``numpy.argsort``; equal ones stay
    in their order if it is ``stable``. Where there are places in ``kth``, only those
    need hold what a sort puts there, with what is less before and the rest behind.
    """

    source: TensorView
    result: TensorView
    axis: int
    places: bool = False
    stable: bool = False
    kth: tuple[int, ...] = ()

    noun: ClassVar = "sort"

    @property
    def name(self) -> Literal["sort", "argsort"]:
        """What NumPy calls it."""
        return "argsort" if self.places else "sort"


class ScatterOp(Enum):
    """What a scatter does with an element and a value; the value is its name."""

    SET = "set"
    ADD = "add"
    MULTIPLY = "multiply"
    MAX = "max"
    MIN = "min"


@node
class Scatter:
    """The source, with each of ``value`` put into, or added to, the row that it is for.

    ``index`` numbers positions of the first axes of the source in C order, from
    the end if negative; each has as many elements of ``value`` as the other axes
    have. Values of one position come in the order of the index: sums have the same
    bits whoever computes them, and the last value that is set stays. No kernel runs
    it: it is a statement of its own, and a position that is not there an error. Where
    there is a ``complaint``, that is what the error says, and negative ones are wrong.
    ``inside`` says that all positions are there.
    """

    op: ScatterOp
    source: TensorView
    index: TensorView
    value: TensorView
    result: TensorView
    complaint: str = ""
    inside: bool = False

    name: ClassVar[Literal["scatter"]] = "scatter"
    noun: ClassVar = "scatter"

    @property
    def lead(self) -> int:
        """How many axes of the source the index is of."""
        return self.source.ndim - (self.value.ndim - self.index.ndim)


@node
class Called:
    """What a function of the array library gives, one with a row in ``ops.library``.

    ``given`` and ``made`` are the dtypes of its operands and results. Where such a one
    is complex and kernels see no complex numbers any more, it is two tensors, its real
    and its imaginary part. ``options`` are the other arguments of the function. There
    may be values that it refuses, if it ``may_fail``.
    """

    name: str
    operands: tuple[TensorView, ...]
    results: tuple[TensorView, ...]
    given: tuple[DType, ...]
    made: tuple[DType, ...]
    options: tuple[tuple[str, object], ...]
    may_fail: bool = False

    noun: ClassVar = "call"

    @property
    def result(self) -> TensorView:
        """The first result."""
        return self.results[0]


SCANS = frozenset(
    {
        ReduceOp.SUM,
        ReduceOp.PROD,
        ReduceOp.MAX,
        ReduceOp.MIN,
        ReduceOp.ANY,
        ReduceOp.ALL,
    }
)


LibraryCall: TypeAlias = Matmul | Sort | Scatter | Called


LIBRARY_CALLS = (Matmul, Sort, Scatter, Called)
