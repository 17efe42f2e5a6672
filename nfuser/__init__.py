# SPDX-License-Identifier: Apache-2.0
"""nfuser: a just-in-time fusion compiler for array functions, in pure Python."""

from __future__ import annotations

__version__ = "0.1.0"

from nfuser.errors import NfuserError
from nfuser.frontend.fused import Fused, fuse

__all__ = ["Fused", "NfuserError", "__version__", "fuse"]
