# SPDX-License-Identifier: Apache-2.0
"""The folder of machine code: what is whole and trusted is found, all else missed."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
import tracemalloc
import warnings
from typing import TYPE_CHECKING

import pytest

from nfuser.codegen.objects.machine_code import MachineCode
from nfuser.execution.runtime.disk import store as disk_store
from nfuser.execution.runtime.disk.entry import (
    DamagedEntryError,
    DiskEntry,
    pack,
    unpack,
)
from nfuser.execution.runtime.disk.store import DiskStore, distrust

if TYPE_CHECKING:
    from pathlib import Path

KEY, OTHER = "ab" * 32, "cd" * 32
ENTRY = DiskEntry(MachineCode(b"machine code" * 9, "_Zf"), "f_kernel", "cpu", "here")


def _file(store: DiskStore, key: str = KEY) -> Path:
    return store.folder / key[:2] / f"{key[2:]}.nfk"


def _age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    made = DiskStore(tmp_path / "cache")
    made.put(KEY, ENTRY)
    return made


def test_what_was_put_is_found_again(store: DiskStore) -> None:
    assert store.get(KEY) == ENTRY
    assert DiskStore(store.folder).get(KEY) == ENTRY
    assert store.get(OTHER) is None
    assert store.keys() == [KEY]


def test_an_entry_that_is_read_takes_the_memory_that_it_needs(store: DiskStore) -> None:
    tracemalloc.start()
    try:
        assert store.get(KEY) == ENTRY
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_nobody_else_can_write_what_was_put(store: DiskStore) -> None:
    for path in (store.folder, _file(store).parent, _file(store)):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_every_truncated_entry_is_refused() -> None:
    data = pack(KEY, ENTRY)
    for size in range(len(data)):
        with pytest.raises(DamagedEntryError):
            unpack(KEY, data[:size])
    with pytest.raises(DamagedEntryError):
        unpack(KEY, data + b"\0")


def test_an_entry_with_any_bit_flipped_is_refused() -> None:
    data = pack(KEY, ENTRY)
    for at in range(len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        with pytest.raises(DamagedEntryError):
            unpack(KEY, bytes(flipped))


WHOLE = pack(KEY, ENTRY)
DAMAGED = {
    "empty": b"",
    "truncated": WHOLE[:-1],
    "altered": WHOLE[:-1] + bytes([WHOLE[-1] ^ 1]),
    "of another key": pack(OTHER, ENTRY),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_a_miss_and_goes(store: DiskStore, damage: str) -> None:
    _file(store).write_bytes(DAMAGED[damage])
    assert store.get(KEY) is None
    assert not _file(store).exists()
    store.put(KEY, ENTRY)
    assert store.get(KEY) == ENTRY


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_a_miss(store: DiskStore, mode: int) -> None:
    _file(store).chmod(mode)
    assert store.get(KEY) is None


def test_an_entry_that_cannot_be_read_now_stays(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(self: DiskStore, key: str) -> DiskEntry:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(DiskStore, "read", read)
        assert store.get(KEY) is None
    assert store.get(KEY) == ENTRY


def test_a_folder_that_is_removed_is_made_again(store: DiskStore) -> None:
    shutil.rmtree(store.folder)
    store.put(OTHER, ENTRY)
    assert store.get(OTHER) == ENTRY
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_a_link_is_a_miss(store: DiskStore, tmp_path: Path) -> None:
    _file(store).rename(tmp_path / "elsewhere")
    _file(store).symlink_to(tmp_path / "elsewhere")
    assert store.get(KEY) is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_can_write_gives_one_warning_and_no_cache(
    store: DiskStore, mode: int
) -> None:
    store.folder.chmod(mode)
    with pytest.warns(RuntimeWarning, match="others can write to it") as caught:
        open_to_all = DiskStore(store.folder)
    assert len(caught) == 1
    assert open_to_all.get(KEY) is None
    open_to_all.put(OTHER, ENTRY)
    assert not _file(store, OTHER).exists()


def test_only_this_user_and_root_are_trusted(tmp_path: Path) -> None:
    def of(user: int) -> os.stat_result:
        found = list(tmp_path.stat())
        found[0], found[4] = 0o40755, user
        return os.stat_result(found)

    me = os.geteuid()
    assert distrust(of(me)) is None
    assert distrust(of(0)) is None
    assert "neither to you nor to root" in str(distrust(of(me + 1)))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_read_only_folder_is_read_without_a_word(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    _fail(monkeypatch, number)
    store.put(OTHER, ENTRY)
    assert store.get(OTHER) is None
    assert store.get(KEY) == ENTRY


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_gives_one_warning(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    _fail(monkeypatch, number)
    with pytest.warns(RuntimeWarning, match="could not keep a compiled kernel") as seen:
        [store.put(OTHER, ENTRY) for _ in range(2)]
    assert len(seen) == 1
    assert store.get(OTHER) is None
    assert store.get(KEY) == ENTRY
    assert list(_file(store, OTHER).parent.iterdir()) == []


def _fail(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def write(path: Path, data: bytes) -> None:
        path.write_bytes(data[: len(data) // 2])
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(DiskStore, "_write", staticmethod(write))


def test_a_folder_that_cannot_be_made_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = DiskStore(tmp_path / "file" / "cache")
    store.put(KEY, ENTRY)
    assert store.get(KEY) is None
    assert not store.is_usable


def test_what_a_killed_writer_left_is_never_read_and_goes(store: DiskStore) -> None:
    old, new = (_file(store).with_suffix(f".nfk.{n:016x}.tmp") for n in range(2))
    for path in (old, new):
        path.write_bytes(pack(OTHER, ENTRY)[:50])
    _age(old, 7200)
    fresh = DiskStore(store.folder)
    assert fresh.keys() == [KEY]
    fresh.put(KEY[:2] + OTHER[2:], ENTRY)
    assert not old.exists()
    assert new.exists()  # its writer may still be there


def test_beyond_the_limit_the_least_recently_used_of_a_folder_go(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = store.size(KEY)
    monkeypatch.setattr(disk_store, "LIMIT", 256 * 5 * size)
    keys = [KEY, *(KEY[:2] + f"{n:02x}" * 31 for n in range(4))]
    for age, key in enumerate(keys):
        store.put(key, ENTRY)
        _age(_file(store, key), 1000 - age)
    store.put(OTHER, ENTRY)
    _age(_file(store, OTHER), 2000)
    assert store.get(KEY) == ENTRY  # used: now the youngest
    last = KEY[:2] + OTHER[2:]
    store.put(last, ENTRY)
    # The oldest of all has a folder to itself, and stays.
    assert store.keys() == [OTHER, *keys[3:], KEY, last]


def test_an_entry_larger_than_its_folders_share_is_kept(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_store, "LIMIT", 1)
    _age(_file(store), 10)
    last = KEY[:2] + OTHER[2:]
    store.put(last, ENTRY)
    assert store.keys() == [last]


def test_clearing_leaves_what_is_not_ours(store: DiskStore) -> None:
    (store.folder / "notes.txt").write_text("mine")
    assert store.clear() == 1
    assert store.keys() == []
    assert (store.folder / "notes.txt").exists()


@pytest.mark.parametrize("age", [0, 7200])
def test_only_files_with_the_names_of_entries_are_ever_removed(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch, age: float
) -> None:
    monkeypatch.setattr(disk_store, "LIMIT", 1)
    entry = _file(store)
    names = [
        *(
            "db/mine.tmp",
            "db/mine.nfk",
            f"DB/{entry.name}",
            f"{KEY[:2]}/{'x' * 62}.nfk",
        ),
        *(f"db/{entry.name}.tmp", f"db/{entry.name}.backup.tmp", f"dbx/{entry.name}"),
    ]
    theirs = [store.folder / name for name in names]
    for path in theirs:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        _age(path, age)
    fresh = DiskStore(store.folder)
    for folder in KEY[:2], "db":
        fresh.put(folder + OTHER[2:], ENTRY)
    fresh.clear()
    assert not entry.exists()
    assert [path.read_text() for path in theirs] == ["mine"] * len(theirs)


def test_a_warning_that_is_made_an_error_is_no_error_of_the_call(
    store: DiskStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail(monkeypatch, errno.ENOSPC)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.put(OTHER, ENTRY)
        store.folder.chmod(0o777)
        assert not DiskStore(store.folder).is_usable


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_an_entry_is_a_miss(store: DiskStore) -> None:
    _file(store).unlink()
    os.mkfifo(_file(store), 0o600)
    assert store.get(KEY) is None
    assert not _file(store).exists()


def test_an_entry_of_any_size_is_a_miss(store: DiskStore) -> None:
    with _file(store).open("r+b") as file:
        file.truncate(1 << 41)
    assert store.get(KEY) is None
    store.put(KEY, ENTRY)
    assert store.get(KEY) == ENTRY


def test_a_subfolder_that_others_can_write_is_neither_read_nor_written(
    store: DiskStore,
) -> None:
    _file(store).parent.chmod(0o777)
    assert store.get(KEY) is None
    with pytest.warns(RuntimeWarning, match="others can write to it"):
        store.put(KEY, ENTRY)
    assert list(_file(store).parent.iterdir()) == []
