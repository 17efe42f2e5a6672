# SPDX-License-Identifier: Apache-2.0
"""Python's collector of cycles, which a compile makes work for and gives nothing to."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nfuser.base.locks import at_fork

if TYPE_CHECKING:
    from collections.abc import Generator

_held_off: list[bool] = []  # by whom, and whether it was enabled before


@contextmanager
def no_collection() -> Generator[None]:
    """Hold the cycle collector off: a full pass takes longer than a kernel.

    So it does while a call is planned: what that makes is kept, for the most part.
    """
    was_enabled = gc.isenabled()
    try:
        _held_off.append(was_enabled)
        gc.disable()
        yield
    finally:
        if was_enabled in _held_off:
            _held_off.remove(was_enabled)
        if was_enabled:
            gc.enable()


def count_as_old() -> None:
    """Let no young pass look at what is there now: modules, and what a process needs.

    A full pass looks at it as before. Nothing is done where somebody keeps objects from
    these, too, as servers do before they fork.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()  # to the oldest generation


def _after_fork() -> None:
    """Enable it in a child, in which nobody is left who would."""
    if any(_held_off):
        gc.enable()
    _held_off.clear()


at_fork(after_in_child=_after_fork)
