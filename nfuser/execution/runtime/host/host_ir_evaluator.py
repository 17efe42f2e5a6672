# SPDX-License-Identifier: Apache-2.0
"""``nfuser.HostIrEvaluator``: runs a host program, and compiles what it launches."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nfuser.compiler.concretize import DEFAULT_RESIZE, check_policy
from nfuser.compiler.ir.fusion import Fusion
from nfuser.execution.device.describe.descriptor import Library, library_of
from nfuser.execution.host.ir.host_ir import HostProgram
from nfuser.execution.host.run.arrays_of import share_memory
from nfuser.execution.host.run.callee import flat
from nfuser.execution.host.run.interpreter import Interpreter
from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
from nfuser.execution.runtime.host.linked_calls import LinkedCalls
from nfuser.execution.runtime.tables.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.base.debug.timeline import Timeline
    from nfuser.compiler.concretize import ResizePolicy
    from nfuser.execution.host.mesh.communicator import Communicator

_log = logging.getLogger("nfuser")


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
        self._interpreter = Interpreter(program, self._call, number_of_streams)
        self._linked = (
            LinkedCalls(program, backend, self._cache_of, number_of_streams)
            if cache
            else None
        )

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
        if plain and self._linked is not None and not isinstance(inputs, Mapping):
            return self._run_linked(self._linked, inputs)
        return self._interpreter(inputs, outputs, communicator, timeline)

    def _run_linked(self, linked: LinkedCalls, inputs: Sequence[Any]) -> list[Any]:
        """Run in one go what was seen before; let the interpreter run what is left.

        A linked program writes into no input. So where it fails the interpreter runs
        it again, and says which statement does; if none does, linking is at fault.
        """
        try:
            found = linked.run(inputs)
        except Exception as error:  # noqa: BLE001 (the interpreter meets it again)
            found = self._interpreter(inputs)
            message = "%s failed linked, and not statement by statement"
            _log.error(message, self.program.name, exc_info=error)
        return self._interpreter(inputs) if found is None else found

    def clear(self) -> None:
        """Forget what was compiled."""
        self._caches.clear()
        self._inner.clear()
        if self._linked is not None:
            self._linked.clear()

    def _call(self, function: Any, operands: list[Any], outs: list[Any]) -> list[Any]:
        if isinstance(function, Fusion):
            return self._cache_of(function).run(operands, outs)
        if isinstance(function, HostProgram | HostIrEvaluator):
            wanted = outs if any(out is not None for out in outs) else ()
            found = self._evaluator_of(function).run(operands, wanted)
            return _own_each(found, operands, outs)
        execute = getattr(function, "execute", None)
        if execute is not None:
            return execute(operands)
        return _own_each(flat(function(*operands)), operands, outs)

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
                number_of_streams=self._interpreter.streams,
                backend=self._backend,
                resize=self._resize,
                cache=self._is_cached,
            )

        return self._inner.get(inner, make)[0]


def _own_each(found: Sequence[Any], operands: list[Any], outs: list[Any]) -> list[Any]:
    """Return results no two of which, nor any operand, share memory."""
    given: list[Any] = []
    for made in found:
        given.append(_own(made, [*operands, *given], outs))
    return given


def _own(made: Any, operands: list[Any], outs: list[Any]) -> Any:
    """Return a copy of what a function gave back of memory that others have."""
    library = library_of(type(made))
    if library is None or any(made is out for out in outs):
        return made
    others = [x for x in operands if library_of(type(x)) is library]
    if not any(share_memory(library, made, x) for x in others):
        return made
    return made.clone() if library is Library.TORCH else made.copy()
