# SPDX-License-Identifier: Apache-2.0
"""The conversion from f64 to f16 that LLVM calls by name and no library here has.

LLVM may join a rounding to f32 and one to f16 where the result allows it, and then
wants ``__truncdfhf2``. A missing symbol would end the process.
"""

# llvmlite ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from functools import cache
from typing import Any

NAME = "__truncdfhf2"


@cache
def install() -> Any:
    """Make the symbol known to LLVM; return the engine that owns its code."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        jit=True,
    )
    module = llvm.parse_assembly(str(_module()))
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    llvm.add_symbol(NAME, engine.get_function_address(f"nfuser{NAME}"))
    return engine


def _module() -> Any:
    """Round to odd in f32 first: the second rounding is then the only one."""
    from llvmlite import ir

    module = ir.Module("half")
    f64, f32, i32 = ir.DoubleType(), ir.FloatType(), ir.IntType(32)
    kind = ir.FunctionType(ir.HalfType(), [f64])
    function = ir.Function(module, kind, f"nfuser{NAME}")
    b = ir.IRBuilder(function.append_basic_block())
    x = function.args[0]
    near = b.fptrunc(x, f32)
    back = b.fpext(near, f64)
    size = ir.Function(module, ir.FunctionType(f64, [f64]), "llvm.fabs.f64")
    bits = b.bitcast(near, i32)
    is_beyond = b.fcmp_ordered(">", b.call(size, [back]), b.call(size, [x]))
    toward_zero = b.select(is_beyond, b.sub(bits, i32(1)), bits)
    is_inexact = b.fcmp_ordered("!=", back, x)
    odd = b.select(is_inexact, b.or_(toward_zero, i32(1)), bits)
    b.ret(b.fptrunc(b.bitcast(odd, f32), ir.HalfType()))
    return module
