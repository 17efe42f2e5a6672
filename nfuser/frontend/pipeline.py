# SPDX-License-Identifier: Apache-2.0
"""The whole compiler as one column: what ``fuse`` does, without its caches.

Each line is one stage, a function from one frozen value to the next; between them stand
caches (``nfuser/execution/runtime/``), so that a call repeats only what its numbers
change. Where a stage is a tuple of passes, the comment says where to read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.concretize import answer, concretize, questions
from nfuser.compiler.ir.scalars.scalar_walk import evaluate_all
from nfuser.compiler.lower.lowering import lower
from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.schedule.facts.facts import Facts, TensorLayout
from nfuser.compiler.schedule.facts.memory import memory_tensors
from nfuser.compiler.schedule.registry import find_scheduler
from nfuser.compiler.segment import segment
from nfuser.compiler.trace import call_of, trace_function
from nfuser.execution.runtime.compile.executable import print_kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.codegen.printers.source import Source
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.target import Target
    from nfuser.compiler.schedule.scheduled import Scheduler

ALIGNMENT = 16  # bytes to which arrays are taken to be aligned


def kernels(
    function: Callable[..., Any], *arrays: Any, target: Target
) -> tuple[Source, ...]:
    """Return the kernels of ``function`` for NumPy ``arrays`` in C order.

    >>> import numpy as np
    >>> from nfuser.compiler.schedule.facts.target import CPU
    >>> (source,) = kernels(lambda x: x * 2 + 1, np.ones((3, 4)), target=CPU)
    >>> source.entry
    'lambda_kernel'
    """
    sizes: dict[Scalar, int] = {
        scalar_symbols.size(slot, axis): extent
        for slot, array in enumerate(arrays)
        for axis, extent in enumerate(array.shape)
    }
    traced = trace_function(function, call_of(arrays))  # callable → Fusion
    if traced.raised is not None:
        raise traced.raised.taken()
    asked = questions(traced.fusion)
    answers = answer(traced.fusion, asked, sizes)
    concrete = concretize(traced.fusion, asked, answers)
    rewritten = rewrite(concrete)  # PASSES of compiler/rewrite/passes.py
    segmented = segment(rewritten.fusion, find_scheduler)  # SCHEDULERS of registry.py
    made: list[Source] = []
    for piece in segmented.kernels:
        facts = Facts(sizes, _layouts(piece.fusion, sizes), target)
        scheduler = cast("Scheduler", piece.scheduler)
        heuristic = scheduler.heuristic(piece.fusion, facts)  # CHOICES of a scheduler
        schedule = scheduler.apply(piece.fusion, heuristic, target)
        kernel = lower(
            schedule
        )  # VECTOR_PASSES, BLOCK_PASSES of compiler/lower/lowering.py
        made.append(print_kernel(kernel))
    return tuple(made)


def _layouts(
    fusion: Fusion, sizes: Mapping[Scalar, int]
) -> dict[TensorView, TensorLayout]:
    """Return the layouts of all that ``fusion`` reads and stores, in C order."""
    found: dict[TensorView, TensorLayout] = {}
    for tensor in memory_tensors(fusion):
        step, strides = 1, list[int]()
        for extent in reversed(evaluate_all(tensor.shape, sizes)):
            strides.append(step)
            step *= extent
        found[tensor] = TensorLayout(tuple(reversed(strides)), ALIGNMENT)
    return found
