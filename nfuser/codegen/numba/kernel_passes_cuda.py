# SPDX-License-Identifier: Apache-2.0
"""Numba's passes for CUDA that kernels need: the same PTX as all of them give, sooner.

What is left out inlines closures and functions, unrolls over literals, prunes branches
and rewrites: kernels have nothing for it.
"""

# numba-cuda ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba.cuda import compiler
from numba.cuda.core import config, postproc
from numba.cuda.core import typed_passes as typed
from numba.cuda.core import untyped_passes as untyped
from numba.cuda.core.callconv import CUDACallConv
from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.core.compiler_machinery import PassManager
from numba.cuda.cudadrv import nvvm
from numba.cuda.descriptor import cuda_target
from numba.cuda.flags import CUDAFlags
from numba.cuda.types import void
from numba.cuda.utils import numba_target_override

from nfuser.codegen.numba.patches.call_typing import CallTypes
from nfuser.codegen.numba.patches.liveness import followed_once

if TYPE_CHECKING:
    from collections.abc import Callable

_CALL_TYPES = CallTypes()


class _Compiler(compiler.CUDACompiler):
    def define_pipelines(self) -> list[Any]:
        passes = PassManager("kernel")
        for step in (
            compiler.CUDATranslateBytecode,
            untyped.FixupArgs,
            untyped.IRProcessing,
            untyped.ReconstructSSA,
            typed.NopythonTypeInference,
            typed.PreLowerStripPhis,
        ):
            passes.add_pass(step, step.__name__)
        lowering = self.define_cuda_lowering_pipeline(self.state)
        passes.passes.extend(lowering.passes)
        passes.finalize()
        return [passes]


def compile_ptx(
    function: Callable[..., None],
    arguments: tuple[Any, ...],
    cc: tuple[int, int],
    launch_bounds: int | tuple[int, ...] | None,
) -> str:
    """Return the PTX of a kernel with arguments of these types."""
    flags: Any = CUDAFlags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    flags.nvvm_options = {"fastmath": False, "opt": 3 if config.OPT else 0}
    flags.compute_capability = cc
    target, context = cuda_target.target_context, cuda_target.typing_context
    known, once = _CALL_TYPES.known_to(context), followed_once(postproc)
    with global_compiler_lock, numba_target_override(), known, once:
        made = compiler.compile_extra(
            context,
            target,
            function,
            arguments,
            void,
            flags,
            {},
            pipeline_class=_Compiler,
            call_conv=CUDACallConv(target),
            abi_info={},
        )
        library = made.library
        library.finalize()
        name = made.fndesc.llvm_func_name
        kernel = library.get_function(name)
        library._entry_name = name
        compiler.kernel_fixup(kernel, False)
        nvvm.set_launch_bounds(kernel, launch_bounds)
        (ptx,) = library.get_asm_strs(cc=cc)
    return ptx
