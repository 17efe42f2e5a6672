# SPDX-License-Identifier: Apache-2.0
"""Run a tuple of passes; dump, time and verify between them."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Protocol, TypeVar

import nfuser.config as config
from nfuser.base.debug import events, timing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

IR = TypeVar("IR")


class IrPass(Protocol[IR]):
    """A function from one IR to the same kind of IR."""

    @property
    def __name__(self) -> str: ...

    def __call__(self, ir: IR, /) -> IR:
        """Return the transformed IR; ``ir`` is left as it was."""
        ...


def run_passes(
    stage: str,
    ir: IR,
    passes: Sequence[IrPass[IR]],
    *,
    verify: Callable[[IR], None],
    dump: Callable[[str, IR], None],
) -> IR:
    """Apply ``passes`` in order; at level 2 the IR verifies after each one.

    ``NFUSER_PASS_LIMIT=n`` stops after n passes of each stage, for bisecting.
    """
    settings = config.current()
    for apply in passes[: settings.pass_limit]:
        begin = perf_counter()
        with events.span(f"{stage}.{apply.__name__}", stage):
            result = apply(ir)
        timing.record(f"{stage}.{apply.__name__}", perf_counter() - begin)
        if result is not ir:
            ir = result
            dump(f"{stage}.{apply.__name__}", ir)
            if settings.verify >= 2:
                verify(ir)
    if settings.verify >= 1:
        verify(ir)
    return ir
