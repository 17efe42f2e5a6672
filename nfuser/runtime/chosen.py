# SPDX-License-Identifier: Apache-2.0
"""The heuristics of a call: chosen by some process, and told to those that begin alike.

To choose them takes as long as to trace a function whose kernels are on disk. It needs
the points at which each piece reads, which nobody else asks for then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from nfuser.ir.identity import spelled, structure
from nfuser.runtime.disk.plans import find_plan, keep_plan
from nfuser.runtime.kernel_runtime import heuristics_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nfuser.ir.tensor import TensorView
    from nfuser.runtime.plan import Concretization
    from nfuser.schedule.facts.facts import Facts
    from nfuser.schedule.heuristics.heuristics import Heuristic
    from nfuser.segment import Segmented

_PACKET = 16  # bytes that move at once at most: a choice asks for no more alignment


def first_heuristics(found: Concretization, facts: Facts) -> tuple[Heuristic, ...]:
    """Return ``heuristics_for`` the first call of a concretization in this process.

    Later calls, of other sizes, choose anew: what each leaves would be a file for each.
    Open numbers have to be asked, so that it is known what was asked of them.
    """
    given = _said(found.segmented, facts)
    if not _is_closed(given):
        return heuristics_for(found.segmented, facts)
    said = structure(found.rewritten.fusion).digest, repr(given), spelled(facts.target)
    depends = ("heuristics", *said)
    known = find_plan(depends, lambda kept: _checked(found.segmented, kept))
    if known is None:
        known = heuristics_for(found.segmented, facts)
        keep_plan(depends, found.segmented.fusion.name, known)
    return known


def _said(segmented: Segmented, facts: Facts) -> tuple[Any, ...]:
    """Return in numbers all that heuristics are chosen by, but the target."""
    tensors = {t: k for k, t in enumerate(dict.fromkeys(_in_memory(segmented)))}
    sizes = sorted((scalar.key, size) for scalar, size in facts.sizes.items())
    laid = (facts.layouts.get(t) for t in tensors)
    layouts = tuple(x and (*x.strides, min(x.alignment, _PACKET)) for x in laid)
    pairs = ((k, facts.between.get(t)) for t, k in tensors.items())
    between = tuple((k, tensors[t]) for k, t in pairs if t is not None and t in tensors)
    return tuple(sizes), layouts, between


def _in_memory(segmented: Segmented) -> Iterator[TensorView]:
    for piece in segmented.kernels:
        yield from (argument.result for argument in piece.fusion.arguments)
        yield from piece.fusion.outputs


def _is_closed(given: object) -> bool:
    """Tell whether each number is one of Python's own, which notes no question."""
    stack = [given]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack.extend(cast("tuple[object, ...]", item))
        elif item is not None and type(item) is not int:
            return False
    return True


def _checked(segmented: Segmented, kept: Any) -> tuple[Heuristic, ...]:
    if len(kept) != len(segmented.kernels):
        message = f"expected {len(segmented.kernels)} heuristics, found {len(kept)}"
        raise ValueError(message)
    return kept
