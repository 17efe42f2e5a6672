# SPDX-License-Identifier: Apache-2.0
"""How a reshape decomposes: which runs of axes turn into which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.functions as scalar_functions
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.expr import Group
    from nfuser.compiler.ir.scalars.scalar import Scalar


@value
class ReshapePattern:
    """A reshape as squeeze, then merges and splits, then broadcast.

    ``squeezed`` source axes and ``broadcast`` result axes have extent 1. Each group
    pairs a run of the other source axes with a run of result axes of the same product.
    """

    squeezed: tuple[int, ...]
    groups: tuple[Group, ...]
    broadcast: tuple[int, ...]

    def constraints(
        self, old: Sequence[Scalar], new: Sequence[Scalar]
    ) -> list[tuple[Scalar, Scalar]]:
        """Return what must be equal, in every call that has this pattern."""
        one = sc.const(1)
        ones = [(old[k], one) for k in self.squeezed]
        ones += [(new[k], one) for k in self.broadcast]
        pairs = [
            (
                scalar_functions.product(old[k] for k in left),
                scalar_functions.product(new[k] for k in right),
            )
            for left, right in self.groups
        ]
        return [(a, b) for a, b in ones + pairs if a is not b]


def analyze_reshape(old: Sequence[int], new: Sequence[int]) -> ReshapePattern:
    """Return how sizes ``old`` turn into ``new``; the products are equal.

    >>> analyze_reshape((6, 1, 5), (2, 3, 5)).groups
    (((0,), (0, 1)), ((2,), (2,)))
    """
    if 0 in old:
        return ReshapePattern((), (), ())
    wide = [k for k, n in enumerate(old) if n != 1]
    kept = [k for k, n in enumerate(new) if n != 1]
    groups = tuple(
        (tuple(wide[k] for k in left), tuple(kept[k] for k in right))
        for left, right in reshape_groups(
            [old[k] for k in wide], [new[k] for k in kept]
        )
    )
    squeezed = (k for k, n in enumerate(old) if n == 1)
    broadcast = (k for k, n in enumerate(new) if n == 1)
    return ReshapePattern(tuple(squeezed), groups, tuple(broadcast))


def reshape_groups(old: Sequence[int], new: Sequence[int]) -> list[Group]:
    """Return the shortest runs of equal product, left to right; no size is 0.

    Sizes of 1 at the end of ``new`` join the last run.

    >>> reshape_groups((4, 6), (2, 2, 3, 2))
    [((0,), (0, 1)), ((1,), (2, 3))]
    """
    groups: list[Group] = []
    i = j = 0
    while i < len(old) or j < len(new):
        left, right = [i] if i < len(old) else [], [j] if j < len(new) else []
        first = old[i] if left else 1
        second = new[j] if right else 1
        i, j = i + len(left), j + len(right)
        while first != second:
            if first < second:
                first *= old[i]
                left.append(i)
                i += 1
            else:
                second *= new[j]
                right.append(j)
                j += 1
        groups.append((tuple(left), tuple(right)))
    return groups
