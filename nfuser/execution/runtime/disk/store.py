# SPDX-License-Identifier: Apache-2.0
"""A folder of machine code that processes share.

Whoever can write into the folder can run code in this process, so it is used only if
nobody but its owner can write to it, and the owner is this user or root. The same holds
for each file. Files appear whole or not at all (written aside, then renamed). Nothing
waits for the disk: after a crash of the machine a file may be torn, and then its
checksum is wrong. What is wrong in any way is a miss, and is removed. The folder may
hold other things: a file without the name of an entry is left alone.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import stat
import time
import warnings
from typing import TYPE_CHECKING

from nfuser.execution.runtime.disk.entry import (
    DamagedEntryError,
    DiskEntry,
    pack,
    unpack,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT = 1 << 30
"""Bytes that a store may hold; beyond it the least recently used entries go.

Keys are digests, so each of the store's 256 folders has the same share of it, and a
new entry makes room among the files of its own folder. To count them takes a process
milliseconds where the whole store has several hundred thousand files.
"""

_FOLDERS = 256
_KEPT_SHARE = 0.8  # of the limit, so that not each new entry makes a search
_STALE = 3600  # seconds after which a file written aside has lost its writer
_LARGEST = 1 << 26
"""Bytes of the largest entry; no kernel comes near."""

_SUFFIX, _ASIDE = ".nfk", ".tmp"
_FOLDER = re.compile(r"[0-9a-f]{2}")
_ENTRY = re.compile(r"[0-9a-f]{62}\.nfk")
_WRITTEN_ASIDE = re.compile(r"[0-9a-f]{62}\.nfk\.[0-9a-f]{16}\.tmp")
_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_log = logging.getLogger("nfuser")


class DiskStore:
    """Entries by key in one folder. Every method may be called at any time by many."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._bytes: dict[Path, int] = {}  # of the folders that were counted
        self._reads = self._writes = self._prepare()

    @property
    def is_usable(self) -> bool:
        """Whether the folder is there and trusted."""
        return self._reads

    # -- entries -------------------------------------------------------------

    def get(self, key: str) -> DiskEntry | None:
        """Return the entry of ``key`` if there is one that is whole and trusted."""
        if not self._reads:
            return None
        try:
            entry = self.read(key)
        except DamagedEntryError as error:
            self.remove(key, str(error))
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                self.remove(key, "it is a link")
            return None
        with contextlib.suppress(OSError):  # a read-only folder forgets nothing
            os.utime(self._path(key))
        return entry

    def read(self, key: str) -> DiskEntry:
        """Return the entry of ``key``, or raise what is wrong with it."""
        return unpack(key, _read(self._path(key)))

    def put(self, key: str, entry: DiskEntry) -> None:
        """Keep ``entry``; where that fails, go without."""
        if not self._writes:
            return
        data = pack(key, entry)
        if len(data) > _LARGEST:
            return
        path = self._path(key)
        aside = path.with_name(f"{path.name}.{os.urandom(8).hex()}{_ASIDE}")
        try:
            for folder in (self.folder, path.parent):  # it may have been removed
                folder.mkdir(mode=0o700, exist_ok=True)
            if reason := distrust(path.parent.stat()):
                raise PermissionError(errno.EINVAL, reason, str(path.parent))
            self._write(aside, data)
            aside.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
            self._stop_writing(error)
            return
        self._make_room(path.parent, len(data))

    def remove(self, key: str, reason: str) -> None:
        """Remove an entry that is of no use."""
        _log.info("removed %s from the cache: %s", key, reason)
        with contextlib.suppress(OSError):
            self._path(key).unlink()

    def keys(self) -> list[str]:
        """Return the keys of all entries, the least recently used first."""
        return [_key(path) for path, _ in self._aged("??")]

    def size(self, key: str) -> int:
        """Return how many bytes the file of an entry has; 0 if there is none."""
        try:
            return self._path(key).stat().st_size
        except OSError:
            return 0

    def clear(self) -> int:
        """Remove all entries, and nothing else; return how many there were."""
        found = self.keys()
        for key in found:
            self.remove(key, "the cache is cleared")
        for aside in self._files("??", _WRITTEN_ASIDE):
            with contextlib.suppress(OSError):
                aside.unlink()
        self._bytes.clear()
        return len(found)

    # -- the folder ----------------------------------------------------------

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}{_SUFFIX}"

    def _prepare(self) -> bool:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.folder.stat()
        except OSError as error:
            _log.info("no cache in %s: %s", self.folder, error)
            return False
        if not stat.S_ISDIR(found.st_mode):
            return False
        if reason := distrust(found):
            _warn(
                f"chmod go-w {self.folder}, or set NFUSER_CACHE_DIR to a folder of "
                f"your own: nfuser keeps no compiled kernels there, because {reason}"
            )
            return False
        return True

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(path, flags, 0o600), "wb") as file:
            file.write(data)

    def _stop_writing(self, error: OSError) -> None:
        """Write no more in this process; say so unless the folder is meant to be so."""
        self._writes = False
        if error.errno in _READ_ONLY:
            _log.info("the cache in %s is read-only", self.folder)
            return
        _warn(
            f"nfuser could not keep a compiled kernel: {error}; kernels are compiled "
            "in each process until it can"
        )

    def _make_room(self, folder: Path, added: int) -> None:
        found = self._bytes.get(folder)
        found = None if found is None else found + added
        if found is None or found > LIMIT // _FOLDERS:
            found = self._evict(folder)
        self._bytes[folder] = found

    def _evict(self, folder: Path) -> int:
        """Remove the oldest entries if there are too many; return the bytes left.

        The youngest stays, however large it is: it was just put.
        """
        now = time.time()
        for aside in self._files(folder.name, _WRITTEN_ASIDE):
            with contextlib.suppress(OSError):
                if now - aside.stat().st_mtime > _STALE:
                    aside.unlink()
        aged = self._aged(folder.name)
        total = sum(found.st_size for _, found in aged)
        most = LIMIT // _FOLDERS
        if total <= most:
            return total
        for path, found in aged[:-1]:
            if total <= most * _KEPT_SHARE:
                break
            self.remove(_key(path), "it was not used for longest")
            total -= found.st_size
        return total

    def _aged(self, folder: str) -> list[tuple[Path, os.stat_result]]:
        def found() -> Iterator[tuple[Path, os.stat_result]]:
            for path in self._files(folder, _ENTRY):
                with contextlib.suppress(OSError):
                    yield path, path.stat()

        return sorted(found(), key=lambda pair: (pair[1].st_mtime_ns, pair[0]))

    def _files(self, folder: str, name: re.Pattern[str]) -> Iterator[Path]:
        """Yield the files that have such a name, where this store puts them."""
        for path in self.folder.glob(f"{folder}/*"):
            if _FOLDER.fullmatch(path.parent.name) and name.fullmatch(path.name):
                yield path


