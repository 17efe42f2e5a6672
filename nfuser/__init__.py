# SPDX-License-Identifier: Apache-2.0
"""nfuser: a just-in-time fusion compiler for array functions, in pure Python."""

from __future__ import annotations

from nfuser.config import VERSION as __version__  # noqa: N811 (its public name)
from nfuser.errors import NfuserError
from nfuser.frontend.check import check
from nfuser.frontend.definition import FusionDefinition
from nfuser.frontend.definition_types import DataType
from nfuser.frontend.fused import Fused, fuse
from nfuser.runtime.executor_cache import FusionExecutorCache
from nfuser.runtime.kernel_runtime import FusionKernelRuntime

__all__ = [
    "DataType",
    "Fused",
    "FusionDefinition",
    "FusionExecutorCache",
    "FusionKernelRuntime",
    "NfuserError",
    "__version__",
    "check",
    "fuse",
]
