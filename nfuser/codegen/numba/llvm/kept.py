# SPDX-License-Identifier: Apache-2.0
"""Functions of a module that nothing calls yet, which LLVM shall not take away."""

# llvmlite carries no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir


def keep(module: Any, functions: list[Any]) -> None:
    """Keep ``functions`` until LLVM has vectorized, with the parameters they have."""
    if not functions:
        return
    pointer = ir.IntType(8).as_pointer()
    kind = ir.ArrayType(pointer, len(functions))
    used: Any = ir.GlobalVariable(module, kind, "llvm.compiler.used")
    used.initializer = ir.Constant(kind, [x.bitcast(pointer) for x in functions])
    used.linkage, used.section = "appending", "llvm.metadata"
