# SPDX-License-Identifier: Apache-2.0
"""A target of Numba's for CPU kernels, which knows what they are made of and no more.

Numba's own knows all of Python and NumPy: it takes half a second to import, most of the
first compilation of a process. Kernels are loops, arithmetic and primitives.
"""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from numba.core import compiler, dispatcher, postproc, types
from numba.core import typed_passes as typed
from numba.core import untyped_passes as untyped
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.config import MACHINE_BITS
from numba.core.cpu import CPUContext
from numba.core.externals import c_math_functions
from numba.core.registry import CPUTarget
from numba.core.target_extension import (
    CPU,
    dispatcher_registry,
    jit_registry,
    target_override,
    target_registry,
)

from nfuser.base.locks import cached_property
from nfuser.codegen.numba.kernel_library import KernelCodegen
from nfuser.codegen.numba.llvm.loop_lanes import close_marked_loops
from nfuser.codegen.numba.llvm.vector_forms import keep
from nfuser.codegen.numba.patches.call_typing import CallTypes
from nfuser.codegen.numba.patches.liveness import followed_once

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "nfuser"
_CALL_TYPES = CallTypes()


class _Context(CPUContext):
    def init(self) -> None:
        """Do what Numba's does, whose codegen would make an engine that none needs."""
        self.is32bit = MACHINE_BITS == 32
        self._internal_codegen = KernelCodegen("nfuser")
        self._sizes: dict[str, int] = {}
        c_math_functions.install(self)

    def get_abi_sizeof(self, ty: Any) -> int:
        """Return the bytes of a type, of which Numba would make a module each time."""
        name = str(ty)
        if name not in self._sizes:
            self._sizes[name] = super().get_abi_sizeof(ty)
        return self._sizes[name]

    def load_additional_registries(self) -> None:
        for name in ("builtins", "numbers", "rangeobj", "tupleobj"):
            import_module(f"numba.cpython.{name}")

    def post_lowering(self, mod: Any, library: Any) -> None:
        """Link nothing: Numba's would link its memory management."""
        close_marked_loops(mod)
        from nfuser.codegen.primitives.cpu.apart import functions_apart
        from nfuser.codegen.primitives.cpu.math.lookup import leave_open

        apart = functions_apart(mod)
        opened, library.said_afterwards = leave_open(mod)
        keep(mod, apart + opened)


class _Target(CPUTarget):
    @cached_property
    def _toplevel_target_context(self) -> _Context:
        return _Context(self.typing_context, NAME)


class _Dispatcher(dispatcher.Dispatcher):
    targetdescr = _Target(NAME)


class _Kernels(CPU):
    """Finds what is defined for any target, and for CPUs."""


class _Compiler(compiler.Compiler):
    """The passes that kernels need: no closures, lists, parallel loops or rewrites.

    Nothing that a kernel names counts references: so none is deleted where it ends.
    """

    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("kernel")
        for step in (
            untyped.TranslateByteCode,
            untyped.FixupArgs,
            untyped.IRProcessing,
            untyped.ReconstructSSA,
            typed.NopythonTypeInference,
            typed.PreLowerStripPhis,
            typed.NativeLowering,
            typed.NoPythonBackend,
        ):
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]


target_registry[NAME] = _Kernels
dispatcher_registry[_Kernels] = _Dispatcher
jit_registry[_Kernels] = jit_registry[CPU]  # asked for before any overload is tried


def contexts_of_kernels() -> tuple[Any, Any]:
    """Return what types and what lowers kernels, with all that is defined by now."""
    described: Any = _Dispatcher.targetdescr
    typing, target = described.typing_context, described.target_context
    typing.refresh()
    target.refresh()
    return typing, target


def compile_kernel(function: Callable[..., None], arguments: tuple[Any, ...]) -> Any:
    """Return what Numba gives for ``function``, with arguments of these types."""
    made = lower_kernel(function, arguments)
    made.library.optimize()
    return made


def lower_kernel(function: Callable[..., None], arguments: tuple[Any, ...]) -> Any:
    """Return the same before LLVM has seen it: ``optimize`` its library.

    Numba reads the function, so it may say more than printed kernels do.
    """
    flags: Any = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.no_compile = True  # no kernel is called from Numba
    flags.error_model = "numpy"
    flags.noalias = True
    flags.nrt = False
    target = _Dispatcher.targetdescr
    context = target.typing_context
    known, once = _CALL_TYPES.known_to(context), followed_once(postproc)
    with global_compiler_lock, target_override(NAME), known, once:
        made = compiler.compile_extra(
            context,
            target.target_context,
            function,
            arguments,
            types.void,
            flags,
            {},
            pipeline_class=_Compiler,
        )
        made.library.finalize()
    return made
