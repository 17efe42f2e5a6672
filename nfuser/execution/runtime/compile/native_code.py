# SPDX-License-Identifier: Apache-2.0
"""Machine code of native entries on disk, beside that of kernels."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import nfuser.execution.device.native as native
from nfuser.errors import NfuserError
from nfuser.execution.runtime.disk.cache import current_store
from nfuser.execution.runtime.disk.entry import DiskEntry
from nfuser.execution.runtime.disk.key import environment, is_current

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.codegen.objects.machine_code import MachineCode


def kept(
    name: str,
    make: Callable[[], MachineCode],
    load: Callable[[MachineCode], tuple[int, Any]],
) -> tuple[int, Any]:
    """Load what some process made under this name, or make it, and keep it."""
    store = current_store()
    known = environment("cpu")
    if store is None or not (known.is_sound and native.SOURCES.are_as_imported()):
        return load(make())
    parts = (name, native.SOURCES.digest(), known.digest)
    key = hashlib.sha256(repr(parts).encode()).hexdigest()
    entry = store.get(key)
    if entry is not None:
        try:
            return load(entry.machine)
        except NfuserError as error:
            store.remove(key, str(error))
    machine = make()
    if is_current("cpu") and native.SOURCES.are_as_imported():
        store.put(key, DiskEntry(machine, name, "cpu", "this processor"))
    return load(machine)
