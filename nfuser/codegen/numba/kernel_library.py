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

from numba.core import codegen


class _Library(codegen.JITCodeLibrary):
    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def emit(self) -> bytes:
        """Return the object file."""
        return bytes(self._codegen._tm.emit_object(self._final_module))


class KernelCodegen(codegen.JITCPUCodegen):
    """Compiles for this processor, as Numba does."""

    _library_class = _Library
