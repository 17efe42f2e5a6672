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

    _Stamp: TypeAlias = tuple[int, int, int]


class Sources:
    """The modules of a package, looked at when the first of them is imported.

    A package makes one in its own ``__init__``, which runs before any module in it.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._stamps = {path: _stamp(path) for path in _files(folders)}
        self._digest: str | None = None

    def are_as_imported(self) -> bool:
        """Tell whether no file has changed since the first module was imported.

        One that has come since then is imported by none of the others.
        """
        return all(_stamp(path) == stamp for path, stamp in self._stamps.items())

    def digest(self) -> str:
        """Return a digest of the files, which were read once."""
        if self._digest is None:
            digest = hashlib.sha256()
            for path in self._stamps:
                digest.update(Path(path).name.encode() + _contents(path))
            self._digest = digest.hexdigest()
        return self._digest


def _files(folders: Iterable[str]) -> list[str]:
    found: list[str] = []
    for top in folders:  # a walk passes over what it may not read
        for folder, _, files in os.walk(top):
            found += [f"{folder}/{file}" for file in files if file.endswith(".py")]
    return sorted(found)


def _stamp(path: str) -> _Stamp | None:
    """Return what changes when a file is written or replaced."""
    try:
        at = os.stat(path)
    except OSError:
        return None
    return at.st_ino, at.st_size, at.st_mtime_ns


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
