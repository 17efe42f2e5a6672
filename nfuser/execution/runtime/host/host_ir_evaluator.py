# SPDX-License-Identifier: Apache-2.0
"""``nfuser.HostIrEvaluator``: runs a host program, and compiles what it launches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nfuser.compiler.concretize import DEFAULT_RESIZE, check_policy
from nfuser.compiler.ir.fusion import Fusion
from nfuser.errors import ArgumentError
from nfuser.execution.host.ir.host_ir import HostProgram
from nfuser.execution.host.ir.verify import verify
from nfuser.execution.host.run.callee import flat
from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
from nfuser.execution.runtime.host.linked_calls import LinkedCalls
from nfuser.execution.runtime.tables.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.base.debug.timeline import Timeline
    from nfuser.compiler.concretize import ResizePolicy
    from nfuser.execution.host.mesh.communicator import Communicator


class HostIrEvaluator:
    """Runs ``program`` on arrays of one library and device.

    A fusion that the program launches is compiled for what it is called with: sizes
    and integers that depend on a loop are looked at anew in each iteration. With
    ``cache=False`` it is compiled anew, too. ``timeline`` collects when statements ran.

    >>> import numpy as np
    >>> import nfuser
    >>> hc = nfuser.HostIrContainer()
    >>> x = hc.define_tensor([-1])
    >>> hc.add_output(hc.unary("negative", x))
    >>> HostIrEvaluator(hc.program()).run([np.ones(2, np.float32)])
    [array([-1., -1.], dtype=float32)]
    """

    def __init__(
        self,
        program: HostProgram,
        *,
        number_of_streams: int = 4,
        backend: str | None = None,
        resize: ResizePolicy = DEFAULT_RESIZE,
        cache: bool = True,
    ) -> None:
        check_policy(resize)
        self.program = program
        self._backend = backend
        self._resize: ResizePolicy = resize
        self._is_cached = cache
        self._caches: Memo[Fusion, FusionExecutorCache] = Memo()
        self._inner: Memo[HostProgram, HostIrEvaluator] = Memo()
        if number_of_streams < 1:
            message = f"number_of_streams is at least 1, found {number_of_streams}"
            raise ArgumentError(message)
        verify(program)
        self._streams = number_of_streams
        given = program, backend, number_of_streams
        self._calls = LinkedCalls(*given, self._cache_of, self._call, keeps=cache)

    def run(
        self,
        inputs: Sequence[Any] | Mapping[str, Any],
        outputs: Sequence[Any] = (),
        *,
        communicator: Communicator | None = None,
        timeline: Timeline | None = None,
    ) -> list[Any]:
        """Return the outputs; those in ``outputs`` that are not None are written.

        ``inputs`` are arrays and integers by position or by name.
        """
        plain = not outputs and communicator is None and timeline is None
        if plain and not isinstance(inputs, Mapping):
            found = self._calls.natively(inputs)
            if found is not None:
                return found
        return self._calls.run(inputs, outputs, communicator, timeline)

    def clear(self) -> None:
        """Forget what was compiled."""
        self._caches.clear()
        self._inner.clear()
        self._calls.clear()

    def _call(self, function: Any, operands: list[Any]) -> list[Any]:
        if isinstance(function, Fusion):
            return self._cache_of(function).run(operands)
        if isinstance(function, HostProgram | HostIrEvaluator):
            return self._evaluator_of(function).run(operands)
        execute = getattr(function, "execute", None)
        return flat(function(*operands) if execute is None else execute(operands))

    def _cache_of(self, fusion: Fusion) -> FusionExecutorCache:
        def make() -> FusionExecutorCache:
            return FusionExecutorCache(
                fusion, backend=self._backend, resize=self._resize
            )

        return self._caches.get(fusion, make)[0] if self._is_cached else make()

    def _evaluator_of(self, inner: HostProgram | HostIrEvaluator) -> HostIrEvaluator:
        """Return what runs a program that this one launches: as this one is run."""
        if isinstance(inner, HostIrEvaluator):
            return inner

        def make() -> HostIrEvaluator:
            return HostIrEvaluator(
                inner,
                number_of_streams=self._streams,
                backend=self._backend,
                resize=self._resize,
                cache=self._is_cached,
            )

        return self._inner.get(inner, make)[0]