def _warn(message: str) -> None:
    """Warn; a filter that makes errors of warnings makes a line of the log of this one.

    The kernel is there, and the call that asked for it is right.
    """
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        _log.warning("%s", message)


def distrust(found: os.stat_result) -> str | None:
    """Return why what ``found`` describes may hold another's code, or None."""
    if found.st_uid not in {0, os.geteuid()}:
        return f"it belongs to user {found.st_uid}, neither to you nor to root"
    if found.st_mode & _BY_OTHERS:
        return f"others can write to it (mode {stat.S_IMODE(found.st_mode):o})"
    return None


def _read(path: Path) -> bytes:
    # What was opened is asked for its owner: a name may change hands in between.
    flags = os.O_RDONLY | os.O_NOFOLLOW
    folder = os.open(path.parent, flags | os.O_DIRECTORY)
    try:
        if reason := distrust(os.fstat(folder)):
            raise DamagedEntryError(f"its folder is not to be trusted: {reason}")
        # A pipe that nobody writes to would be waited for.
        opened = os.open(path.name, flags | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    with open(opened, "rb") as file:
        found = os.fstat(file.fileno())
        if reason := distrust(found):
            raise DamagedEntryError(reason)
        if not stat.S_ISREG(found.st_mode):
            raise DamagedEntryError("it is no file")
        if found.st_size > _LARGEST:
            raise DamagedEntryError(f"it has {found.st_size} bytes")
        return file.read(found.st_size)


def _key(path: Path) -> str:
    return path.parent.name + path.name.removesuffix(_SUFFIX)
