# SPDX-License-Identifier: Apache-2.0
"""Compile one emitted CPU kernel to an object file."""

# Numba carries few types.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from nfuser.base.collector import no_collection
from nfuser.codegen.load import load_function
from nfuser.codegen.numba.compiler_lock import COMPILER
from nfuser.codegen.numba.which_parts import compiled, is_public
from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.codegen.numba.kernel_lowering import LoweredKernel


def compile_cpu(source_text: str, entry: str, signature: str) -> MachineCode:
    """Compile a kernel; arguments do not alias, and arithmetic is as written."""
    given = source_text, entry, signature
    with COMPILER, no_collection():
        try:
            return compiled(partial(_by_private, *given), partial(_by_public, *given))
        except Exception as error:
            message = f"kernel {entry} did not compile: {error}\n{source_text}"
            raise CompileError(message) from error


def begin_cpu(
    source_text: str, entry: str, signature: str
) -> Callable[[], MachineCode]:
    """Do Numba's part of ``compile_cpu``; return what does LLVM's, in any thread.

    LLVM lets go of Python's lock: Numba may begin with the next kernel meanwhile.
    """
    whole = partial(compile_cpu, source_text, entry, signature)
    if is_public():
        return whole
    with COMPILER, no_collection():
        try:
            made = _lowered(source_text, entry, signature)
        except Exception:  # noqa: BLE001 (the whole says what, or does without)
            return whole

    def finish() -> MachineCode:
        try:
            return _optimized(made)
        except Exception:  # noqa: BLE001 (the whole says what, or does without)
            return whole()

    return finish


@cache
def _arguments(signature: str) -> tuple[Any, ...]:
    from numba.core.sigutils import normalize_signature

    return normalize_signature(signature)[0]


def _by_private(text: str, entry: str, signature: str) -> MachineCode:
    return _optimized(_lowered(text, entry, signature))


def _lowered(text: str, entry: str, signature: str) -> LoweredKernel:
    """Lower a kernel as it is printed, or let Numba read one that says more."""
    from numba.core.errors import TypingError

    from nfuser.codegen.numba.kernel_lowering import (
        LoweredKernel,
        NotPrintedError,
        lower_source,
    )
    from nfuser.codegen.numba.kernel_target import lower_kernel

    arguments = _arguments(signature)
    try:
        return lower_source(text, entry, arguments)
    except (NotPrintedError, TypingError):
        made = lower_kernel(load_function(text, entry)[0], arguments)
        return LoweredKernel(made.library, made.fndesc.llvm_func_name)


def _optimized(made: LoweredKernel) -> MachineCode:
    made.library.optimize()
    return MachineCode(made.library.emit(), made.name)


def _by_public(text: str, entry: str, signature: str) -> MachineCode:
    from nfuser.codegen.numba.public import compile_public

    return compile_public(load_function(text, entry)[0], signature)
