# SPDX-License-Identifier: Apache-2.0
"""Calls of one form each, which native code serves without looking for a record."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nfuser.execution.device.native.owned import Keeper, Owned, new_words
from nfuser.execution.device.native.shared import shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.execution.device.native.state import Record

R = TypeVar("R")


class NativeCall(Generic[R]):
    """What is called with arguments of one form.

    ``_native`` owns the record and its arguments, or is None; ``_otherwise`` serves
    the calls that native code does not.
    """

    __slots__ = ("_native",)

    def __init__(self) -> None:
        self._native: Owned | None = None

    def __call__(self, *args: Any) -> R:
        """Run, natively where the arguments have the form of the record."""
        return self._otherwise(*args)

    def _otherwise(self, *args: Any) -> R:
        raise NotImplementedError

    def _serve(
        self,
        record: Record,
        given: int,
        items: Sequence[object] = (),
        *,
        fixed: bool = False,
    ) -> None:
        """Let native code follow ``record``; calls without arguments take ``items``.

        The first ``given`` come from the caller; ``fixed`` ones stay where they are.
        """
        keeper = Keeper()
        words = [record.address, given, len(items), *map(keeper.object, items)]
        if fixed:
            words += record.addresses
        self._native = Owned(new_words(words), record, keeper)


@cache
def has_native_calls() -> bool:
    """Give calls of one form their native entry, where this Python can have one."""
    found = shared()
    if found is not None:
        found.install(NativeCall, "_native", bound=True)
    return found is not None
