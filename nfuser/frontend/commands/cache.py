# SPDX-License-Identifier: Apache-2.0
"""``python -m nfuser cache ls|clear|verify``: look into the folder of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.errors import NfuserError
from nfuser.execution.runtime.disk.cache import current_store
from nfuser.execution.runtime.disk.plans import current_plans

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.execution.runtime.disk.entry import DiskEntry
    from nfuser.execution.runtime.disk.store import DiskStore

ACTIONS = ("ls", "clear", "verify")


def main(action: str) -> int:
    """Do one action on the cache in force; return the exit status."""
    store = current_store()
    if store is None or not store.is_usable:
        where = "force" if store is None else str(store.folder)
        print(f"no cache in {where}")
        return 1
    does: dict[str, Callable[[DiskStore], int]]
    does = {"ls": _list, "clear": _clear, "verify": _verify}
    return does[action](store)


def _list(store: DiskStore) -> int:
    total = 0
    keys = store.keys()
    for key in keys:
        total += store.size(key)
        try:
            print(_line(store, key, store.read(key)))
        except (OSError, NfuserError) as error:
            print(f"{key[:12]}  {store.size(key):>9,}  damaged: {error}")
    print(f"{len(keys)} kernels, {total:,} bytes in {store.folder}")
    return 0


def _line(store: DiskStore, key: str, entry: DiskEntry) -> str:
    where = f"{entry.backend:<5} {entry.target:<14}"
    return f"{key[:12]}  {store.size(key):>9,}  {where}  {entry.kernel}"


def _clear(store: DiskStore) -> int:
    print(f"removed {store.clear()} kernels from {store.folder}")
    if (plans := current_plans()) is not None:
        plans.clear()
    return 0


def _verify(store: DiskStore) -> int:
    """Read every entry as a process would; remove what is damaged."""
    damaged = 0
    keys = store.keys()
    for key in keys:
        try:
            store.read(key)
        except (OSError, NfuserError) as error:
            damaged += 1
            store.remove(key, str(error))
            print(f"{key[:12]} is damaged: {error}")
    print(f"{len(keys) - damaged} kernels are whole, {damaged} were not")
    return int(damaged > 0)
