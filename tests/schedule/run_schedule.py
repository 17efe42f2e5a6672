# SPDX-License-Identifier: Apache-2.0
"""Run a fusion by a schedule of the test's own making, in the interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from nfuser.codegen.printers.cuda import print_cuda
from nfuser.compiler.domains.space import Space, find_space
from nfuser.compiler.ir.verify import verify_fusion
from nfuser.compiler.lower.lowering import lower
from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.schedule.facts.facts import Facts, TensorLayout
from nfuser.compiler.schedule.facts.target import H200
from nfuser.compiler.schedule.heuristics.heuristics import (
    ChainHeuristic,
    HorizontalHeuristic,
    SerialHeuristic,
)
from nfuser.compiler.schedule.registry import find_scheduler
from nfuser.compiler.schedule.scheduled import Scheduled
from nfuser.compiler.segment import segment
from nfuser.compiler.segment.both_ways import sums_across
from nfuser.compiler.segment.segmented import Segment, Segmented
from nfuser.execution.device.describe.descriptor import CPU, Library
from nfuser.execution.host.call.evaluate import Evaluator
from nfuser.execution.host.call.program import Slot, SlotPart
from nfuser.execution.runtime.kernel_runtime import CompiledSegment, FusionKernelRuntime
from nfuser.execution.runtime.planning.build_program import build_program
from tests.hand_built import settle, sizes_of, traced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic, PartHeuristic
    from nfuser.compiler.schedule.scheduled import Scheduler

Array = np.ndarray[Any, Any]
CUDA = H200


class Call:
    """One call of one fusion that a single kernel can run, or of its first kernel."""

    def __init__(
        self, function: Callable[..., Any], *arrays: Array, computes: bool = True
    ) -> None:
        self.arrays = arrays
        expected: Any = function(*arrays) if computes else ()
        self.expected: tuple[Any, ...] = (
            expected if isinstance(expected, tuple) else (expected,)
        )
        shapes = [a.shape for a in arrays]
        concrete = rewrite(settle(traced(function, *arrays), *shapes))
        self.fusion = concrete.fusion
        if not computes and sums_across(self.fusion):
            self.fusion = segment(self.fusion, find_scheduler).segments[0].fusion
        found = find_scheduler(self.fusion)
        assert not isinstance(found, tuple), found
        self.scheduler = cast("Scheduler", found)
        self.facts = _facts(self.fusion, arrays)

    def size(self, loop: int) -> int:
        """Return the extent of one of the loops of the fusion's space."""
        space = find_space(self.fusion)
        assert isinstance(space, Space)
        return self.facts.size(space.loops[loop].extent)

    def heuristic(self) -> PartHeuristic:
        """Return what the scheduler would choose."""
        chosen = self.scheduler.heuristic(self.fusion, self.facts)
        whole = (HorizontalHeuristic, ChainHeuristic, SerialHeuristic)
        assert not isinstance(chosen, whole)
        return chosen

    def apply(self, heuristic: Heuristic) -> Scheduled:
        """Return the schedule for ``heuristic``."""
        scheduled = self.scheduler.apply(self.fusion, heuristic, CUDA)
        assert isinstance(scheduled, Scheduled)
        verify_fusion(scheduled.fusion)
        return scheduled

    def check(self, scheduled: Scheduled, *, exactly: bool = False) -> None:
        """Lower, print and interpret ``scheduled``; compare with NumPy."""
        nearness = 0.0 if exactly else 2e-5
        for got, want in zip(self._run(scheduled), self.expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=nearness, atol=nearness)

    def _run(self, scheduled: Scheduled) -> list[Array]:
        source = print_cuda(lower(scheduled))
        inputs = tuple(a.result for a in self.fusion.arguments)
        piece = Segment(self.fusion, inputs, self.scheduler)
        compiled = CompiledSegment(piece, source, source)
        runtime = FusionKernelRuntime(
            Segmented(self.fusion, (piece,), ()),
            (scheduled.heuristic,),
            (compiled,),
            1,
            0,
            0,
        )
        slots = {t: self._slot(t) for t in (*inputs, *self.fusion.outputs)}
        program = build_program(
            runtime,
            self.facts,
            {t: SlotPart(slot) for t, slot in slots.items()},
            tuple(slots[t] for t in inputs),
            tuple(slots[t] for t in self.fusion.outputs),
        )
        evaluator = Evaluator(program, Library.NUMPY, CPU, "interpret")
        given = {
            slots[t]: (array, array.ctypes.data)
            for t, array in zip(inputs, self.arrays, strict=True)
        }
        return evaluator(given, {}, {})[0]

    def _slot(self, tensor: Any) -> Slot:
        shape = tuple(self.facts.size(x) for x in tensor.shape)
        return Slot("t", shape, self.facts.layouts[tensor].strides, tensor.dtype)


def _facts(fusion: Fusion, arrays: Sequence[Array]) -> Facts:
    sizes = sizes_of(*(a.shape for a in arrays))
    layouts: dict[Any, TensorLayout] = {}
    for argument, array in zip(fusion.arguments, arrays, strict=True):
        steps = tuple(s // array.itemsize for s in array.strides)
        address = array.ctypes.data
        layouts[argument.result] = TensorLayout(steps, min(address & -address, 16))
    facts = Facts(sizes, layouts, CUDA)
    for tensor in fusion.outputs:
        shape = [facts.size(x) for x in tensor.shape]
        steps = np.cumprod([1, *shape[:0:-1]])[::-1][: len(shape)]
        layouts[tensor] = TensorLayout(tuple(int(s) for s in steps), 16)
    return facts
