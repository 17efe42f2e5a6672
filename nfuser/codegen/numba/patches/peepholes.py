# SPDX-License-Identifier: Apache-2.0
"""Numba looks for ``with``, and for lists and dicts that are built to be passed."""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def without_peepholes(interpreter: Any) -> Generator[None]:
    """Let an ``interpreter`` of Numba's keep what it read; under Numba's lock only.

    Each of its peepholes walks over the function for what kernels never say.
    """
    reader = interpreter.Interpreter
    look, here = reader.post_process, get_ident()

    def post_process(self: Any, peepholes: Any, func_ir: Any) -> Any:
        is_ours = get_ident() == here
        return func_ir if is_ours else look(self, peepholes, func_ir)

    reader.post_process = post_process
    try:
        yield
    finally:
        reader.post_process = look
