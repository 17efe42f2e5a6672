# SPDX-License-Identifier: Apache-2.0
"""Tasks on workers: the same bits, few kernels, and what happens when one dies."""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.config as config
from tests.chunks import faults

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("dask.array")
pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with faults.cluster(2) as found:
        yield found


def array(chunks: Any = 500, seed: int = 0) -> Any:
    x = np.random.default_rng(seed).standard_normal((4000, 16))
    return import_module("dask.array").from_array(x, chunks=(chunks, 16))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_the_bits_do_not_depend_on_schedulers_or_workers(
    client: Any, dtype: str
) -> None:
    y = faults.standardised((array() * 100).astype(dtype))
    wanted = y.compute(scheduler="sync").tobytes()
    assert y.compute(scheduler="threads").tobytes() == wanted
    assert client.compute(y).result().tobytes() == wanted
    part = wanted[: 1000 * 16 * y.dtype.itemsize]
    assert client.persist(y)[:1000].compute().tobytes() == part


def test_functions_of_a_notebook_need_not_be_known_to_workers(client: Any) -> None:
    weight = np.arange(16.0)
    fused = nfuser.fuse(lambda x: np.tanh(x) * weight)
    x = array()
    np.testing.assert_allclose(
        client.compute(fused(x)).result(), np.tanh(x.compute()) * weight, 1e-12
    )


def _threads() -> tuple[int | None, int]:
    return config.current().num_threads, os.getpid()


def test_kernels_of_a_worker_use_the_threads_that_it_has(client: Any) -> None:
    client.compute(faults.standardised(array(seed=1))).result()
    found = client.run(_threads)
    assert [threads for threads, _ in found.values()] == [1, 1]
    assert config.current().num_threads is None


def _kernels() -> int:
    from nfuser.chunks.block import built

    return sum(cache.cache_info().compiled for cache in built())


def test_ragged_chunks_take_few_kernels_in_the_whole_cluster(client: Any) -> None:
    before = sum(client.run(_kernels).values())
    rng = np.random.default_rng(3)
    rows = tuple(int(n) for n in rng.permutation(np.arange(1, 200)))
    x = np.random.default_rng(0).standard_normal((sum(rows), 4))
    lazy = import_module("dask.array").from_array(x, chunks=(rows, 4))
    fused = nfuser.fuse(lambda x: np.sqrt(x * x + 1) - x)
    np.testing.assert_allclose(
        client.compute(fused(lazy)).result(), np.sqrt(x * x + 1) - x, 1e-12
    )
    assert fused.cache_info().traces == 1
    assert sum(client.run(_kernels).values()) - before <= 6


def test_a_worker_that_dies_changes_nothing() -> None:
    wanted = faults.standardised(faults.slow_rows()).compute(scheduler="sync")
    with faults.cluster(2) as client:
        assert faults.survives(client, wanted.tobytes(), 0.8)


def test_a_worker_without_a_cache_of_kernels_compiles_them(tmp_path: Path) -> None:
    if os.name != "posix" or not hasattr(os, "geteuid"):
        pytest.skip("folders that nobody can write to")
    nowhere = tmp_path / "file"
    nowhere.write_text("")  # a folder cannot be made below it
    os.environ["NFUSER_CACHE_DIR"] = str(nowhere / "kernels")
    try:
        with faults.cluster(1) as client:
            y = faults.standardised(array(seed=2))
            found = client.compute(y).result()
    finally:
        del os.environ["NFUSER_CACHE_DIR"]
    assert found.tobytes() == y.compute(scheduler="sync").tobytes()


_SCRIPT = """
import dask, dask.array as da, numpy as np, nfuser

@nfuser.fuse
def shifted(x):
    return np.tanh(x) + x.mean()

if __name__ == "__main__":
    x = np.arange(1000.0)
    y = shifted(da.from_array(x, chunks=90))
    assert np.allclose(y.compute(scheduler="processes"), np.tanh(x) + x.mean())
"""


def test_a_pool_of_processes_runs_tasks_of_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    subprocess.run([sys.executable, str(script)], check=True, timeout=300)
