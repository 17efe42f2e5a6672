# SPDX-License-Identifier: Apache-2.0
"""What a printer gives: the text of one kernel, and how to call it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
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
        """A key for everything that compiles to the same machine code.

        What a kernel is called is no part of it.
        """
        target = self.kernel.scheduled.target
        code = self.code.replace(f"def {self.entry}(", "def (", 1)
        parts = (code, self.signature, target.kind, target.compute_capability)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def named(self, fusion: str, entry: str) -> Source:
        """Return the same code for a fusion, and as a function, of other names."""
        if entry == self.entry:
            return self
        old = self.kernel.scheduled.fusion.name
        header = self.header.replace(f"# fusion {old}(", f"# fusion {fusion}(", 1)
        code = self.code.replace(f"def {self.entry}(", f"def {entry}(", 1)
        kernel = replace(self.kernel, name=entry)
        return Source(kernel, header, code, self.signature, list(self.kinds))

    def __repr__(self) -> str:
        return f"<Source {self.entry} {self.digest[:12]}>"
