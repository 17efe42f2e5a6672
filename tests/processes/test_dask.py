# SPDX-License-Identifier: Apache-2.0
"""Fused functions on a cluster of dask's: from a script, and from a notebook."""

from __future__ import annotations

import os
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes.scripts import run_script

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER = """
    import dask.array as da
    import numpy as np
    from distributed import Client, LocalCluster

    import nfuser

    WEIGHT = np.arange(1.0, 5.0)


    @nfuser.fuse
    def normalised(x):
        return (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True)


    class Layer:
        def __init__(self, weight):
            self.weight = weight

        @nfuser.fuse
        def apply(self, x):
            return x * self.weight + WEIGHT[0]


    def counted(function, x):
        return function(x), function.cache_info().compiled


    if __name__ == "__main__":
        scaled = nfuser.fuse(lambda x: x * WEIGHT)
        rows = np.random.default_rng(0).random((300, 4))
        functions = [normalised, scaled, Layer(2.0).apply]
        for function in functions:
            for block in (rows[:100], rows[:50]):
                function(block)  # fills the cache on disk
        cluster = LocalCluster(n_workers=2, threads_per_worker=2, processes=True,
                               dashboard_address=None)
        with cluster, Client(cluster) as client:
            blocks = da.from_array(rows, chunks=(100, 4))
            for function in functions:
                found = blocks.map_blocks(function, dtype=float).compute(timeout=60)
                np.testing.assert_allclose(found, function(rows), rtol=1e-12)
            halves = [rows[k : k + 50] for k in range(0, 300, 50)]
            for function in functions[:2]:
                futures = client.map(counted, [function] * 6, halves)
                for half, future in zip(halves, futures):
                    result, compiled = future.result(timeout=60)
                    np.testing.assert_allclose(result, function(half), rtol=1e-12)
                    assert compiled == 0
            WEIGHT = WEIGHT * 2
            later = client.submit(scaled, rows).result(timeout=60)
            np.testing.assert_array_equal(later, rows * WEIGHT)
        print("done")
"""

CELLS = (
    """
    import numpy as np, nfuser
    from distributed import Client, LocalCluster
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    client = Client(cluster)
    """,
    """
    WEIGHT = 2

    @nfuser.fuse
    def f(x):
        return x * WEIGHT + 1
    """,
    """
    SIZES = (1, 2, 3, 5, 7, 10, 33, 100, 129, 1000, 1025, 4097, 10000, 65537)
    DTYPES = ("f4", "f8", "i4", "i8", "u1", "i2", "c16", "f2")
    futures, refused, hung, wrong = [], [], 0, 0
    for k in range(SUBMISSIONS):
        dtype = DTYPES[k % 8]
        x = (np.arange(SIZES[(k // 8) % 14]) % 5).astype(dtype)
        futures.append((x, client.submit(f, x, pure=False)))
    for x, future in futures:
        try:
            found = future.result(timeout=60)
        except TimeoutError:
            hung += 1
        except Exception as error:
            refused.append(str(error))
        else:
            wanted = x * 2 + 1
            wrong += found.dtype != wanted.dtype or not np.array_equal(found, wanted)
    """,
    """
    WEIGHT = 5  # a cell that is run again: the next submission has the new value
    again = client.submit(f, np.ones(3), pure=False).result(timeout=60)
    client.close(), cluster.close()
    print(len(futures), len(refused), hung, wrong, again.tolist(), refused[:1])
    """,
)


def test_a_script_maps_blocks_and_its_workers_compile_nothing(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    assert run_script(CLUSTER, tmp_path) == ["done"]


def test_a_notebook_submits_its_own_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    pytest.importorskip("ipykernel")
    nbclient: Any = pytest.importorskip("nbclient")
    nbformat: Any = pytest.importorskip("nbformat")
    monkeypatch.setenv("NFUSER_CACHE_DIR", str(tmp_path))
    # Each dtype with each size, twice; SUBMISSIONS=1000 takes longer.
    count = int(os.environ.get("SUBMISSIONS", "224"))
    first = nbformat.v4.new_code_cell(f"SUBMISSIONS = {count}")
    cells = [first, *(nbformat.v4.new_code_cell(_plain(cell)) for cell in CELLS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
    (printed,) = notebook.cells[-1].outputs
    assert printed["text"].strip() == f"{count} 0 0 0 [6.0, 6.0, 6.0] []"


def _plain(cell: str) -> str:
    return dedent(cell).strip()
