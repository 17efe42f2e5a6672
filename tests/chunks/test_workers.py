# SPDX-License-Identifier: Apache-2.0
"""Tasks on workers: the same bits, few kernels, and what happens when one dies."""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
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
from nfuser.errors import BackendError
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
    from nfuser.execution.chunks.tasks.built import built

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


def test_a_worker_of_another_version_says_so(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = faults.standardised(array(seed=4))
    monkeypatch.setattr("nfuser.execution.chunks.tasks.block.VERSION", "another")
    with pytest.raises(BackendError, match=r"install the same nfuser .*another"):
        client.compute(y).result(timeout=60)


def test_out_of_memory_is_an_error_of_dask(tmp_path: Path) -> None:
    with faults.cluster(1, memory_limit="700MB", local_directory=str(tmp_path)) as c:
        assert faults.runs_out(c)


_SMALL = """
import resource, dask.array as da, numpy as np, nfuser

fused = nfuser.fuse(lambda x: np.sqrt(x * x + 1))
fused(da.ones(4_000_000, chunks=2_000_000)).sum().compute()
room = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (room + 10**9, room + 10**9))
try:
    fused(da.ones(10**9, chunks=10**9)).sum().compute()
except MemoryError:
    print("an error")
print(fused(da.ones(1000, chunks=500)).sum().compute())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_limit_of_the_system_is_a_memory_error_of_the_call() -> None:
    run = [sys.executable, "-c", _SMALL]
    found = subprocess.run(run, check=True, timeout=300, capture_output=True, text=True)
    assert found.stdout.split("\n")[0] == "an error"
    assert float(found.stdout.split("\n")[1]) == pytest.approx(1000 * 2**0.5)


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
