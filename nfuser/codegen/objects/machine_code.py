# SPDX-License-Identifier: Apache-2.0
"""What a compiler gives: bytes that any process on such a machine can load."""

from __future__ import annotations

from nfuser.compiler.ir.base import value


@value
class MachineCode:
    """A cubin or an object file of one kernel, and the name its function has there."""

    code: bytes
    entry: str
