# SPDX-License-Identifier: Apache-2.0
"""Numba follows how long variables live after each pass: kernels need it nowhere."""

from __future__ import annotations

from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def followed_once(postproc: Any) -> Generator[None]:
    """Let a ``postproc`` of Numba's do it where it deletes; under Numba's lock only.

    The passes in between, which kernels need, ask for nothing but the blocks in order.
    """
    processor = postproc.PostProcessor
    follow, here = processor.run, get_ident()

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        if emit_dels or self.func_ir.is_generator or get_ident() != here:
            follow(self, emit_dels, extend_lifetimes)
            return
        blocks = self.func_ir.blocks
        self.func_ir.blocks = postproc.transforms.canonicalize_cfg(blocks)

    processor.run = run
    try:
        yield
    finally:
        processor.run = follow
