# SPDX-License-Identifier: Apache-2.0
"""Whether the code that runs is what its files say: they may change under a process.

An upgrade beside a warm notebook leaves old code in memory and new code on disk, and
what is imported late comes from the new files. Whatever is kept under a digest of the
files asks here first.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    _Stamp: TypeAlias = tuple[str, int, int, int]


class Sources:
    """The modules of a package, looked at when the first of them is imported.

    A package makes one in its own ``__init__``, which runs before any module in it.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = tuple(folders)
        self._stamps = self._look()
        self._digest: str | None = None

    def are_as_imported(self) -> bool:
        """Tell whether no file has changed since the first module was imported."""
        return self._look() == self._stamps

    def digest(self) -> str:
        """Return a digest of the files, which were read once."""
        if self._digest is None:
            digest = hashlib.sha256()
            for path, *_ in self._stamps:
                digest.update(Path(path).name.encode() + _contents(path))
            self._digest = digest.hexdigest()
        return self._digest

    def _look(self) -> list[_Stamp]:
        """Return each file with what changes when it is written or replaced."""
        found: list[_Stamp] = []
        for top in self._folders:  # a walk passes over what it may not read
            for folder, _, files in os.walk(top):
                for path in (f"{folder}/{file}" for file in files):
                    if path.endswith(".py"):
                        at = os.stat(path)
                        found.append((path, at.st_ino, at.st_size, at.st_mtime_ns))
        return sorted(found)


def _contents(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


_PACKAGE = Path(__file__).parents[1]
_STAGES = (
    *("dtypes", "ir", "ops", "domains", "concretize"),
    *("rewrite", "segment", "schedule", "lower"),
)
_ROOMS = (
    *(f"compiler/{stage}" for stage in _STAGES),
    *("codegen", "execution/device", "execution/host", "execution/runtime"),
)
PLANNING = Sources(f"{_PACKAGE}/{room}" for room in _ROOMS)
"""What leads from a fusion to its kernels, and to the program of a call."""
