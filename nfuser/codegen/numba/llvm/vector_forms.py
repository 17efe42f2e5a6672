# SPDX-License-Identifier: Apache-2.0
"""Functions of vectors, which LLVM calls in loops that it vectorizes."""

# llvmlite carries no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir

if TYPE_CHECKING:
    from collections.abc import Mapping


def name_forms(function: Any, forms: Mapping[int, Any]) -> None:
    """Say which functions do for so many lanes what ``function`` does for one."""
    operands = "v" * len(function.args)
    names = [
        f"_ZGV_LLVM_N{lanes}{operands}_{function.name}({form.name})"
        for lanes, form in forms.items()
    ]
    # llvmlite knows no attributes with values, but prints what it holds.
    set.add(function.attributes, f'"vector-function-abi-variant"="{",".join(names)}"')


def keep(module: Any, functions: list[Any]) -> None:
    """Keep functions that nothing calls before LLVM vectorizes, as they are."""
    if not functions:
        return
    pointer = ir.IntType(8).as_pointer()
    kind = ir.ArrayType(pointer, len(functions))
    used: Any = ir.GlobalVariable(module, kind, "llvm.compiler.used")
    used.initializer = ir.Constant(kind, [x.bitcast(pointer) for x in functions])
    used.linkage, used.section = "appending", "llvm.metadata"
