# SPDX-License-Identifier: Apache-2.0
"""A few random programs; the command line tries thousands."""

from __future__ import annotations

import numpy as np
import pytest

import nfuser
import nfuser.execution.host.ir.statements as st
from tests import workers
from tests.definitions.check import written
from tests.host.drive import Result, Task
from tests.host.loops import Loops, check_loops
from tests.host.peak import measured, reference
from tests.host.programs import check, cutter


@pytest.mark.parametrize("seed", range(0, 24, 3))
def test_a_random_program_does_what_numpy_does(seed: int) -> None:
    check(seed, "interpret")


@pytest.mark.parametrize("seed", [1, 2, 5, 16, 18, 23])
def test_loops_do_what_numpy_does(seed: int) -> None:
    check_loops(seed, "interpret")


def test_loops_in_loops_and_conditions_are_among_them() -> None:
    found = [list(st.walk(Loops(seed).program.body)) for seed in range(24)]
    nested = [s for body in found for s in body if isinstance(s, st.ForLoop)]
    assert sum(any(isinstance(x, st.ForLoop) for x in s.body) for s in nested) > 5
    assert (
        sum(isinstance(s, st.IfThenElse) and bool(s.orelse) for b in found for s in b)
        > 5
    )


def test_aliases_and_cuts_are_among_them() -> None:
    writers = [written(seed, None, "numpy") for seed in range(60)]
    assert sum(bool(w.aliased) for w in writers) > 5


def test_a_cut_anywhere_changes_no_result() -> None:
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1])
        y = fd.ops.exp(fd.ops.mul(x, 0.5))
        fd.add_output(fd.ops.sum(y, 1))
        fd.add_output(fd.ops.add(y, 1.0))
    array = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    counts: set[int] = set()
    for seed in range(8):
        cache = nfuser.FusionExecutorCache(
            fd.fusion, backend="interpret", should_merge=cutter(seed, 0.5)
        )
        program = cache.program_for([array])
        counts.add(len(program.launches))
        assert measured(program) <= reference(program)
        total, moved = cache.run([array])
        want = np.exp(array * np.float32(0.5))
        np.testing.assert_allclose(total, want.sum(1), rtol=1e-5)
        np.testing.assert_allclose(moved, want + 1, rtol=1e-5)
    assert len(counts) > 1


class _Ending(Task):
    """Programs of which number 3 ends the process."""

    def part(self, start: int, stop: int) -> _Ending:
        return _Ending(self.backend, start, stop)

    def command(self) -> list[str]:
        each = "k == 3 and os._exit(7) or print('{\"index\": %d}' % k, flush=True)"
        return ["-c", f"import os\nfor k in range({self.start}, {self.stop}): {each}"]


def test_a_program_that_ends_its_process_is_a_finding() -> None:
    found = list(workers.run_all(_Ending("cpu", 0, 7), jobs=2, chunk=5))
    assert sorted(r.index for r in found) == list(range(7))
    (wrong,) = (r for r in found if r != Result(r.index))
    assert wrong.index == 3
    assert "--seed 3 --programs 1 --backend cpu):\n" in str(wrong.report)
    assert "the process ended with code 7" in str(wrong.report)
