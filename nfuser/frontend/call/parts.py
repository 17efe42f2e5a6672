# SPDX-License-Identifier: Apache-2.0
"""What a call of a fused function takes: imported with the first call, as one.

``import nfuser`` and ``nfuser.fuse`` do without.
"""

# What torch.compile follows calls what is fused.
# pyright: reportImportCycles=false

from __future__ import annotations

from nfuser.base.debug.progress import watching
from nfuser.compiler.concretize import DEFAULT_RESIZE, check_policy
from nfuser.compiler.ir.scalars.open_integer import Asked
from nfuser.compiler.ir.scalars.symbols import scalar_input
from nfuser.compiler.trace import current_tracer
from nfuser.compiler.trace.call import tree as trees
from nfuser.compiler.trace.torch.unfused import call_unfused
from nfuser.errors import ChunkedError
from nfuser.execution.device.describe.descriptor import describe
from nfuser.execution.runtime.call import is_integer
from nfuser.execution.runtime.place import check_backend, common_place, find_place
from nfuser.execution.runtime.planning.plan import symbol_values
from nfuser.frontend.call.inputs.argument_names import unknown_keyword
from nfuser.frontend.call.inputs.arguments import Arguments, Described
from nfuser.frontend.call.inputs.scalar_checks import check_scalars
from nfuser.frontend.call.inputs.spec import has_phantoms, no_device, with_arrays
from nfuser.frontend.call.plan_table import PlanTable
from nfuser.frontend.call.ready import make_ready, shaping
from nfuser.frontend.call.recording import (
    GradientAskedError,
    any_asks,
    recorded,
    unrecorded,
)
from nfuser.frontend.explain.dump_call import dump_call
from nfuser.frontend.explain.kernels import KernelView
from nfuser.frontend.fuse.stages import CompiledForm, Lowered
from nfuser.frontend.fuse.variants import Variants, check_dialect

__all__ = [
    "DEFAULT_RESIZE",
    "Arguments",
    "Asked",
    "ChunkedError",
    "CompiledForm",
    "Described",
    "GradientAskedError",
    "KernelView",
    "Lowered",
    "PlanTable",
    "Variants",
    "any_asks",
    "call_unfused",
    "check_backend",
    "check_dialect",
    "check_policy",
    "check_scalars",
    "common_place",
    "current_tracer",
    "describe",
    "dump_call",
    "find_place",
    "has_phantoms",
    "is_integer",
    "make_ready",
    "no_device",
    "recorded",
    "scalar_input",
    "shaping",
    "symbol_values",
    "trees",
    "unknown_keyword",
    "unrecorded",
    "watching",
    "with_arrays",
]
