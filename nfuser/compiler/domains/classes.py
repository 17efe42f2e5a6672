# SPDX-License-Identifier: Apache-2.0
"""Which axes of a fusion one loop drives."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.expr import (
    Argument,
    Assign,
    Called,
    Concatenate,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    FromScalar,
    Iota,
    Loop,
    Matmul,
    Pad,
    PartialSum,
    Permute,
    Pointwise,
    Reduce,
    Remap,
    Reshape,
    Scan,
    Scatter,
    Slice,
    Sort,
    Squeeze,
    SumTo,
    Take,
    results,
    sources,
)
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.ir.expr import Group
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView

AxisKey: TypeAlias = "tuple[TensorView, int]"
Keys: TypeAlias = "tuple[AxisKey, ...]"
_FOLDS = (Reduce, Scan, PartialSum)


class Classes:
    """Union of axes that one loop drives, or several where a reshape splits them.

    Where an axis may meet itself, as in ``x[:, None] - x``, views of what no kernel
    folds join nothing: each reads its array at a place of its own. Matrices that meet
    themselves transposed are better read by a kernel with tiles for each.
    """

    def __init__(self, fusion: Fusion, *, meets_itself: bool = False) -> None:
        self._parent: dict[AxisKey, Keys] = {}
        folded: set[TensorView] = set()
        for expr in fusion.exprs:
            if meets_itself and not (isinstance(expr, Pointwise) or _transposes(expr)):
                if not isinstance(expr, _FOLDS) and folded.isdisjoint(sources(expr)):
                    continue
                folded.update(results(expr))
            for result in results(expr):
                for source in dict.fromkeys(sources(expr)):
                    self._relate(expr, source, result)
        for real, imaginary in fusion.complex_arguments:
            self._relate_parts(real, imaginary)
        for other, first in fusion.sums_in_parts.items():
            self._relate_parts(first, other)
        if not (fusion.reductions or fusion.scans or fusion.partial_sums):
            self._relate_alike(fusion.outputs)

    def of(self, tensor: TensorView, single: bool) -> list[Keys]:
        """Return the classes of each axis, outermost first; broadcast axes have none.

        A fusion with a single root needs no classes: each axis is its own loop.
        """
        own = (((tensor, k),) for k in range(tensor.ndim))
        return [
            () if axis.is_broadcast else keys if single else self._found(keys)
            for axis, keys in zip(tensor.axes, own, strict=True)
        ]

    def _found(self, keys: Keys) -> Keys:
        if len(keys) == 1:  # mostly it is a root, or one lies right above
            above = self._parent.get(keys[0], keys)
            if above is keys or (len(above) == 1 and above[0] not in self._parent):
                return above
        found: list[AxisKey] = []
        stack = list(reversed(keys))
        while stack:
            key = stack.pop()
            passed: list[AxisKey] = []
            while len(parent := self._parent.get(key, ())) == 1:
                passed.append(key)
                (key,) = parent
            # Shortened for the next search: a chain would be walked at each link.
            self._parent.update(dict.fromkeys(passed, (key,)))
            if parent:
                stack.extend(reversed(parent))
            else:
                found.append(key)
        return tuple(found)

    def _join(self, a: Keys, b: Keys) -> None:
        for tensor, k in (*a, *b):
            if tensor.axes[k].is_broadcast:
                return
        first, second = self._found(a), self._found(b)
        if first == second:
            return
        if len(second) == 1:
            first, second = second, first
        if len(first) == 1 and first[0] not in second:
            self._parent[first[0]] = second
        elif len(first) == len(second):
            pairs = list(zip(first, second, strict=True))
            if all(_extent(x) is _extent(y) for x, y in pairs):
                self._parent.update({x: (y,) for x, y in pairs if x != y})

    def _relate(self, expr: Expr, source: TensorView, result: TensorView) -> None:
        """Join axes of a source with the axes of a result that they run along."""
        if not isinstance(expr, Reshape):
            for old, new in _pairs(expr, source, result):
                self._join(((result, new),), ((source, old),))
            return
        for old, new in _groups(expr):
            left = tuple((source, k) for k in old)
            right = tuple((result, k) for k in new)
            self._join(right, left)

    def _relate_alike(self, outputs: Iterable[TensorView]) -> None:
        """Join the axes of results that are of one shape, though nothing else tells."""
        known: dict[tuple[sc.Scalar, ...], TensorView] = {}
        for output in outputs:
            first = known.setdefault(output.shape, output)
            if first is not output:
                self._relate_parts(first, output)

    def _relate_parts(self, real: TensorView, imaginary: TensorView) -> None:
        """Join the axes of two arrays that are one to readers, if they run alike.

        Both parts of a complex array are, and partial sums of the same rows, and so are
        results of one shape.
        """
        axes = range(real.ndim)
        first = [self._found(((real, k),)) for k in axes]
        second = [self._found(((imaginary, k),)) for k in axes]
        if any(second[k] in first[:k] + first[k + 1 :] for k in axes):
            return
        for k in axes:
            self._join(((real, k),), ((imaginary, k),))


def _transposes(expr: Expr) -> bool:
    """Tell whether ``expr`` turns what has more than one axis."""
    if not isinstance(expr, Permute):
        return False
    return sum(not axis.is_broadcast for axis in expr.source.axes) > 1


def _extent(key: AxisKey) -> sc.Scalar:
    return key[0].axes[key[1]].extent


def _groups(expr: Reshape) -> list[Group]:
    """Return the axes of its source and its result that the same loops may drive."""
    return [g for g in expr.groups or () if min(map(len, g)) == 1]


def _pairs(expr: Expr, source: TensorView, result: TensorView) -> list[tuple[int, int]]:
    match expr:
        case Pointwise() | Expand():
            shift = result.ndim - source.ndim
            return [(k, k + shift) for k in range(source.ndim)]
        case Scan():
            return [(k, k) for k in range(source.ndim)]
        case Permute(_, _, order):
            return [(axis, k) for k, axis in enumerate(order)]
        case Slice() | Concatenate() | Pad():
            pairs = zip(source.shape, result.shape, strict=source.ndim > 0)
            return [(k, k) for k, (a, b) in enumerate(pairs) if a is b]
        case Remap(_, _, index):
            plain = ((k, i) for k, i in enumerate(index) if isinstance(i, sc.LoopIndex))
            return [(k, scalar_symbols.place_axis(i)) for k, i in plain]
        case ExpandDims(_, _, axes):
            own = (k for k in range(result.ndim) if k not in axes)
            return list(enumerate(own))
        case Squeeze(_, _, axes) | Reduce(_, _, _, axes):
            own = (k for k in range(source.ndim) if k not in axes)
            return [(axis, k) for k, axis in enumerate(own)]
        case PartialSum(_, _, axes):
            own = (k for k in range(source.ndim) if k not in axes)
            return [(axis, k) for k, axis in enumerate(own, 1)]
        case Take():
            return _taken(expr, source)
        case Reshape() | Argument() | Constant() | FromScalar() | Iota():
            return []
        case Matmul() | Sort() | Scatter() | Called() | SumTo() | Assign() | Loop():
            return []
        case _:
            assert_never(expr)


def _taken(expr: Take, source: TensorView) -> list[tuple[int, int]]:
    added = 0 if expr.along else expr.index.ndim - 1
    found: list[tuple[int, int]] = []
    if source is expr.index:
        shift = 0 if expr.along else expr.axis
        found += [(k, k + shift) for k in range(source.ndim)]
    if source is expr.source:
        kept = (k for k in range(source.ndim) if k != expr.axis)
        found += [(k, k if k < expr.axis else k + added) for k in kept]
    return found
