# SPDX-License-Identifier: Apache-2.0
"""What must be known of a call: size classes, patterns of reshapes, resized axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.concretize.shape_errors import check
from nfuser.compiler.domains.reshape import ReshapePattern, analyze_reshape
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import Concatenate, Loop, Pad, Reshape, Resize, Slice
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Const, Scalar, ScalarInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView

MANY = 2
Triple: TypeAlias = tuple[int, int, int]
# Resized axes without their extents: no static triple has a negative extent.
TRIVIAL: Triple = (-1, -1, -1)
BROADCAST: Triple = (-1, 1, 1)
ITERATION: Triple = (-1, 2, 2)


@value
class Resized:
    """One axis of a resized source: ``left`` and ``right`` elements are added to it.

    A negative number drops elements instead.
    """

    number: int  # of the expression among every one of its fusion
    part: int  # of the source in its expression
    axis: int
    extent: Scalar
    left: Scalar
    right: Scalar


@value
class Questions:
    """The extents whose size class decides the form of a fusion, and what else does."""

    extents: tuple[Scalar, ...]
    reshapes: tuple[int, ...]  # numbers among every expression of the fusion
    resized: tuple[Resized, ...]

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """All that is evaluated to answer.

        An integer of the call in one of them decides, as sizes do, what is built; one
        that is in no extent may decide it for other integers as well.
        """
        widths = (x for r in self.resized for x in (r.extent, r.left, r.right))
        return tuple(dict.fromkeys((*self.extents, *widths)))

    @property
    def integers(self) -> frozenset[ScalarInput]:
        """The integers of the call that decide."""
        asked = scalar_walk.symbols(self.scalars)
        return frozenset(s for s in asked if isinstance(s, ScalarInput))


@value
class Answers:
    """The class of each extent asked for: 0, 1 or MANY; then the other answers.

    A resized axis is (extent, left, right) where extents are compiled in, else one of
    TRIVIAL, BROADCAST and ITERATION. ``sizes`` are all extents asked for, where those
    are compiled in.
    """

    classes: tuple[int, ...]
    patterns: tuple[ReshapePattern, ...] = ()
    resized: tuple[Triple, ...] = ()
    sizes: tuple[int, ...] = ()


def questions(fusion: Fusion) -> Questions:
    """Return what is open in ``fusion``: each symbolic extent once, in order."""
    extents = (extent for shape in _shapes(fusion) for extent in shape)
    reshapes: list[int] = []
    resized: list[Resized] = []
    for number, expr in enumerate(fusion.every):
        if isinstance(expr, Reshape):
            reshapes.append(number)
        elif isinstance(expr, Resize):
            resized.extend(_resized(number, expr))
    unknown = (e for e in dict.fromkeys(extents) if not isinstance(e, Const))
    return Questions(tuple(unknown), tuple(reshapes), tuple(resized))


def _shapes(fusion: Fusion) -> dict[tuple[Scalar, ...], None]:
    """Return each shape once: most tensors share one with others."""
    return dict.fromkeys([t.shape for t in fusion.tensors])


def _resized(number: int, expr: Resize) -> list[Resized]:
    match expr:
        case Slice(source, result, starts, steps):
            lefts = [[-start for start in starts]]
            parts = (source,)
            axes = [k for k, step in enumerate(steps) if step == 1]
        case Pad(source, _, result, left):
            lefts, parts, axes = [list(left)], (source,), list(range(result.ndim))
        case Concatenate(parts, result, axis):
            axes = [axis]
            lefts: list[list[Scalar]] = []
            begin: Scalar = sc.const(0)
            for part in parts:
                lefts.append([begin] * result.ndim)
                begin = begin + part.shape[axis]
    found: list[Resized] = []
    for place, (part, left) in enumerate(zip(parts, lefts, strict=True)):
        for k in axes:
            extent = part.shape[k]
            right = result.shape[k] - extent - left[k]
            found.append(Resized(number, place, k, extent, left[k], right))
    return found


def answer(
    fusion: Fusion,
    asked: Questions,
    values: Mapping[Scalar, int],
    *,
    static: bool = False,
    exact: bool = False,
) -> Answers:
    """Return the answers for one call; sizes that do not fit are refused here.

    ``static`` compiles the extents of resized axes in, ``exact`` all.
    """
    sizes = scalar_walk.evaluate_all(asked.extents, values)
    known: dict[Scalar, int] = dict(zip(asked.extents, sizes, strict=True))
    of_call = {
        shape: tuple([e.value if isinstance(e, Const) else known[e] for e in shape])
        for shape in _shapes(fusion)
    }
    shapes = {t: of_call[t.shape] for t in fusion.tensors}
    for expr in _run(fusion, values):
        check(expr, shapes)
    patterns = (_pattern(fusion, number, shapes) for number in asked.reshapes)
    return Answers(
        tuple(min(s, MANY) for s in sizes),
        tuple(patterns),
        _triples(fusion, asked.resized, values, static),
        tuple(map(int, sizes)) if exact else (),
    )


def _run(fusion: Fusion, values: Mapping[Scalar, int]) -> Iterator[Expr]:
    """Give each expression, but for bodies that calls of these sizes never run."""
    for expr in fusion.exprs:
        if isinstance(expr, Loop):
            if _never_runs(expr, values):
                continue
            yield from _run(expr.body, values)
        yield expr


def _never_runs(loop: Loop, values: Mapping[Scalar, int]) -> bool:
    """Tell whether sizes alone say so; an integer of the call may be another later."""
    if loop.trips is None:
        return False
    inputs = scalar_walk.symbols([loop.trips])
    by_size = not any(isinstance(s, ScalarInput) for s in inputs)
    return by_size and not scalar_walk.evaluate(loop.trips, values)


def _pattern(
    fusion: Fusion, number: int, shapes: Mapping[TensorView, tuple[int, ...]]
) -> ReshapePattern:
    expr = fusion.every[number]
    assert isinstance(expr, Reshape)
    return analyze_reshape(shapes[expr.source], shapes[expr.result])


def _triples(
    fusion: Fusion,
    resized: tuple[Resized, ...],
    values: Mapping[Scalar, int],
    static: bool,
) -> tuple[Triple, ...]:
    numbers = (x for r in resized for x in (r.extent, r.left, r.right))
    flat = iter(scalar_walk.evaluate_all(numbers, values))
    found: list[Triple] = []
    for one, extent, left, right in zip(resized, flat, flat, flat, strict=True):
        # An empty part is left out; what it was beside may be all there is.
        is_part = isinstance(fusion.every[one.number], Concatenate)
        whole = extent + left + right
        # What is asked first rules most out, whatever an open integer is.
        if whole == extent and left == 0:
            found.append(TRIVIAL)
        elif static and not (is_part and extent == 0):
            found.append((int(extent), int(left), int(right)))
        else:
            found.append(BROADCAST if whole == 1 else ITERATION)
    return tuple(found)
