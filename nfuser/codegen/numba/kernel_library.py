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

from numba.core import cgutils, codegen

from nfuser.codegen.numba.llvm import contexts
from nfuser.codegen.numba.llvm.llvm_passes import run_passes


class _Library(codegen.JITCodeLibrary):
    def __init__(self, codegen: Any, name: str) -> None:
        """Make a module in a context of its own, which goes with it.

        The global one keeps every name and number that any kernel ever had.
        """
        super().__init__(codegen, name)
        self._context = contexts.create_context()
        empty = str(self._final_module)
        self._final_module = contexts.parse_assembly(empty, self._context)

    def add_ir_module(self, ir_module: Any) -> None:
        """Add what Numba lowered to."""
        written = cgutils.normalize_ir_text(str(ir_module))
        module = contexts.parse_assembly(written, self._context)
        module.name = ir_module.name
        module.verify()
        self.add_llvm_module(module)

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            run_passes(*self._codegen._function_pass_manager(), function)

    def _optimize_final_module(self) -> None:
        run_passes(*self._codegen._module_pass_manager(), self._final_module)

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def emit(self) -> bytes:
        """Return the object file."""
        return bytes(self._codegen._tm.emit_object(self._final_module))


class KernelCodegen(codegen.JITCPUCodegen):
    """Compiles for this processor, as Numba does."""

    _library_class = _Library

    @cached_property
    def _only_builder(self) -> Any:
        return super()._pass_builder()

    def _pass_builder(self, **_options: Any) -> Any:
        """Return one for all kernels: llvmlite leaves something of each behind."""
        return self._only_builder
