# SPDX-License-Identifier: Apache-2.0
"""nfuser: a just-in-time fusion compiler for array functions, in pure Python."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import nfuser.config as _config
from nfuser.codegen.numba.compiler_lock import imported
from nfuser.config import VERSION as __version__  # noqa: N811 (its public name)
from nfuser.errors import NfuserError
from nfuser.frontend.fuse.decorator import fuse
from nfuser.frontend.fuse.fused import Fused

if TYPE_CHECKING:
    from nfuser.base.debug.timeline import Timeline, timeline
    from nfuser.compiler.trace.loops.unroll import unroll
    from nfuser.execution.host.container import HostIrContainer
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
    from nfuser.execution.runtime.host.host_ir_evaluator import HostIrEvaluator
    from nfuser.execution.runtime.kernel_runtime import FusionKernelRuntime
    from nfuser.frontend.call.inputs.spec import Spec
    from nfuser.frontend.check import check
    from nfuser.frontend.definition.definition import FusionDefinition
    from nfuser.frontend.definition.execution.profile import get_fusion_profile
    from nfuser.frontend.definition.inputs import compute_tensor_descriptor
    from nfuser.frontend.definition.types import DataType
    from nfuser.frontend.explain.explanation import Explanation
    from nfuser.frontend.fuse.capture import capture
    from nfuser.frontend.fuse.stages import Compiled, Lowered
    from nfuser.frontend.gradients.checkpoint import (
        checkpoint,
        checkpoint_name,
        checkpoint_policies,
    )
    from nfuser.frontend.gradients.custom import custom_vjp
    from nfuser.frontend.gradients.gradient import grad, value_and_grad
    from nfuser.frontend.gradients.jacobian import hessian, jacfwd, jacrev
    from nfuser.frontend.gradients.linear import hvp, jvp, stop_gradient, vjp
    from nfuser.frontend.report.report import Report
    from nfuser.frontend.vmap import vmap

__all__ = [
    "Compiled",
    "DataType",
    "Explanation",
    "Fused",
    "FusionDefinition",
    "FusionExecutorCache",
    "FusionKernelRuntime",
    "HostIrContainer",
    "HostIrEvaluator",
    "HostProgram",
    "Lowered",
    "NfuserError",
    "Report",
    "Spec",
    "Timeline",
    "__version__",
    "capture",
    "check",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "compute_tensor_descriptor",
    "custom_vjp",
    "fuse",
    "get_fusion_profile",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "stop_gradient",
    "timeline",
    "unroll",
    "value_and_grad",
    "version",
    "vjp",
    "vmap",
]

# Public names that a process which only calls fused functions can do without.
_ON_FIRST_USE = {
    "Compiled": "nfuser.frontend.fuse.stages",
    "DataType": "nfuser.frontend.definition.types",
    "Explanation": "nfuser.frontend.explain.explanation",
    "FusionDefinition": "nfuser.frontend.definition.definition",
    "FusionExecutorCache": "nfuser.execution.runtime.caches.executor_cache",
    "FusionKernelRuntime": "nfuser.execution.runtime.kernel_runtime",
    "HostIrContainer": "nfuser.execution.host.container",
    "HostIrEvaluator": "nfuser.execution.runtime.host.host_ir_evaluator",
    "HostProgram": "nfuser.execution.host.ir.host_ir",
    "Lowered": "nfuser.frontend.fuse.stages",
    "Report": "nfuser.frontend.report.report",
    "Spec": "nfuser.frontend.call.inputs.spec",
    "Timeline": "nfuser.base.debug.timeline",
    "checkpoint": "nfuser.frontend.gradients.checkpoint",
    "checkpoint_name": "nfuser.frontend.gradients.checkpoint",
    "checkpoint_policies": "nfuser.frontend.gradients.checkpoint",
    "custom_vjp": "nfuser.frontend.gradients.custom",
    "hvp": "nfuser.frontend.gradients.linear",
    "grad": "nfuser.frontend.gradients.gradient",
    "hessian": "nfuser.frontend.gradients.jacobian",
    "jacfwd": "nfuser.frontend.gradients.jacobian",
    "jacrev": "nfuser.frontend.gradients.jacobian",
    "jvp": "nfuser.frontend.gradients.linear",
    "stop_gradient": "nfuser.frontend.gradients.linear",
    "timeline": "nfuser.base.debug.timeline",
    "unroll": "nfuser.compiler.trace.loops.unroll",
    "value_and_grad": "nfuser.frontend.gradients.gradient",
    "vjp": "nfuser.frontend.gradients.linear",
    "vmap": "nfuser.frontend.vmap",
    "capture": "nfuser.frontend.fuse.capture",
    "check": "nfuser.frontend.check",
    "compute_tensor_descriptor": "nfuser.frontend.definition.inputs",
    "get_fusion_profile": "nfuser.frontend.definition.execution.profile",
}


def __getattr__(name: str) -> Any:
    if name in ("lax", "nn", "numpy", "random"):
        return import_module(f"nfuser.{name}")
    if name not in _ON_FIRST_USE:
        _refuse_of_nvfuser(name)
        message = f"module 'nfuser' has no attribute {name!r}"
        raise AttributeError(message)
    found = globals()[name] = getattr(imported(_ON_FIRST_USE[name]), name)
    return found


def version() -> str:
    """Return the version, as ``__version__`` has it."""
    return __version__


def _refuse_of_nvfuser(name: str) -> None:
    """Say what to write for a name of nvFuser's that nfuser has not."""
    if not name.startswith("_"):
        refused = import_module("nfuser.frontend.definition.refused")
        if name in refused.MODULE:
            refused.refuse(f"nfuser.{name}", refused.MODULE[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not _config.at_start().dump.isdisjoint(("timeline", "nvtx")):
    from nfuser.base.debug.timeline import begin_process

    begin_process()
