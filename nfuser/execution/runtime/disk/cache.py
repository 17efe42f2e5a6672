# SPDX-License-Identifier: Apache-2.0
"""The store that the settings name, and kernels in it."""

from __future__ import annotations

import logging
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import nfuser.config as config
from nfuser.codegen.objects.load_object import is_portable
from nfuser.execution.runtime.disk.entry import DiskEntry
from nfuser.execution.runtime.disk.key import environment, is_current, key_of
from nfuser.execution.runtime.disk.store import DiskStore

if TYPE_CHECKING:
    from nfuser.codegen.objects.machine_code import MachineCode
    from nfuser.codegen.printers.source import Source

_log = logging.getLogger("nfuser")
BACKENDS = ("cpu", "cuda")  # those that have machine code


def current_store() -> DiskStore | None:
    """Return the store in force; None if it is turned off or this is not POSIX."""
    settings = config.current()
    if "disk_cache" in settings.disable or os.name != "posix":
        return None
    try:
        return store_in(str(folder_in_force()))
    except RuntimeError:  # a user without a home, as containers have them
        return None


def folder_in_force() -> Path:
    """Return the folder of the store, whether it is there or not."""
    chosen = config.current().cache_dir
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "nfuser"
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore what is not absolute.
    home = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return home / "nfuser"


@cache
def store_in(folder: str) -> DiskStore:
    """Return the store in ``folder``, which is looked at once in a process."""
    return DiskStore(Path(folder))


def find_machine_code(source: Source, backend: str) -> MachineCode | None:
    """Return the machine code of a kernel that some process has compiled before."""
    store = current_store()
    if store is None or not environment(backend).is_sound:
        return None
    entry = store.get(key_of(source, backend))
    return entry.machine if entry else None


def keep_machine_code(source: Source, backend: str, machine: MachineCode) -> None:
    """Keep what was compiled just now, if other processes can use it."""
    store = current_store()
    if store is None or (backend == "cpu" and not is_portable(machine.code)):
        return
    if not is_current(backend):
        _log.info("%s is not kept: files changed under this process", source.entry)
        return
    target = source.form.target
    words = "sm_{}{}".format(*target.compute_capability) if backend == "cuda" else ""
    entry = DiskEntry(machine, source.entry, backend, words or "this processor")
    store.put(key_of(source, backend), entry)


def drop_machine_code(source: Source, backend: str, reason: str) -> None:
    """Remove an entry that does not load."""
    if (store := current_store()) is not None:
        store.remove(key_of(source, backend), reason)
