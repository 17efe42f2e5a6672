# SPDX-License-Identifier: Apache-2.0
"""The space of loops that one kernel can run a fusion in.

Axes that must run together form a class: a pointwise result's axes with those of its
operands, and so on through views that keep an extent. An axis that a reshape splits is
the product of the classes of its parts. All reductions of a kernel fold the same
classes; every output runs over the others, or over all. Classes say which loop drives
which axis of a *root* (an output, a reduction or a scan); every other index is pulled
from there (``maps.source_points``). A scan runs along classes as a reduction folds
them, in their order, and keeps them. A partial sum adds up the kept classes, and
keeps those that reductions fold.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.classes import AxisKey, Classes
from nfuser.compiler.domains.maps import (
    Point,
    Read,
    flat_index,
    reduced_point,
    source_points,
)
from nfuser.compiler.ir.base import node, value
from nfuser.compiler.ir.expr import (
    Argument,
    Assign,
    Concatenate,
    Constant,
    Expand,
    ExpandDims,
    FromScalar,
    Iota,
    Pad,
    PartialSum,
    Permute,
    Pointwise,
    Reduce,
    Scan,
    Slice,
    Squeeze,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import remembered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.ir.tensor import TensorView

POINTS = 4  # how often a kernel may evaluate its operations, on average
SPARE = 64  # operations that a kernel may evaluate besides
_OTHER_AXES = "it runs over other axes than the rest"
_TRANSPOSED = "an axis meets itself transposed"
_ALONG = (
    *(Argument, Constant, FromScalar, Iota, Pointwise, Slice, Concatenate, Pad),
    *(ExpandDims, Squeeze, Permute, Expand, Assign),
)
"""What joins axes of one extent, if any."""

_VERBS = {Reduce: "reduces", Scan: "scans", PartialSum: "adds up"}


@value
class Mismatch:
    """Why a fusion has no space of its own."""

    reason: str
    tensor: TensorView | None = None


@node
class Space:
    """The loops of a kernel: ``kept`` ones, and those that reductions fold.

    ``points`` gives, for each root, the index of its result; ``levels`` counts the
    reductions that must be complete before each one begins. ``crossed`` says where
    partial sums read: they add up kept loops, for each index of the reduced ones.
    """

    kept: tuple[LoopIndex, ...]
    reduced: tuple[LoopIndex, ...]
    points: Mapping[TensorView, Point]
    folded: Mapping[Reduce, Point]
    crossed: Mapping[PartialSum, Point]
    levels: Mapping[Reduce, int]

    @property
    def loops(self) -> tuple[LoopIndex, ...]:
        """All loops, the kept ones first."""
        return self.kept + self.reduced

    def source_point(self, reduce: Reduce) -> Point:
        """Return where ``reduce`` reads its source."""
        return reduced_point(reduce, self.points[reduce.result], self.folded[reduce])


@remembered
def find_space(fusion: Fusion) -> Space | Mismatch:
    """Return the space of ``fusion``, or why it has none."""
    if (other := _of_other_sizes(fusion)) is not None:
        return Mismatch(_OTHER_AXES, other)
    single = len({*fusion.reductions, *fusion.scans, *fusion.outputs}) == 1
    single = single and not fusion.partial_sums
    classes = Classes(fusion)
    wanted = _wanted(fusion, classes, single)
    if isinstance(wanted, Mismatch) and wanted.reason is _TRANSPOSED:
        classes = Classes(fusion, meets_itself=True)
        wanted = _wanted(fusion, classes, single)
    if isinstance(wanted, Mismatch):
        return wanted
    kept, reduced = wanted
    loops: dict[AxisKey, LoopIndex] = {}
    for number, key in enumerate([*kept, *reduced]):
        loops[key] = scalar_symbols.loop_index(number, key[0].axes[key[1]].extent)

    def indices(axes: list[tuple[AxisKey, ...]]) -> Point:
        pairs = ([(loops[k], loops[k].extent) for k in keys] for keys in axes)
        return Point(tuple(flat_index(p) for p in pairs))

    points: dict[TensorView, Point] = {}
    folded: dict[Reduce, Point] = {}
    for reduce in fusion.reductions:
        own = classes.of(reduce.source, single)
        rest = [k for a, k in enumerate(own) if a not in reduce.axes]
        folded[reduce] = indices([own[a] for a in reduce.axes])
        points.update(dict.fromkeys(reduce.results, indices(rest)))
    crossed: dict[PartialSum, Point] = {}
    for total in fusion.partial_sums:
        own = classes.of(total.source, single)
        rest = [k for a, k in enumerate(own) if a not in total.axes]
        crossed[total] = indices(own)
        points[total.result] = indices([(), *rest])
    for scan in fusion.scans:
        points[scan.result] = indices(classes.of(scan.source, single))
    for output in fusion.outputs:
        if output not in points:
            points[output] = indices(classes.of(output, single))
    space = Space(
        tuple(loops[k] for k in kept),
        tuple(loops[k] for k in reduced),
        points,
        folded,
        crossed,
        _levels(fusion),
    )
    return _misread(fusion, space) or space


def space_of(fusion: Fusion) -> Space:
    """Return the space of a fusion that has one."""
    found = find_space(fusion)
    assert isinstance(found, Space)
    return found


def _of_other_sizes(fusion: Fusion) -> TensorView | None:
    """Return an output whose axes cannot be those of the first, by their extents.

    It is asked of each two groups of a program, and no is mostly the answer.
    """
    outputs = fusion.outputs
    if len(outputs) < 2 or not all(isinstance(e, _ALONG) for e in fusion.exprs):
        return None
    first = _sizes(outputs[0])
    return next((t for t in outputs[1:] if _sizes(t) != first), None)


def _sizes(tensor: TensorView) -> Counter[Scalar]:
    return Counter(axis.extent for axis in tensor.axes if not axis.is_broadcast)


def _wanted(
    fusion: Fusion, classes: Classes, single: bool
) -> tuple[list[AxisKey], list[AxisKey]] | Mismatch:
    """Return the classes of the kept and of the reduced loops."""
    kept: list[AxisKey] | None = None
    reduced: list[AxisKey] = []
    for expr in (*fusion.reductions, *fusion.scans, *fusion.partial_sums):
        folds, rest = _sides(expr, classes.of(expr.source, single))
        if _repeats([*folds, *rest]):
            return Mismatch(_TRANSPOSED, expr.source)
        if kept is None:
            kept, reduced = rest, folds
        elif not _meets(expr, folds, reduced) or set(rest) != set(kept):
            verb = _VERBS[type(expr)]
            return Mismatch(f"it {verb} other axes than the rest", results(expr)[0])
    partial = {total.result for total in fusion.partial_sums}
    for output in dict.fromkeys(t for t in fusion.outputs if t not in partial):
        own = [k for keys in classes.of(output, single) for k in keys]
        if _repeats(own):
            return Mismatch(_TRANSPOSED, output)
        if kept is None:
            kept = own
        if set(own) not in (set(kept), set(kept) | set(reduced)):
            return Mismatch(_OTHER_AXES, output)
    return kept or [], reduced


def _sides(
    expr: Reduce | Scan | PartialSum, own: list[tuple[AxisKey, ...]]
) -> tuple[list[AxisKey], list[AxisKey]]:
    """Return the classes of the reduced loops, and of the kept ones, of its source.

    A partial sum adds up the kept ones.
    """
    axes = (expr.axis,) if isinstance(expr, Scan) else expr.axes
    folds = [k for a, keys in enumerate(own) if a in axes for k in keys]
    rest = [k for a, keys in enumerate(own) if a not in axes for k in keys]
    return (rest, folds) if isinstance(expr, PartialSum) else (folds, rest)


def _meets(
    expr: Reduce | Scan | PartialSum, own: list[AxisKey], others: list[AxisKey]
) -> bool:
    """Tell whether loops can fold both; a scan goes along them in one order only."""
    return set(own) == set(others) and (own == others or not isinstance(expr, Scan))


def _repeats(keys: list[AxisKey]) -> bool:
    return len(set(keys)) < len(keys)


def _levels(fusion: Fusion) -> dict[Reduce, int]:
    if not fusion.reductions:
        return {}
    depth: dict[TensorView, int] = {}
    levels: dict[Reduce, int] = {}
    for expr in fusion.exprs:
        above = max((depth[t] for t in sources(expr)), default=0)
        if isinstance(expr, Reduce):
            levels[expr] = above
            above += 1
        depth.update(dict.fromkeys(results(expr), above))
    return levels


def reads(fusion: Fusion, begin: list[Read]) -> Iterator[Read]:
    """Yield each tensor and point that those to ``begin`` at need, sources last.

    The walk stops at reductions and scans: what they fold is a root of its own.
    """
    seen = set(begin)
    stack = list(reversed(begin))
    while stack:
        tensor, point = stack.pop()
        expr = fusion.definition[tensor]
        yield tensor, point
        for read in reversed(source_points(expr, point)):
            if read not in seen:
                seen.add(read)
                stack.append(read)


def roots(fusion: Fusion, space: Space) -> list[Read]:
    """Return where a kernel begins to read: at its outputs, and what it folds."""
    found = [(t, space.points[t]) for t in fusion.outputs]
    found += [(r.source, space.source_point(r)) for r in fusion.reductions]
    found += [(p.source, point) for p, point in space.crossed.items()]
    found += [(s.source, space.points[s.result]) for s in fusion.scans]
    return list(dict.fromkeys(found))


def _misread(fusion: Fusion, space: Space) -> Mismatch | None:
    """Refuse what would read a reduction or scan at a point where it is not evaluated.

    Refuse too what reads its tensors at too many points: k rotations in a row read
    2**k of them, and a kernel that computes everything so often is better cut. That one
    operation reads a tensor at many, as a join of equal parts does, no cut can change.
    """
    for total in fusion.partial_sums:
        if fusion.users[total.result]:
            return Mismatch("a partial sum is read by its own kernel", total.result)
    budget = POINTS * _work(fusion.exprs) + _repeated(fusion.exprs) + SPARE
    for tensor, point in reads(fusion, roots(fusion, space)):
        expr = fusion.definition[tensor]
        folds = isinstance(expr, Reduce | Scan)
        if folds and point.index != space.points[tensor].index:
            kind = "scan" if isinstance(expr, Scan) else "reduction"
            return Mismatch(f"a {kind} is read at another index", tensor)
        budget -= _work((expr,))
        if budget < 0:
            return Mismatch("it is evaluated at too many indices", tensor)
    return None


def _repeated(exprs: Iterable[Expr]) -> int:
    """Count the operands that their operation has already."""
    read = [sources(e) for e in exprs]
    return sum(len(tensors) - len(set(tensors)) for tensors in read)


def _work(exprs: Iterable[Expr]) -> int:
    """Count operations, costly ones several times."""
    return sum(4 if isinstance(e, Pointwise) and e.op.is_costly else 1 for e in exprs)
