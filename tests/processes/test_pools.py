# SPDX-License-Identifier: Apache-2.0
"""Fused functions in pools of processes: of the standard library and of joblib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.processes.scripts import run_script

if TYPE_CHECKING:
    from pathlib import Path

POOLS = """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    import numpy as np

    import nfuser

    SCALE = 3.0


    @nfuser.fuse
    def scaled(x):
        return x * SCALE + 1


    class Layer:
        def __init__(self, weight):
            self.weight = weight

        @nfuser.fuse
        def apply(self, x):
            return x * self.weight


    def compiled(_):
        return scaled.cache_info().compiled


    if __name__ == "__main__":
        arrays = [np.full(n, 2.0) for n in (1, 5, 1000)]
        for array in arrays:
            scaled(array)
            Layer(4.0).apply(array)
        for method in ("spawn", "forkserver", "fork"):
            context = multiprocessing.get_context(method)
            with ProcessPoolExecutor(2, context) as pool:
                for array, found in zip(arrays, pool.map(scaled, arrays)):
                    np.testing.assert_array_equal(found, array * 3 + 1)
                for array, found in zip(arrays, pool.map(Layer(4.0).apply, arrays)):
                    np.testing.assert_array_equal(found, array * 4)
                if method != "fork":
                    assert sum(pool.map(compiled, range(4))) == 0
            print(method)
"""

LOKY = """
    import joblib
    import numpy as np

    import nfuser

    SCALE = 3.0


    @nfuser.fuse
    def scaled(x):
        return x * SCALE + 1


    def shifted_by(shift):
        return nfuser.fuse(lambda x: x + shift)


    def counted(function, x):
        return function(x), function.cache_info().compiled


    if __name__ == "__main__":
        # joblib sends large arrays as read-only memory maps.
        arrays = [np.full(n, 2.0, d) for n in (1, 1000, 400_000) for d in ("f4", "f8")]
        functions = [scaled, shifted_by(np.float32(1.5)), nfuser.fuse(lambda x: x * x)]
        jobs = [(f, x) for f in functions for x in arrays]
        expected = [f(x) for f, x in jobs]
        with joblib.Parallel(2, backend="loky") as parallel:
            found = parallel(joblib.delayed(counted)(f, x) for f, x in jobs)
        for (function, x), (result, compiled), wanted in zip(jobs, found, expected):
            np.testing.assert_array_equal(result, wanted)
            assert result.dtype == wanted.dtype
            assert compiled == 0, (function, x.dtype, x.shape)
        print(len(found))
"""


def test_functions_of_a_script_run_in_pools_and_compile_nothing_twice(
    tmp_path: Path,
) -> None:
    assert run_script(POOLS, tmp_path) == ["spawn", "forkserver", "fork"]


def test_joblib_runs_closures_and_lambdas_in_its_processes(tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    assert run_script(LOKY, tmp_path) == ["18"]
