# SPDX-License-Identifier: Apache-2.0
"""Compile LLVM's language to an object file, for any processor of this kind."""

# llvmlite carries few types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from nfuser.codegen.numba.compiler_lock import COMPILER
from nfuser.codegen.objects.machine_code import MachineCode


def compile_llvm(text: str, entry: str) -> MachineCode:
    """Compile a module; ``entry`` names what is looked for when it is loaded."""
    with COMPILER:
        import llvmlite.binding as llvm

        from nfuser.codegen.numba.llvm import contexts
        from nfuser.codegen.numba.llvm.llvm_passes import run_passes
        from nfuser.codegen.numba.llvm.without_lock import emit_object

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        # For memory anywhere: what it calls may be far away.
        machine = target.create_target_machine(
            opt=1, reloc="static", codemodel="large", jit=True
        )
        module = contexts.parse_assembly(text, contexts.create_context())
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        run_passes(passes, llvm.create_pass_builder(machine, options), module)
        return MachineCode(emit_object(machine, module), entry)
