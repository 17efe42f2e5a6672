# SPDX-License-Identifier: Apache-2.0
"""The module of one CPU kernel, from LLVM's language to an object file.

Numba's libraries are linked with each other, count references and run where they were
compiled. A kernel stands alone and is loaded from its object file: it needs no pass to
bring counts together, and no engine, which would keep its code for ever.
"""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from llvmlite.binding import (
    Target,
    create_new_module_pass_manager,
    get_process_triple,
)
from numba.core import cgutils, config
from numba.core import codegen as library
from numba.core.llvm_bindings import create_pass_builder

from nfuser.codegen.numba.llvm import contexts
from nfuser.codegen.numba.llvm.llvm_passes import run_passes
from nfuser.codegen.numba.llvm.without_lock import emit_object

if TYPE_CHECKING:
    from collections.abc import Generator


class _Library(library.JITCodeLibrary):
    _codegen: Any

    def __init__(self, codegen: Any, name: str) -> None:
        """Begin with nothing.

        What is added comes into a context of its own, which goes with it: the global
        one keeps every name and number that any kernel ever had.
        """
        library.CodeLibrary.__init__(self, codegen, name)
        self._linking_libraries: list[Any] = []
        self._empty = str(codegen._create_empty_module(name))
        self._written: list[tuple[str, str]] = []
        self.said_afterwards = ""
        """A module of what LLVM has to know once it has vectorized."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Add what Numba lowered to."""
        written = cgutils.normalize_ir_text(str(ir_module))
        self._written.append((ir_module.name, written))

    def finalize(self) -> None:
        """Take no more; ``optimize`` does the rest."""
        self._raise_if_finalized()
        if self._linking_libraries:
            message = "a kernel calls a function that stands in another module"
            raise RuntimeError(message)
        self._finalized = True

    def optimize(self) -> None:
        """Let LLVM read what was added, and make it fast.

        No lock need be held: no other library has this context.
        """
        self._codegen._check_llvm_bugs()
        context = contexts.create_context()
        self._final_module = contexts.parse_assembly(self._empty, context)
        for name, written in self._written:
            module = contexts.parse_assembly(written, context)
            module.name = name
            module.verify()
            self.add_llvm_module(module)
        self._optimize_final_module()
        if self.said_afterwards:
            self._say(
                contexts.parse_assembly(self._empty + self.said_afterwards, context)
            )
        self._final_module.verify()

    def _say(self, module: Any) -> None:
        """Let what functions do stand where they are called."""
        self._final_module.link_in(module)
        passes = create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_instruction_combine_pass()
        with self._codegen.tools() as (_, builder):
            run_passes(passes, builder, self._final_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave to the passes of the whole module what Numba does twice."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        with self._codegen.tools() as (_, builder):
            passes = builder.getModulePassManager()
            run_passes(passes, builder, self._final_module)

    def emit(self) -> bytes:
        """Return the object file."""
        with self._codegen.tools() as (machine, _):
            return emit_object(machine, self._final_module)


class KernelCodegen(library.JITCPUCodegen):
    """Compiles for this processor, as Numba does."""

    _library_class = _Library

    def _create_empty_module(self, name: str) -> Any:
        """Return a module of what one kernel is lowered to; LLVM is not asked."""
        module = ir.Module(cgutils.normalize_ir_text(name))
        module.triple = self._triple
        if self._data_layout:  # none as Numba's begins
            module.data_layout = self._data_layout
        return module

    @cached_property
    def _triple(self) -> str:
        return get_process_triple()

    def _customize_tm_options(self, options: dict[str, Any]) -> None:
        super()._customize_tm_options(options)
        self._options = options
        self._idle: list[tuple[Any, Any]] = []

    @contextmanager
    def tools(self) -> Generator[tuple[Any, Any]]:
        """Lend a target machine and its builder of passes to one thread.

        They serve many kernels: llvmlite leaves something of each builder behind.
        """
        try:
            lent = self._idle.pop()
        except IndexError:
            target = Target.from_triple(self._triple)
            machine = target.create_target_machine(**self._options)
            lent = (
                machine,
                create_pass_builder(
                    machine,
                    opt=config.OPT,
                    loop_vectorize=config.LOOP_VECTORIZE,
                    slp_vectorize=config.SLP_VECTORIZE,
                ),
            )
        try:
            yield lent
        finally:
            self._idle.append(lent)
