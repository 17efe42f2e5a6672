# SPDX-License-Identifier: Apache-2.0
"""Threads that call the same functions get right results, and share what is built."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.execution.runtime.caches.shared_cache import forget_all
from tests.threads import storm

THREADS = 8


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_threads_get_right_results_and_compile_each_kernel_once() -> None:
    report = storm(3.0, THREADS)
    assert report.problems == []
    assert report.repeated == []
    assert len(report.compiled) >= 4
    assert report.calls > THREADS


def test_a_first_call_from_many_threads_traces_and_compiles_once() -> None:
    forget_all()
    fused = nfuser.fuse(lambda x: np.cos(x) * 3)
    barrier = threading.Barrier(THREADS)
    found: list[Any] = [None] * THREADS

    def call(k: int) -> None:
        barrier.wait(20)
        found[k] = fused(np.full((k + 2, 3), k, np.float32))

    threads = [
        threading.Thread(target=call, args=(k,), daemon=True) for k in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for k, array in enumerate(found):
        np.testing.assert_allclose(array, np.full((k + 2, 3), 3 * np.cos(k)), rtol=1e-5)
    info = fused.cache_info()
    assert (info.calls, info.traces, info.compiled) == (THREADS, 1, 1)
