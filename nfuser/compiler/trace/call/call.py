# SPDX-License-Identifier: Apache-2.0
"""What a tracer is told about a call, and what it gives back."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.ir.base import node, value
from nfuser.compiler.trace.captures.captured import Captured
from nfuser.compiler.trace.standins.standin import is_ndarray

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import SourceLine
    from nfuser.compiler.ops import ScalarFits
    from nfuser.compiler.trace.call.returned_views import Step
    from nfuser.compiler.trace.call.tree import Tree
    from nfuser.compiler.trace.standins.arithmetic_guards import OutcomeGuard


@value
class ArrayLeaf:
    """An array: its place among the inputs, and its shape in this call.

    ``kind`` is the class that its stand-in says it is of, ``device`` where it is.
    """

    slot: int
    dtype: DType
    shape: tuple[int, ...]
    kind: type = np.ndarray
    device: Any = "cpu"


@value
class ScalarLeaf:
    """A run-time number: ``kind`` is int or float (weak), or a NumPy scalar's dtype."""

    slot: int
    kind: type[int] | type[float] | DType
    value: Any


@value
class StaticLeaf:
    """Anything else: a constant of the trace."""

    value: Any


Leaf: TypeAlias = ArrayLeaf | ScalarLeaf | StaticLeaf


@node
class TracedCall:
    """The arguments ``(args, kwargs)`` of one call, taken apart."""

    tree: Tree
    leaves: tuple[Leaf, ...]

    @property
    def input_count(self) -> int:
        """The number of slots taken by arrays and run-time scalars."""
        return sum(not isinstance(leaf, StaticLeaf) for leaf in self.leaves)


@value
class Guard:
    """Holds while ``condition`` of sizes and integer arguments has this answer."""

    condition: Scalar
    answer: int
    source: SourceLine | None = None


@value
class ValueGuard:
    """Holds while the scalar in ``slot`` has this value: Python consumed it."""

    slot: int
    value: Any
    source: SourceLine | None = None


@value
class OutputLeaf:
    """One output: its place in ``fusion.outputs``, and the Python number it was.

    Without axes it comes back as a number of NumPy's, unless it was an array. What is
    the argument in ``slot``, which was assigned to, comes back as that very array, or
    as a ``view`` of it; what is ``passed`` is the very thing that the caller has
    there, and no output.
    """

    position: int
    python: type | None = None
    is_array: bool = False
    slot: int | None = None
    passed: tuple[Any, ...] | None = None
    view: tuple[Step, ...] | None = None

    @property
    def is_as_made(self) -> bool:
        """Whether the array comes back as it is, neither as a number nor as a view."""
        return self.python is None and self.view is None


@value
class Changed:
    """A list or dict that a function changed: where it is, and what it holds then.

    It is found from ``(args, kwargs)`` by the keys of ``path``.
    """

    path: tuple[Any, ...]
    tree: Tree
    leaves: tuple[OutputLeaf, ...]


class Raised:
    """What a function raised while it was traced; who raises it takes it out.

    A frame that kept it would be kept by its traceback, and arrays of the call with it.
    """

    __slots__ = ("_error",)

    def __init__(self, error: Exception) -> None:
        self._error: Exception | None = error

    def taken(self) -> Exception:
        """Return the exception, which this holds no longer."""
        error, self._error = self._error, None
        assert error is not None
        return error


@node
class Trace:
    """One function traced for one structure of arguments.

    ``output_tree`` with ``output_leaves`` rebuilds what the function returned. The
    trace serves a call while all its guards hold; ``checks`` raise.
    ``captured`` holds inputs found in closures and globals (slots after the caller's)
    and the constants it depends on; ``captured.read`` is asked at each call. ``writes``
    are the slots of arguments that were assigned to, each with its place among the
    outputs: what it holds in the end; ``changed`` are lists and dicts of the arguments
    that hold other items after the call. A function that ``raised`` has returned
    nothing, and its writes are those of the statements before.
    """

    fusion: Fusion
    output_tree: Tree
    output_leaves: tuple[OutputLeaf, ...]
    guards: tuple[Guard, ...] = ()
    value_guards: tuple[ValueGuard, ...] = ()
    outcome_guards: tuple[OutcomeGuard, ...] = ()
    checks: tuple[ScalarFits, ...] = ()
    captured: Captured = Captured()
    writes: tuple[tuple[int, int], ...] = ()
    changed: tuple[Changed, ...] = ()
    raised: Raised | None = None


def call_of(args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> TracedCall:
    """Take apart a call with NumPy arrays; slots count arrays and run-time numbers.

    >>> call_of((np.ones(3), 2.0, "mean")).leaves[1:]
    (ScalarLeaf(slot=1, kind=<class 'float'>, value=2.0), StaticLeaf(value='mean'))
    """
    flat, shape = tree.flatten((tuple(args), dict(kwargs or {})))
    leaves: list[Leaf] = []
    slot = 0
    for item in flat:
        leaf = leaf_of(item, slot)
        leaves.append(leaf)
        slot += not isinstance(leaf, StaticLeaf)
    return TracedCall(shape, tuple(leaves))


def leaf_of(item: Any, slot: int) -> Leaf:
    """Return what ``item`` is to a trace."""
    if is_ndarray(item):
        return ArrayLeaf(slot, as_dtype(item.dtype), item.shape)
    if isinstance(item, np.number):
        return ScalarLeaf(slot, as_dtype(item.dtype), item)
    if type(item) in (int, float):
        return ScalarLeaf(slot, type(item), item)
    return StaticLeaf(item)
