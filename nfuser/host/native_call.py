# SPDX-License-Identifier: Apache-2.0
"""Calls of one form each, which native code serves without looking for a record."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from nfuser.device.native.shared import shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.device.native.state import Record

R = TypeVar("R")


class NativeCall(Generic[R]):
    """What is called with arguments of one form.

    ``_native`` names the record and its arguments, or is None; ``_otherwise`` serves
    the calls that native code does not.
    """

    __slots__ = ("_native", "_record")

    def __init__(self) -> None:
        self._native: object = None

    def __call__(self, *args: Any) -> R:
        """Run, natively where the arguments have the form of the record."""
        return self._otherwise(*args)

    def _otherwise(self, *args: Any) -> R:
        raise NotImplementedError

    def _serve(
        self, record: Record, given: int, items: Sequence[object], *, fixed: bool
    ) -> None:
        """Let native code follow ``record``; calls without arguments take ``items``.

        The first ``given`` come from the caller; ``fixed`` ones stay where they are.
        """
        words = [record.address, given, *map(id, items)]
        if fixed:
            words += record.addresses
        self._record = record
        self._native = np.array(words, np.int64)


@cache
def has_native_calls() -> bool:
    """Give calls of one form their native entry, where this Python can have one."""
    found = shared()
    if found is not None:
        found.install(NativeCall, "_native", bound=True)
    return found is not None
