# SPDX-License-Identifier: Apache-2.0
"""Which tensors of a program share memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.tensor import TensorView
from nfuser.execution.host.ir.host_ir import owners

if TYPE_CHECKING:
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.host.ir.statements import Statement

_VIEWS: tuple[type, ...] = get_args(st.View)


class MemoryOwners:
    """Finds whose memory a tensor uses: an alias its owner's, a view its source's.

    A reshape may be a copy; here it is taken for a view.
    """

    def __init__(self, program: HostProgram) -> None:
        self.owner = owners(program.aliases)
        self._source: dict[TensorView, TensorView] = {}
        self._copies: set[Statement] = set()
        inputs = (x.value for x in program.inputs)
        known = {*self.owner, *(x for x in inputs if isinstance(x, TensorView))}
        for stmt in st.walk(program.body):
            # What gives a tensor first gives it memory; later ones write there.
            new = [t for t in st.writes(stmt) if t not in known]
            if isinstance(stmt, _VIEWS):
                self._source |= {t: st.reads(stmt)[0] for t in new}
                if not new:
                    self._copies.add(stmt)
            known.update(new)

    def is_view(self, stmt: Statement) -> bool:
        """Tell whether ``stmt`` gives a view, and writes nothing."""
        return isinstance(stmt, _VIEWS) and stmt not in self._copies

    def root(self, tensor: TensorView) -> TensorView:
        """Return the tensor that has the memory."""
        tensor = self.owner.get(tensor, tensor)
        while tensor in self._source:
            tensor = self._source[tensor]
            tensor = self.owner.get(tensor, tensor)
        return tensor

    def views(self) -> dict[TensorView, list[TensorView]]:
        """Return the views of each tensor that has memory."""
        found: dict[TensorView, list[TensorView]] = {}
        for view in self._source:
            found.setdefault(self.root(view), []).append(view)
        return found


def updated_inputs(program: HostProgram) -> frozenset[TensorView]:
    """Return the inputs that ``program`` writes."""
    memory = MemoryOwners(program)
    inputs = {x.value for x in program.inputs}
    stmts = (s for s in st.walk(program.body) if not memory.is_view(s))
    made = (memory.root(t) for s in stmts for t in st.writes(s))
    return frozenset(t for t in made if t in inputs)
