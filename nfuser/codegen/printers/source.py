# SPDX-License-Identifier: Apache-2.0
"""What a printer gives: the text of one kernel, and how to call it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nfuser.base.locks import cached_property
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Pointwise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, LaunchShape
    from nfuser.compiler.schedule.facts.target import Target


@node
class BufferForm:
    """A parameter that points to elements; ``size`` is that of a workspace."""

    dtype: DType
    role: str
    size: Scalar | None


@node
class KernelForm:
    """All of a kernel that whoever compiles nothing needs, to find and to launch it.

    It refers to no tensor and no expression, so that it can be kept by itself.
    ``costly`` counts the operations that are dearer than a load.
    """

    digest: str
    signature: str
    kinds: tuple[str, ...]
    target: Target
    buffers: tuple[BufferForm, ...]
    integers: tuple[tuple[DType, Scalar], ...]
    scalars: tuple[Scalar, ...]
    launch: LaunchShape
    costly: int


class Source:
    """Python source of one kernel, frozen by convention.

    ``text`` is a module one can run; ``signature`` is Numba's, ``kinds`` names what
    each parameter is ("pointer" or a dtype), for a launcher.
    """

    def __init__(
        self,
        kernel: Kernel,
        header: str,
        code: str,
        signature: str,
        kinds: Sequence[str],
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
    def form(self) -> KernelForm:
        """What it takes to find the kernel and to launch it."""
        kernel = self.kernel
        sizes = {scratch.buffer: scratch.size for scratch in kernel.scratch}
        exprs = kernel.scheduled.fusion.exprs
        return KernelForm(
            self.digest,
            self.signature,
            self.kinds,
            kernel.scheduled.target,
            tuple(BufferForm(b.dtype, b.role, sizes.get(b)) for b in kernel.buffers),
            tuple((var.dtype, x) for var, x in kernel.integers),
            kernel.scalars,
            kernel.launch,
            sum(isinstance(e, Pointwise) and e.op.is_costly for e in exprs),
        )

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
        return Source(kernel, header, code, self.signature, self.kinds)

    def __repr__(self) -> str:
        return f"<Source {self.entry} {self.digest[:12]}>"


class PlainSource(Source):
    """A module that no printer gave: its text, and the form of its last function."""

    def __init__(self, form: KernelForm, entry: str, text: str) -> None:
        held = vars(self)
        held.update(form=form, digest=form.digest, entry=entry, text=text)
        held.update(signature=form.signature, kinds=form.kinds)


class KnownSource(Source):
    """A source of which the form is known: it is printed where somebody reads it."""

    def __init__(
        self, form: KernelForm, entry: str, write: Callable[[], Source]
    ) -> None:
        held = vars(self)
        held.update(form=form, digest=form.digest, entry=entry)
        held.update(signature=form.signature, kinds=form.kinds)
        self._write = write

    @cached_property
    def written(self) -> Source:
        """The source in full."""
        return self._write()

    def __getattr__(self, name: str) -> Any:
        if name not in ("kernel", "header", "code"):
            raise AttributeError(name)
        return getattr(self.written, name)

    def named(self, fusion: str, entry: str) -> Source:
        """Return the same code for a fusion, and as a function, of other names."""
        if entry == self.entry:
            return self
        return KnownSource(self.form, entry, lambda: self.written.named(fusion, entry))
