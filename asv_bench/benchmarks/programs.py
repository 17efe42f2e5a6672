# SPDX-License-Identifier: Apache-2.0
"""The programs of ``asv_bench.programs``: how many times as fast as the best peer."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import benchmarks as benchmarks

sys.path.append(str(Path(__file__).parents[2]))  # after the nfuser that is measured

from asv_bench.programs.measure import measured
from asv_bench.programs.program import PROGRAMS

NAMES = tuple(program.module for program in PROGRAMS)


class Programs:
    """The least time of NumPy, Numba and JAX over ours, at two sizes."""

    params = (NAMES, ("large", "small"))
    param_names = ("program", "size")
    timeout = 300.0

    def track_ratio(self, name: str, size: str) -> float:
        peers = [peer for peer in ("numba", "jax") if find_spec(peer) is not None]
        if "jax" in peers:
            from jax import config

            config.update("jax_enable_x64", True)
        program = PROGRAMS[NAMES.index(name)]
        row = measured(program, getattr(program, size), peers, turns=3)
        if row.ratio is None:
            raise AssertionError(row.notes)  # it is refused, or wrong
        return row.ratio
