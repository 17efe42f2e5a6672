# SPDX-License-Identifier: Apache-2.0
"""The module of one CPU kernel, from LLVM's language to an object file.

Numba's libraries are linked with each other, count references and run where they were
compiled. A kernel stands alone and is loaded from its object file: it needs no pass to
bring counts together, and no engine, which would keep its code for ever.
"""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false
# pyright: reportMissingTypeStubs=false, reportUntypedBaseClass=false
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

from functools import cached_property
from typing import Any

from llvmlite import ir
from llvmlite.binding import get_process_triple
from numba.core import cgutils
from numba.core import codegen as library

from nfuser.codegen.numba.llvm import contexts
from nfuser.codegen.numba.llvm.llvm_passes import run_passes


class _Library(library.JITCodeLibrary):
    def __init__(self, codegen: Any, name: str) -> None:
        """Begin with nothing.

        What is added comes into a context of its own, which goes with it: the global
        one keeps every name and number that any kernel ever had.
        """
        library.CodeLibrary.__init__(self, codegen, name)
        self._linking_libraries: list[Any] = []
        self._empty = str(codegen._create_empty_module(name))
        self._written: list[tuple[str, str]] = []

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

        Numba's lock need not be held: no other library has this context.
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
        self._final_module.verify()

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            run_passes(*self._codegen._function_pass_manager(), function)

    def _optimize_final_module(self) -> None:
        run_passes(*self._codegen._module_pass_manager(), self._final_module)

    def emit(self) -> bytes:
        """Return the object file."""
        return bytes(self._codegen._tm.emit_object(self._final_module))


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

    @cached_property
    def _only_builder(self) -> Any:
        return super()._pass_builder()

    def _pass_builder(self, **_options: Any) -> Any:
        """Return one for all kernels: llvmlite leaves something of each behind."""
        return self._only_builder
