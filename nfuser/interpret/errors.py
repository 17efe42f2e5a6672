# SPDX-License-Identifier: Apache-2.0
"""What the interpreter raises."""

from __future__ import annotations

from nfuser.errors import VerifyError


class InterpreterError(VerifyError):
    """An emitted kernel broke a rule that the hardware would not have reported."""
