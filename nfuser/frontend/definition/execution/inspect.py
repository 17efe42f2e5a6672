# SPDX-License-Identifier: Apache-2.0
"""What ``fd.fec`` shows: the kernels and schedules of calls, under nvFuser's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from nfuser.compiler.schedule.printed import text as schedule_text
from nfuser.frontend.definition.refused import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.execution.runtime.planning.plan import Plan
    from nfuser.frontend.explain.kernels import KernelView


class InspectedCalls(Protocol):
    """A definition, as far as it is asked here."""

    @property
    def fusion(self) -> Fusion:
        """The fusion in nfuser's IR."""
        ...

    def is_compiled(self, inputs: Sequence[Any]) -> bool:
        """Tell whether a call would compile nothing."""
        ...

    def kernels(self, inputs: Sequence[Any]) -> list[KernelView]:
        """Return the kernels of a call."""
        ...

    def plan(self, inputs: Sequence[Any]) -> Plan:
        """Return what is decided for a call."""
        ...


class ExecutorView:
    """The executor cache of a definition, to be asked about calls."""

    def __init__(self, calls: InspectedCalls) -> None:
        self._calls = calls

    def is_compiled(self, inputs: Sequence[Any] = (), device: Any = None) -> bool:
        """Tell whether a call with ``inputs`` would find all it needs made."""
        del device  # it is where the arrays are
        return self._calls.is_compiled(inputs)

    def fusion(self) -> Fusion:
        """Return the fusion in nfuser's IR."""
        return self._calls.fusion

    def get_cuda_kernel(
        self,
        inputs: Sequence[Any] = (),
        intrinsic_code: bool = False,
        device: Any = None,
    ) -> str:
        """Return the source of the kernels of a call, which is Python for Numba.

        Its primitives are functions: ``intrinsic_code`` adds nothing.
        """
        del intrinsic_code, device
        return "\n\n".join(kernel.source for kernel in self._calls.kernels(inputs))

    def get_scheduled_ir(
        self,
        inputs: Sequence[Any] = (),
        tensor_transforms: bool = False,
        device: Any = None,
    ) -> str:
        """Return the loops of the kernels of a call, and where its tensors lie."""
        del tensor_transforms, device
        runtime = self._calls.plan(inputs).runtime
        return "\n".join(schedule_text(piece.scheduled) for piece in runtime.segments)

    def get_most_recent_scheduled_ir(self, tensor_transforms: bool = False) -> None:
        """Refuse: calls leave nothing behind but kernels."""
        del tensor_transforms
        refuse("get_most_recent_scheduled_ir", "write fd.fec.get_scheduled_ir(inputs)")
