# SPDX-License-Identifier: Apache-2.0
"""Compile a kernel by what Numba and llvmlite document, and by nothing else.

This is the reference for what nfuser does with parts that Numba keeps to itself: they
compile in less time, and tell LLVM that arrays do not overlap. Where those parts have
changed, this takes their place.
"""

# Numba and llvmlite carry few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingImports=false, reportPrivateImportUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.codegen.objects.machine_code import MachineCode

if TYPE_CHECKING:
    from collections.abc import Callable


def compile_public(function: Callable[..., None], signature: str) -> MachineCode:
    """Compile a CPU kernel with ``numba.njit``, and keep nothing else that it made."""
    import llvmlite.binding as llvm
    from numba import njit

    from nfuser.codegen.numba.llvm import contexts

    alone: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made: Any = njit(signature, error_model="numpy", **alone)(function)
    (text,) = made.inspect_llvm().values()
    module = contexts.parse_assembly(text, contexts.create_context())
    defined = [x for x in module.functions if not x.is_declaration]
    (entry,) = (x for x in defined if x.linkage is llvm.Linkage.external)
    for value in (*defined, *module.global_variables):
        if value.name != entry.name and not value.is_declaration:
            value.linkage = "internal"
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="static",
        codemodel="large",  # for memory anywhere: what it calls may be far away
        jit=True,
    )
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=0)
    passes.run(module, llvm.create_pass_builder(machine, options))
    return MachineCode(machine.emit_object(module), entry.name)


def public_ptx(
    function: Callable[..., None],
    signature: str,
    cc: tuple[int, int],
    launch_bounds: int | tuple[int, ...] | None,
) -> str:
    """Return the PTX of a CUDA kernel as ``numba.cuda.compile`` gives it."""
    from numba import cuda

    options: Any = {"device": False, "abi": "numba", "launch_bounds": launch_bounds}
    ptx, _ = cuda.compile(function, signature, cc=cc, output="ptx", **options)
    return ptx
