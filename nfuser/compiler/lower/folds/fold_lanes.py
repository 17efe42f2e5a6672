# SPDX-License-Identifier: Apache-2.0
"""Sums of exponentials, a step of lanes at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.lower.folds import fold
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    Element,
    For,
    Let,
    Number,
    SetElement,
    Var,
)

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Reduce
    from nfuser.compiler.lower.cuda.combine import Combiner
    from nfuser.compiler.lower.elements.values import Values
    from nfuser.compiler.lower.kernel.kernel_ir import Stmt


def fold_lanes(
    values: Values,
    combiner: Combiner,
    reduce: Reduce,
    state: fold.State,
    after: list[Stmt],
) -> None:
    """Fold the exponentials of one step: the largest of all lanes comes first."""
    assert values.tile is not None
    space = values.scheduled.space
    element = values.value(reduce.source, space.source_point(reduce))
    dtype = element.dtype
    largest, total = Var(dtype, reduce.result), Var(dtype, reduce.result)
    lowest, zero = fold.initial(reduce)
    values.tile.stmts.append(Let(largest, lowest))
    values.tile.stmts.append(Let(total, Number(zero.value, dtype)))
    lanes = values.array(dtype, values.lane_size)
    values.emit(SetElement(lanes, values.lane_index, element))
    values.emit(Let(largest, Call("maximum", (largest, element), dtype)))
    each = values.loops.make(lanes.size)
    has_near = values.scheduled.target.has_blocks
    each_of = Element(lanes, each)
    power = fold.exponential(reduce, each_of, largest, has_near=has_near)
    add = Let(total, Call("add", (total, power), dtype))
    after.append(For(each, each.extent, (add,)))
    with values.block() as body:
        combiner.join(reduce, state, [largest, total])
    after.extend(body)
