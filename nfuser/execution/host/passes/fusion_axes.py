# SPDX-License-Identifier: Apache-2.0
"""Which slices of its inputs a fusion needs for one slice of its outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.slices import source_axes
from nfuser.compiler.ir import expr as ex
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.errors import UnsupportedError
from nfuser.execution.host.ir.rules import FOLDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView


def input_axes(fusion: Fusion, axes: Sequence[int]) -> dict[int, int | None]:
    """Return, by slot, the axis of each array that is sliced, or None if it is whole.

    ``axes`` are those of the outputs along which a slice is wanted. A fusion that needs
    more than the slice with the same number is refused.
    """
    return _found(fusion, dict(zip(fusion.outputs, axes, strict=True)))


def folded_axes(fusion: Fusion) -> Iterator[tuple[str, dict[int, int | None]]]:
    """Yield the ways in which parts of the inputs give parts of a fold.

    Each is the fold that completes the parts of the only output, with the axis of each
    input along which it has parts.
    """
    (output,) = fusion.outputs
    last = fusion.definition[output]
    while isinstance(last, ex.ExpandDims) or _is_copy(last):
        last = fusion.definition[ex.sources(last)[0]]
    if not isinstance(last, ex.Reduce) or last.op.value not in FOLDS:
        return
    for axis in last.axes:
        try:
            yield last.op.value, _found(fusion, {last.source: axis})
        except UnsupportedError:
            continue


def _is_copy(expr: ex.Expr) -> bool:
    return isinstance(expr, ex.Pointwise) and expr.op.name == "copy"


def _found(fusion: Fusion, wanted: Mapping[TensorView, int]) -> dict[int, int | None]:
    """Return the axes of the inputs for slices of some tensors."""
    finder = _Finder(fusion)
    for tensor, axis in wanted.items():
        finder.need(tensor, axis)
    for expr in reversed(fusion.exprs):
        for result in ex.results(expr):
            if result in finder.needs:
                finder.visit(expr, finder.needs[result])
    arguments = [a for a in fusion.arguments if not a.by_value]
    found = {a.slot: finder.needs.get(a.result) for a in arguments}
    _check_sizes(fusion, found, finder.needs)
    return found


def _check_sizes(
    fusion: Fusion,
    found: Mapping[int, int | None],
    needs: Mapping[TensorView, int | None],
) -> None:
    """Refuse to slice what has a fixed size, or whose size counts elsewhere, too."""
    sliced: set[Scalar] = set()
    for argument in fusion.arguments:
        axis = found.get(argument.slot)
        if axis is None:
            continue
        extent = argument.result.shape[axis]
        if isinstance(extent, sc.Const):
            raise _refusal(fusion, "an input of fixed size", argument.result)
        sliced.update(
            [scalar_symbols.size(argument.slot, axis), *scalar_walk.symbols([extent])]
        )
    for expr in fusion.exprs:
        numbers = list(_numbers(expr))
        for tensor in ex.results(expr):
            if tensor in needs:
                own = needs[tensor]
                numbers += [n for k, n in enumerate(tensor.shape) if k != own]
        if not sliced.isdisjoint(scalar_walk.symbols(numbers)):
            raise _refusal(fusion, "the size as a number", ex.results(expr)[0])
        if isinstance(expr, ex.Expand) and (own := needs.get(expr.result)) is not None:
            extent = expr.result.shape[own]
            is_new = (
                expr.result.ndim - own > expr.source.ndim or needs[expr.source] is None
            )
            if is_new and sliced.isdisjoint(scalar_walk.symbols([extent])):
                raise _refusal(fusion, "an expand", expr.result)


def _numbers(expr: ex.Expr) -> Iterator[Scalar]:
    match expr:
        case ex.FromScalar(scalar):
            yield scalar
        case ex.Slice(_, _, starts):
            yield from starts
        case ex.Pad(_, _, _, lefts):
            yield from lefts
        case ex.Remap(_, _, index):
            yield from index
        case _:
            pass


def _refusal(fusion: Fusion, what: str, at: TensorView) -> UnsupportedError:
    line = at.source.note if at.source else ""
    message = f"{fusion.name}: {what} needs more than one slice of a stream axis{line}"
    return UnsupportedError(message)


class _Finder:
    """Goes from outputs to inputs; None stands for a tensor that is needed whole."""

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self.needs: dict[TensorView, int | None] = {}

    def need(self, tensor: TensorView, axis: int | None) -> None:
        """Note which slices of ``tensor`` are read."""
        if self.needs.setdefault(tensor, axis) != axis:
            raise _refusal(self.fusion, "what is also read otherwise", tensor)

    def visit(self, expr: ex.Expr, axis: int | None) -> None:
        """Note what ``expr`` reads for a slice of its result along ``axis``."""
        sources = ex.sources(expr)
        own = [None] * len(sources) if axis is None else self._axes(expr, axis)
        for source, place in zip(sources, own, strict=True):
            self.need(source, place)

    def _axes(self, expr: ex.Expr, axis: int) -> Sequence[int | None]:
        found = source_axes(expr, axis)
        if found is None:
            name = type(expr).__name__.lower()
            what = f"{'an' if name[0] in 'eio' else 'a'} {name}"
            raise _refusal(self.fusion, what, ex.results(expr)[0])
        return found
