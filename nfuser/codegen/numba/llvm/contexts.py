# SPDX-License-Identifier: Apache-2.0
"""LLVM's contexts, which end when their last module has ended, and not before.

A module that is disposed of after its context takes the process with it. Where both are
in one cycle of references, as a traceback through a compile makes one, Python's
collector ends them in any order.
"""

# llvmlite carries no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from nfuser.codegen.numba.llvm.without_lock import without_lock


class _Context(llvm.ContextRef):
    def __init__(self, pointer: Any) -> None:
        super().__init__(pointer)
        self._modules = 0
        self._left: Any = None  # the pointer, once only modules need it

    def enter(self) -> None:
        """Count one more module."""
        self._modules += 1

    def leave(self) -> None:
        """Count one module less; the last one ends what nobody else holds."""
        self._modules -= 1
        if self._left is not None and not self._modules:
            ffi.lib.LLVMPY_ContextDispose(self._left)
            self._left = None

    def _dispose(self) -> None:
        if self._modules:
            self._left = self._ptr
        else:
            super()._dispose()


class _Module(llvm.ModuleRef):
    def __init__(self, pointer: Any, context: Any) -> None:
        super().__init__(pointer, context)
        context.enter()

    def clone(self) -> _Module:
        """Return a copy, in the same context."""
        found = super().clone()
        return _taken(found)

    def detach(self) -> None:
        """Let go of the module, which is disposed of by now, or another's."""
        was_closed = self._closed
        super().detach()
        if not was_closed:
            self._context.leave()


def _taken(module: Any) -> _Module:
    made = _Module(module._ptr, module._context)
    module.detach()
    return made


def create_context() -> Any:
    """Return a new context."""
    return _Context(ffi.lib.LLVMPY_ContextCreate())


def parse_assembly(text: str, context: Any) -> Any:
    """Return the module that ``text`` says, in what ``create_context`` gave."""
    with ffi.OutputString() as error:
        found = without_lock("ParseAssembly")(context, text.encode(), error)
        made = _Module(found, context)
        if error:
            made.close()
            raise RuntimeError(f"LLVM does not read this: {error}")
    return made
