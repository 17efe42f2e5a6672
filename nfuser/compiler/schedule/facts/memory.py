# SPDX-License-Identifier: Apache-2.0
"""The tensors of a fusion that lie in memory, and facts about them all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nfuser.compiler.ir.fusion import remembered
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.schedule.facts.facts import address
from nfuser.compiler.schedule.facts.layout import StrideStep, pattern, strides_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.domains.maps import Point
    from nfuser.compiler.domains.space import Space
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Facts
    from nfuser.compiler.schedule.facts.layout import Patterns

INT32_LIMIT = 2**31 - 1  # elements: the greatest index of 32 bits


@remembered
def memory_tensors(fusion: Fusion) -> tuple[TensorView, ...]:
    """Return arguments passed by reference, then outputs: the order of parameters."""
    arguments = (a.result for a in fusion.arguments if not a.by_value)
    return (*arguments, *fusion.outputs)


@remembered
def memory_numbers(fusion: Fusion) -> Mapping[TensorView, int]:
    """Return the number of each memory tensor, the first of those that it has."""
    numbered = reversed(list(enumerate(memory_tensors(fusion))))
    return {tensor: number for number, tensor in numbered}


def patterns(fusion: Fusion, facts: Facts) -> tuple[tuple[StrideStep, ...], ...]:
    """Return the stride pattern of every memory tensor."""
    tensors = memory_tensors(fusion)
    if not facts.target.has_vectors:
        return tuple(pattern(tensor, facts) for tensor in tensors)
    number = {t: k for k, t in enumerate(tensors)}
    firsts = {facts.between[t] for t in tensors if t in facts.between}
    outputs = set(fusion.outputs)
    found: list[tuple[StrideStep, ...]] = []
    for tensor in tensors:
        after = number.get(facts.between.get(tensor, tensor), -1)
        # A vector that is stored with gaps is stored element by element, and slowly.
        alone = after in (-1, number[tensor])
        with_gaps = alone and tensor in outputs and tensor not in firsts
        steps = pattern(tensor, facts, None if with_gaps else -1 if alone else after)
        found.append(steps)
    return tuple(found)


def interleaved(fusion: Fusion, found: Patterns) -> dict[TensorView, TensorView]:
    """Return what lies between another's elements, each one after its fellow."""
    tensors = memory_tensors(fusion)
    return {
        tensor: tensors[step.after]
        for tensor, steps in zip(tensors, found, strict=True)
        for step in steps
        if step.after >= 0
    }


def strides(
    fusion: Fusion, found: tuple[tuple[StrideStep, ...], ...]
) -> dict[TensorView, tuple[Scalar, ...]]:
    """Return the strides of every memory tensor as scalars."""
    pairs = zip(memory_tensors(fusion), found, strict=True)
    return {t: strides_of(t, k, steps) for k, (t, steps) in enumerate(pairs)}


def row_begin(
    fusion: Fusion,
    space: Space,
    leader: tuple[int, Point] | None,
    strides: Mapping[TensorView, tuple[Scalar, ...]],
) -> Scalar | None:
    """Return where the rows begin that packets are counted by, if some are."""
    if leader is None:
        return None
    number, point = leader
    where = address(point, strides[memory_tensors(fusion)[number]])
    zeros: dict[Scalar, Scalar] = dict.fromkeys(space.reduced, sc.const(0))
    return scalar_walk.substitute([where], zeros)[0]


def elements(tensor: TensorView, facts: Facts) -> int:
    """Count the elements of a tensor that may lie in no memory: its index counts."""
    return math.prod(facts.size(x) for x in tensor.shape)


def needs_wide_index(fusion: Fusion, facts: Facts) -> bool:
    """Tell whether some offset or count does not fit 32 bits."""
    count = max((elements(t, facts) for t in fusion.definition), default=1)
    for tensor in memory_tensors(fusion):
        sizes = [facts.size(x) for x in tensor.shape]
        steps = facts.layouts[tensor].strides
        reach = sum((n - 1) * abs(s) for n, s in zip(sizes, steps, strict=True) if n)
        count = max(count, reach)
    # A factor of two leaves room for the overshoot of the last block.
    return count > INT32_LIMIT // 2
