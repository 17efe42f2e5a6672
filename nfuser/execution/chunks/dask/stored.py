# SPDX-License-Identifier: Apache-2.0
"""Chunks that lie in files are read by the thread of the task that computes with them.

Zarr hands each step of a read, the file and each codec, to a thread of its own, and
copies what it has decoded. Beside tasks that keep all cores busy each change of threads
waits for a core, and what one thread has left in its core's caches another reads.
Whoever else reads the same chunks gets those arrays, which nobody may write.
"""

# Dask and Zarr have no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.execution.chunks.dask.graph import Layers, Module, as_root, layer_of
from nfuser.execution.chunks.tasks.block import Block

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_arrays: Any = Module("dask.array.core")
_blocks: Any = Module("dask.blockwise")


def read_by_tasks(arrays: Sequence[Any]) -> list[Any]:
    """Return ``arrays`` in whose graphs chunks that passes read are read by tasks."""
    layers = Layers(arrays)
    getters = _arrays.getter, _arrays.getter_nofancy
    read = {
        name
        for reader, names in layers.dependencies.items()
        if isinstance(_run_by(layers.layers[reader]), Block)
        for name in names
        if _run_by(layers.layers[name]) in getters
    }
    if not read:
        return list(arrays)
    for name in sorted(read):
        layer = layers.layers[name]
        made = as_root(layer, stored_chunk, layer.io_deps)
        layers.add(name, made, *layers.dependencies[name])
    return [layers.array(layer_of(a), a.chunks, a.dtype) for a in arrays]


def _run_by(layer: Any) -> Any:
    """Return what each task of a layer of blocks runs."""
    return layer.task.func if isinstance(layer, _blocks.Blockwise) else None


def stored_chunk(
    stored: Any, index: Any, asarray: bool = True, lock: Any = None
) -> Any:
    """Return a chunk of what is stored, as Dask's ``getter`` does."""
    if not lock and _is_in_files(stored) and _is_one_chunk(stored, index):
        return _read_here(stored, index)
    return _arrays.getter(stored, index, asarray=asarray, lock=lock)


def _is_in_files(stored: Any) -> bool:
    """Tell whether it is an array of Zarr's whose chunks are files of this machine.

    Other stores may have a loop of their own, or lend memory that is theirs.
    """
    zarr = sys.modules.get("zarr")
    if zarr is None or type(stored) is not zarr.Array:
        return False
    try:
        buffers = import_module("zarr.buffer")
    except ImportError:  # before Zarr 3.1
        return False
    if not hasattr(stored, "async_array"):
        return False
    if buffers.default_buffer_prototype() != buffers.cpu.buffer_prototype:
        return False
    return _is_of_files(stored.store) and not _is_in_a_loop()


def _is_of_files(store: Any) -> bool:
    """Tell whether a store reads files itself, or has fsspec read them in a thread."""
    stores = import_module("zarr.storage")
    if type(store) is stores.LocalStore:
        return True
    local = sys.modules.get("fsspec.implementations.local")
    if local is None or type(store) is not stores.FsspecStore:
        return False
    files = getattr(store.fs, "sync_fs", None)
    is_free = getattr(store.fs, "semaphore", None) is None  # which belongs to a loop
    return is_free and type(files) is local.LocalFileSystem


def _is_in_a_loop() -> bool:
    """Tell whether this thread runs a loop already, as a notebook's does."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_one_chunk(stored: Any, index: Any) -> bool:
    """Tell whether ``index`` is one chunk of those in the store.

    Of several Zarr decodes some at a time, by as many threads.
    """
    return (
        stored.ndim > 0
        and type(index) is tuple
        and len(index) == stored.ndim
        and all(
            _is_step(along, step, size)
            for along, step, size in zip(
                index, stored.chunks, stored.shape, strict=True
            )
        )
    )


def _is_step(along: Any, step: int, size: int) -> bool:
    """Tell whether a range is one of equal parts, of which the last may be short."""
    if type(along) is not slice or along.start is None or along.step not in (None, 1):
        return False
    begin, end = int(along.start), int(along.stop)
    return begin % step == 0 and begin < end == min(begin + step, size)


def _read_here(stored: Any, index: tuple[slice, ...]) -> Any:
    """Return what lies at ``index``; all of the work is done by this thread."""
    shape = tuple(along.stop - along.start for along in index)
    out = _taker()(shape, stored.dtype)
    loop = asyncio.new_event_loop()
    try:
        loop.set_default_executor(AtOnce(max_workers=1))
        read = stored.async_array.get_orthogonal_selection(index, out=out)
        return loop.run_until_complete(read)
    finally:
        loop.close()


class AtOnce(ThreadPoolExecutor):
    """Runs what it is given in the thread that asks for it.

    >>> AtOnce(max_workers=1).submit(sum, [1, 2]).result()
    3
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Return the result of a call, or what it raised, as a future."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  # raised where it is asked for
            future.set_exception(error)
        return future


@cache
def _taker() -> type[Any]:
    """Return Zarr's buffer that keeps what is written over all of it, uncopied.

    What was read from a file and decoded is nobody else's. There is no memory until
    something is written in part: pages of memory that nobody used would come and go.
    """

    class Taker(import_module("zarr.buffer").cpu.NDBuffer):
        def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
            super().__init__(np.broadcast_to(np.zeros((), dtype), shape))
            self._is_filled = False

        def __setitem__(self, key: Any, value: Any) -> None:
            data, own = getattr(value, "_data", value), self._data
            if (
                type(data) is np.ndarray
                and (data.shape, data.dtype) == (own.shape, own.dtype)
                and data.flags.c_contiguous
            ):
                self._data, self._is_filled = data, True
            else:
                self.as_ndarray_like()[key] = data

        def as_ndarray_like(self) -> Any:
            if not self._is_filled:
                own = self._data
                self._data, self._is_filled = np.empty(own.shape, own.dtype), True
            return self._data

        as_numpy_array = as_ndarray_like

    return Taker
