# SPDX-License-Identifier: Apache-2.0
"""Which tensors of a program share memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import nfuser.host.statements as st
from nfuser.host.host_ir import owners

if TYPE_CHECKING:
    from nfuser.host.host_ir import HostProgram
    from nfuser.ir.tensor import TensorView

_VIEWS: tuple[type, ...] = get_args(st.View)


class Memory:
    """Finds whose memory a tensor uses: an alias its owner's, a view its source's.

    A reshape may be a copy; here it is taken for a view.
    """

    def __init__(self, program: HostProgram) -> None:
        self.owner = owners(program.aliases)
        stmts = list(st.walk(program.body))
        own = {s.result for s in stmts if isinstance(s, st.Allocate)}
        self._source = {
            t: st.reads(s)[0]
            for s in stmts
            if isinstance(s, _VIEWS)
            for t in st.writes(s)
            if t not in own and t not in self.owner
        }

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
