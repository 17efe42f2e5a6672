# SPDX-License-Identifier: Apache-2.0
"""Arrays on disk go in and out chunk by chunk: Zarr, and files that are mapped."""

# Dask and Zarr have no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.execution.chunks.dask.stored import stored_chunk

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("dask.array")


@nfuser.fuse
def standardised(x: Any) -> Any:
    return (x - x.mean(0)) / x.std(0)


def rows() -> Any:
    return np.random.default_rng(0).standard_normal((500, 8)).astype("f4")


def wanted(x: Any) -> Any:
    return ((x - x.mean(0, dtype="f8")) / x.std(0, dtype="f8")).astype("f4")


def test_stores_of_zarr_are_read_and_written(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    da: Any = import_module("dask.array")
    x = rows()
    da.from_array(x, chunks=(120, 8)).to_zarr(str(tmp_path / "in.zarr"))
    made = standardised(da.from_zarr(str(tmp_path / "in.zarr")))
    made.to_zarr(str(tmp_path / "out.zarr"))
    found = da.from_zarr(str(tmp_path / "out.zarr"))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.compute(), wanted(x), rtol=1e-5, atol=1e-6)


def test_files_that_are_mapped_are_read_and_written(tmp_path: Path) -> None:
    da: Any = import_module("dask.array")
    x = rows()
    form: dict[str, Any] = {"dtype": "f4", "shape": x.shape}
    source = np.memmap(tmp_path / "in", mode="w+", **form)
    source[...] = x
    source.flush()
    read = np.memmap(tmp_path / "in", mode="r", **form)  # nobody may write there
    out = np.memmap(tmp_path / "out", mode="w+", **form)
    da.store(standardised(da.from_array(read, chunks=(120, 8))), out)
    np.testing.assert_allclose(out, wanted(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(read, x)


FORMS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "not compressed": {"compressors": None},
    "format 2": {"zarr_format": 2},
    "bytes in another order": {"dtype": ">f4"},
    "columns first": {"zarr_format": 2, "order": "F"},
    "shards": {"shards": (240, 6)},
}


def stored(place: Any, **form: Any) -> Any:
    """Return an array of Zarr's whose last rows were never written."""
    zarr: Any = pytest.importorskip("zarr")
    own: dict[str, Any] = {"shape": (500, 8), "chunks": (120, 3), "dtype": "f4"}
    made = zarr.create_array(store=place, **(own | form))
    made[:480] = rows()[:480]
    return made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chunks", [None, (240, 6), (50, 8)])
def test_each_form_of_a_store_is_read(tmp_path: Path, form: str, chunks: Any) -> None:
    da: Any = import_module("dask.array")
    stored(str(tmp_path / "in.zarr"), **FORMS[form])
    wanted = rows() * 2 + 1
    wanted[480:] = 1
    doubled = nfuser.fuse(lambda x: x * 2 + 1)
    lazy = da.from_zarr(str(tmp_path / "in.zarr"), chunks=chunks)
    np.testing.assert_array_equal(doubled(lazy).compute(), wanted)


def test_a_task_reads_its_chunk_in_its_own_thread_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    da: Any = import_module("dask.array")
    dask: Any = import_module("dask")
    place = str(tmp_path / "in.zarr")
    stored(place)
    lazy = da.from_zarr(place)
    codec: Any = import_module("numcodecs").Zstd
    decode, threads = codec.decode, list[int]()

    def noted(self: Any, *given: Any) -> Any:
        threads.append(threading.get_ident())
        return decode(self, *given)

    monkeypatch.setattr(codec, "decode", noted)
    made = nfuser.fuse(np.negative)(lazy)
    made.compute(scheduler="sync")
    assert threads == [threading.get_ident()] * 12
    dask.compute(made, lazy.sum())  # whoever else reads chunks has them read once
    assert len(threads) == 24


def test_what_was_decoded_is_not_copied(tmp_path: Path) -> None:
    first = slice(0, 120), slice(0, 3)
    found = stored_chunk(stored(tmp_path / "in.zarr"), first)
    assert not found.flags.owndata
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, rows()[first])


def test_memory_of_a_store_stays_its_own() -> None:
    first = slice(0, 120), slice(0, 3)
    zarr: Any = pytest.importorskip("zarr")
    source = stored(zarr.storage.MemoryStore(), compressors=None)
    stored_chunk(source, first)[...] = 0
    np.testing.assert_array_equal(source[first], rows()[first])


def test_a_chunk_is_read_where_a_loop_runs(tmp_path: Path) -> None:
    source, first = stored(tmp_path / "in.zarr"), (slice(0, 120), slice(0, 3))

    async def read() -> Any:
        return stored_chunk(source, first)

    np.testing.assert_array_equal(asyncio.run(read()), rows()[first])


def test_a_chunk_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    da: Any = import_module("dask.array")
    stored(tmp_path / "in.zarr")
    (tmp_path / "in.zarr" / "c" / "1" / "0").write_bytes(b"what is no chunk")
    lazy = nfuser.fuse(np.negative)(da.from_zarr(str(tmp_path / "in.zarr")))
    with pytest.raises(RuntimeError, match="Zstd"):
        lazy.compute()
