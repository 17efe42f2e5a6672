# SPDX-License-Identifier: Apache-2.0
"""Compile one emitted CPU kernel to an object file."""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

from functools import cache, partial
from typing import Any

from nfuser.codegen.load import load_function
from nfuser.codegen.numba.collector import no_collection
from nfuser.codegen.numba.compiler_lock import COMPILER
from nfuser.codegen.numba.which_parts import compiled
from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.errors import CompileError


def compile_cpu(source_text: str, entry: str, signature: str) -> MachineCode:
    """Compile a kernel; arguments do not alias, and arithmetic is as written."""
    with COMPILER, no_collection():
        try:
            function, _ = load_function(source_text, entry)
            return compiled(
                partial(_by_private, function, signature),
                partial(_by_public, function, signature),
            )
        except Exception as error:
            message = f"kernel {entry} did not compile: {error}\n{source_text}"
            raise CompileError(message) from error


@cache
def _arguments(signature: str) -> tuple[Any, ...]:
    from numba.core.sigutils import normalize_signature

    return normalize_signature(signature)[0]


def _by_private(function: Any, signature: str) -> MachineCode:
    from nfuser.codegen.numba.kernel_target import compile_kernel

    made = compile_kernel(function, _arguments(signature))
    return MachineCode(made.library.emit(), made.fndesc.llvm_func_name)


def _by_public(function: Any, signature: str) -> MachineCode:
    from nfuser.codegen.numba.public import compile_public

    return compile_public(function, signature)
