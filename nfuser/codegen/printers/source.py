# SPDX-License-Identifier: Apache-2.0
"""What a printer gives: the text of one kernel, and how to call it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from nfuser.locks import cached_property

if TYPE_CHECKING:
    from nfuser.lower.kernel.kernel_ir import Kernel


class Source:
    """Python source of one kernel, frozen by convention.

    ``text`` is a module one can run; ``signature`` is Numba's, ``kinds`` names what
    each parameter is ("pointer" or a dtype), for a launcher.
    """

    def __init__(
        self, kernel: Kernel, header: str, code: str, signature: str, kinds: list[str]
    ) -> None:
        self.kernel = kernel
        self.entry = kernel.name
        self.header = header
        self.code = code
        self.signature = signature
        self.kinds = tuple(kinds)

    @cached_property
    def text(self) -> str:
        """The whole module: a comment that tells where it comes from, then code."""
        return self.header + self.code

    @cached_property
    def digest(self) -> str:
        """A key for everything that compiles to the same machine code."""
        target = self.kernel.scheduled.target
        parts = (self.code, self.signature, target.kind, target.compute_capability)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def __repr__(self) -> str:
        return f"<Source {self.entry} {self.digest[:12]}>"
