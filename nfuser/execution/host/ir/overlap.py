# SPDX-License-Identifier: Apache-2.0
"""Statements whose result may lie in what they read.

NumPy reads an element before it writes over it, whatever overlaps. Other libraries
refuse, or multiply and fold what they have written already.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.tensor import TensorView
from nfuser.execution.device.describe.descriptor import Library, describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.host.ir.memory import MemoryOwners
    from nfuser.execution.host.ir.statements import Compute, Statement, View
    from nfuser.execution.host.run.frame import RunFrame

    ReadsLate: TypeAlias = Callable[[RunFrame, Any], bool]

_ELEMENTWISE = (st.Set, st.UnaryOp, st.BinaryOp)


class Overlap:
    """Tells which statements of ``program`` could read what they have overwritten.

    ``updated`` are the inputs that the program writes.
    """

    def __init__(self, program: HostProgram, memory: MemoryOwners) -> None:
        values = (x.value for x in program.inputs)
        self._inputs = {x for x in values if isinstance(x, TensorView)}
        self._memory = memory
        stmts = list(st.walk(program.body))
        made = [memory.root(t) for s in stmts for t in _written(s, memory)]
        uses_streams = any(isinstance(s, st.SetStream) for s in stmts)
        self.updated = frozenset(made) & self._inputs
        self._updated = self.updated if uses_streams else frozenset[TensorView]()

    def among_inputs(self, frame: RunFrame) -> bool:
        """Tell whether inputs that are written overlap others, on several streams.

        Which statements wait for which was decided as if they did not.
        """
        if not self._updated or not frame.library.device.is_cuda:
            return False
        spans = {t: describe(frame.arrays[t], "an input") for t in self._inputs}
        return any(
            spans[t].meets(d)
            for t in self._updated
            for u, d in spans.items()
            if u is not t
        )

    def reads_late(self, stmt: Compute | View) -> ReadsLate:
        """Return what tells whether ``stmt`` may, if it writes a given array."""
        is_elementwise = isinstance(stmt, _ELEMENTWISE)
        owner, target_root = self._memory.owner, self._memory.root(stmt.result)
        own, others = set[TensorView](), set[TensorView]()
        for t in st.reads(stmt):
            root = self._memory.root(t)
            if root is target_root:
                own.add(owner.get(t, t))
            elif root in self._inputs and target_root in self._inputs:
                others.add(owner.get(t, t))  # new arrays share memory with nothing
        if is_elementwise:
            own.discard(owner.get(stmt.result, stmt.result))
        if not own | others or isinstance(stmt, st.Communicate):
            return lambda frame, out: False

        def ask(frame: RunFrame, out: Any) -> bool:
            if frame.library.library is Library.NUMPY:
                return False
            keys = own | others if self._inputs_meet(frame) else own
            if not keys:
                return False
            target = describe(out, "a result")
            for key in keys:
                d = describe(frame.arrays[key], "an operand")
                is_same = d == target and is_elementwise
                if d.meets(target) and not is_same:
                    return True
            return False

        return ask

    def _inputs_meet(self, frame: RunFrame) -> bool:
        """Tell whether any two inputs overlap: asked once in a run."""
        if frame.inputs_meet is None:
            found = (describe(frame.arrays[t], "an input") for t in self._inputs)
            spans = sorted(d.span for d in found if 0 not in d.shape)
            # Where any two meet, so do two that begin one after the other.
            frame.inputs_meet = any(a[1] > b[0] for a, b in pairwise(spans))
        return frame.inputs_meet


def _written(stmt: Statement, memory: MemoryOwners) -> tuple[TensorView, ...]:
    return () if memory.is_view(stmt) else st.writes(stmt)
