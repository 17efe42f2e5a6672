# SPDX-License-Identifier: Apache-2.0
"""Calls of a definition: run, check, profile and explain them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.config as config
from nfuser.base.debug import dump
from nfuser.base.locks import ForkSafeLock
from nfuser.compiler.ir.text import text
from nfuser.compiler.ir.verify import verify_once
from nfuser.errors import ArgumentError
from nfuser.execution.runtime.caches import shared_cache
from nfuser.execution.runtime.tables.counters import Counters
from nfuser.frontend.check import compare, to_numpy
from nfuser.frontend.definition.execution.inspect import ExecutorView
from nfuser.frontend.definition.execution.profile import profiled
from nfuser.frontend.definition.execution.repro import is_fault, note_fault, script_for
from nfuser.frontend.definition.execution.run import DefinitionCounts, Runner
from nfuser.frontend.definition.execution.trie import Trie
from nfuser.frontend.definition.operations.stored import bytes_of, floats_of, format_of
from nfuser.frontend.definition.options import check_device, check_options
from nfuser.frontend.explain.kernels import KernelView
from nfuser.frontend.fuse.dynamo import graph_break

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from nfuser.compiler.concretize import ResizePolicy
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.segment import ShouldMerge
    from nfuser.execution.runtime.planning.plan import Plan
    from nfuser.execution.runtime.tables.counters import CacheInfo
    from nfuser.frontend.definition.draft import Draft
    from nfuser.frontend.definition.execution.profile import FusionProfile
    from nfuser.frontend.explain.explanation import Explanation
    from nfuser.frontend.report.report import Report

DEFINITIONS: Trie[Runner] = Trie()
shared_cache.register_clear(DEFINITIONS.clear)


class Calls:
    """What a definition does once it is complete; its base class."""

    def __init__(
        self,
        draft: Draft,
        backend: str | None,
        resize: ResizePolicy,
        should_merge: ShouldMerge | None,
    ) -> None:
        self._draft = draft
        self._kind: tuple[str | None, ResizePolicy] = backend, resize
        self._should_merge = should_merge
        self._runner: Runner | None = None
        self._counters = Counters()
        self._shares = False  # what it runs was built by an equal definition
        self._lock = ForkSafeLock()
        self._script: str | None = None
        self._profile: FusionProfile | None = None

    def validate_definition(self) -> tuple[bool, str]:
        """Tell whether the definition can run, and why not."""
        if not self._draft.records:
            return False, "Fusion is empty!"
        if not any(record.name == "add_output" for record in self._draft.records):
            return False, "Fusion has no output; call fd.add_output"
        return True, ""

    # -- running -------------------------------------------------------------

    @graph_break
    def execute(
        self,
        inputs: Sequence[Any] = (),
        *,
        device: object = None,
        save_repro_inputs: bool = False,
        profile: bool = False,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> list[Any]:
        """Return the outputs for arrays and numbers, in the order of definition.

        Those that were added with ``alias_input`` are left out. ``device`` is where
        the arrays must be. With ``save_repro_inputs``, ``last_repro_script`` shows
        this call; with ``profile``, ``profile`` and ``get_fusion_profile`` tell of it.
        Options of nvFuser's compiler are taken, and change nothing.
        """
        if _enable_options or _disable_options:
            check_options(*_enable_options, *_disable_options)
        with self._at_own_lines(inputs):
            if device is not None:
                check_device(device, self.plan(inputs).place.device)
            if save_repro_inputs:
                self._script = self.repro_script_for(inputs)
            runner = self._complete()
            if not profile:
                return runner.run(inputs, self._counters)
            outputs, self._profile = profiled(
                lambda: self.plan(inputs),
                lambda: runner.run(inputs, self._counters),
                lambda: runner.look(inputs, Counters()).explanation,
            )
            return outputs

    def validate(
        self,
        inputs: Sequence[Any] = (),
        reference_outputs: Sequence[Any] | None = None,
        device: object = None,
        *,
        rtol: float | None = None,
    ) -> list[Any]:
        """Run, and raise AssertionError where an output is not the reference.

        Without one, it is what the same operations give, each in a kernel of its own.
        The limit is that of ``nfuser.check``. Return the outputs.
        """
        wanted = reference_outputs
        if wanted is None:
            with self._at_own_lines(inputs):
                wanted = self._complete().alone().run(inputs, Counters())
        wanted = [_numbers(array) for array in wanted]
        outputs = self.execute(inputs, device=device)
        if len(outputs) != len(wanted):
            message = f"{len(outputs)} outputs, {len(wanted)} references"
            raise AssertionError(message)
        for number, (found, reference) in enumerate(zip(outputs, wanted, strict=True)):
            compare(number, _numbers(found), reference, rtol, ("here", "there"))
        return outputs

    # -- looking inside ------------------------------------------------------

    @property
    def fusion(self) -> Fusion:
        """The fusion in nfuser's IR; ``str(fd)`` prints it."""
        return self._complete().fusion

    @property
    def fec(self) -> ExecutorView:
        """What was compiled, and for which calls."""
        return ExecutorView(self)

    def plan(self, inputs: Sequence[Any] = ()) -> Plan:
        """Return what is decided for calls like this one; its kernels are compiled."""
        with self._at_own_lines(inputs):
            return self._complete().plan(inputs, self._counters)

    def is_compiled(self, inputs: Sequence[Any] = ()) -> bool:
        """Tell whether a call like this one would compile nothing."""
        return self._complete().has_plan(inputs)

    def kernels(self, inputs: Sequence[Any] = ()) -> list[KernelView]:
        """Return the kernels that a call with ``inputs`` runs."""
        return [KernelView(x.source, x) for x in self.plan(inputs).program.launches]

    def explain(self, inputs: Sequence[Any] = ()) -> Explanation:
        """Say how a call is fused, as ``explain`` of a fused function does."""
        with self._at_own_lines(inputs):
            return self._own_runner().look(inputs, self._counters).explanation

    def report(self, inputs: Sequence[Any] = ()) -> Report:
        """Return a page of how a call is fused, as ``report`` of a fused function does.

        Lines are those that called the operations.
        """
        from nfuser.frontend.report.gather import report_of  # noqa: PLC0415 (few ask for it)

        with self._at_own_lines(inputs):
            runner = self._own_runner()
            seen = runner.look(inputs, self._counters)
            return report_of(None, DefinitionCounts(runner, self._counters), seen)

    def _own_runner(self) -> Runner:
        """Return what has the lines of this definition, not those of an equal one."""
        runner = self._complete()
        if self._shares:
            with self._lock:
                self._draft.write()
                runner = self._built()
        return runner

    def profile(self) -> FusionProfile:
        """Return what the last call with ``profile=True`` took."""
        if self._profile is None:
            message = (
                "call fd.execute(inputs, profile=True) first: nothing was profiled"
            )
            raise ArgumentError(message)
        return self._profile

    def repro_script_for(self, inputs: Sequence[Any] | None = None) -> str:
        """Return a program that makes the definition, and calls it with such inputs.

        Arrays have the dtypes, shapes and strides of ``inputs``, and other elements;
        without inputs, nothing is called.
        """
        return repr(self) if inputs is None else script_for(repr(self), inputs)

    def last_repro_script(self) -> str:
        """Return ``repro_script_for`` of the last call with ``save_repro_inputs``."""
        if self._script is None:
            message = (
                "call fd.execute(inputs, save_repro_inputs=True) first: no inputs were "
                "saved"
            )
            raise ArgumentError(message)
        return self._script

    def cache_info(self) -> CacheInfo:
        """Return how often each level of the caches was asked and had to work."""
        return self._counters.info()

    def why(self) -> str:
        """Say what was new about the last call that compiled."""
        return self._counters.reason

    # -- completing ----------------------------------------------------------

    @contextmanager
    def _at_own_lines(self, inputs: Sequence[Any]) -> Generator[None]:
        """Raise errors of a call that name lines of this definition.

        One that follows another shares what that built, with its lines.
        """
        try:
            yield
        except Exception as error:
            if is_fault(error):
                note_fault(error, repr(self), inputs)
            elif self._shares:
                with self._lock:
                    self._draft.write()
                    own = self._built()
                own.plan(inputs, Counters())
            raise

    def _complete(self) -> Runner:
        with self._lock:
            if self._runner is None:
                self._runner = self._found() or self._recorded()
            return self._runner

    def _found(self) -> Runner | None:
        """Return what an equal definition left, if there was one."""
        self._draft.is_open = False
        node = self._draft.node
        found = None if node is None else DEFINITIONS.leaf(node)
        if found is not None:
            self._counters.reason = "an equal definition had built what it needs"
            self._shares = True
        return found

    def _recorded(self) -> Runner:
        is_valid, problem = self.validate_definition()
        if not is_valid:
            raise ArgumentError(problem)
        self._draft.write()
        made = self._built()
        self._counters.add("traces")
        if config.current().dump or self._should_merge is not None:
            return made
        found = DEFINITIONS.add(self._kind, self._draft.records, made)
        self._shares = found is not made
        return found

    def _built(self) -> Runner:
        draft = self._draft
        fusion = draft.close()
        if config.current().verify:
            verify_once(fusion)
        if dump.wants("fusion"):
            dump.dump("fusion", text(fusion), fusion.name)
        fits = tuple(draft.builder.questions.checks)
        needed = tuple(draft.requirements)
        return Runner(
            fusion,
            draft.inputs,
            needed,
            fits,
            *self._kind,
            aliases=draft.aliases,
            should_merge=self._should_merge,
            stored={
                number: draft.formats[output]
                for number, output in enumerate(draft.outputs)
                if output in draft.formats
            },
        )


def _numbers(array: Any) -> Any:
    """Return an array as one of NumPy's, whose elements can be compared."""
    form = format_of(array)
    if form is None:
        return to_numpy(array)
    return floats_of(to_numpy(bytes_of(array)), form).astype(np.float32)
