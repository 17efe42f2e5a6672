# SPDX-License-Identifier: Apache-2.0
"""No schedule can be seen in what is drawn: the bits are the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from nfuser.compiler.schedule.heuristics.cuda import CudaPointwise
from nfuser.random import of
from tests.schedule.run_schedule import Call

SHAPES = ((7, 45), (12, 40), (5, 64))


def _noisy(x: Any) -> Any:
    return x + of(7).random(x.shape, np.float32)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_bits_are_the_same_over_fifty_schedules(shape: tuple[int, ...]) -> None:
    call = Call(_noisy, np.zeros(shape, np.float32))
    chosen = call.heuristic()
    assert isinstance(chosen, CudaPointwise)
    widths = [w for w in (1, 2, 4) if w <= chosen.width]
    schedules = product(widths, (1, 3, 32, 100, 256, 1024), (1, 2, 3), (False, True))
    count = 0
    for width, threads, items, wide in schedules:
        call.check(
            call.apply(
                replace(
                    chosen,
                    width=width,
                    threads=threads,
                    items=items,
                    shared=-1,
                    wide_index=wide,
                )
            ),
            exactly=True,
        )
        count += 1
    assert count >= 36 * len(widths)
