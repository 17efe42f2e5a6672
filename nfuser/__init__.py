# SPDX-License-Identifier: Apache-2.0
"""nfuser: a just-in-time fusion compiler for array functions, in pure Python."""

from __future__ import annotations

__version__ = "0.1.0"
