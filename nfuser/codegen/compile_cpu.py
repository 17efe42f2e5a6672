# SPDX-License-Identifier: Apache-2.0
"""Compile one emitted CPU kernel to machine code in this process."""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from nfuser.codegen import half_support
from nfuser.codegen.compiler_lock import COMPILER
from nfuser.codegen.load import load_function
from nfuser.errors import CompileError

if TYPE_CHECKING:
    from nfuser.codegen.source import Source


@dataclass(frozen=True, slots=True)
class CpuBinary:
    """Machine code of one kernel; ``library`` owns it."""

    address: int
    library: Any

    @property
    def assembly(self) -> str:
        """The machine code as text."""
        return self.library.get_asm_str()


def compile_cpu(source: Source) -> CpuBinary:
    """Compile ``source``; arguments do not alias, and arithmetic is as written."""
    with COMPILER:
        try:
            half_support.install()
            function, _ = load_function(source.text, source.entry)
            return _compiled(function, source.signature)
        except Exception as error:
            message = f"kernel {source.entry} did not compile: {error}\n{source.text}"
            raise CompileError(message) from error


@cache
def _arguments(signature: str) -> tuple[Any, ...]:
    from numba.core.sigutils import normalize_signature

    return normalize_signature(signature)[0]


def _compiled(function: Any, signature: str) -> CpuBinary:
    from numba.core import compiler, types
    from numba.core.registry import cpu_target

    flags: Any = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    flags.noalias = True
    flags.nrt = False
    made = compiler.compile_extra(
        cpu_target.typing_context,
        cpu_target.target_context,
        function,
        _arguments(signature),
        types.void,
        flags,
        {},
    )
    address = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
    return CpuBinary(address, made.library)
