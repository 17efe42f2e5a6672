# SPDX-License-Identifier: Apache-2.0
"""The demo holds what its table says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nfuser.execution.host.call import evaluate
from nfuser.frontend.commands import demo

SMALL = tuple(replace(case, shapes=case.small) for case in demo.CASES)
NAMES = [case.title for case in demo.CASES]


@pytest.mark.parametrize("case", SMALL, ids=NAMES)
def test_a_function_is_one_kernel_that_reads_its_input_once(case: demo.Case) -> None:
    assert demo.reads_of_first(case) == 1
    kernels = case.function.kernels(*demo.random_arrays(case.small))
    assert len(kernels) == 1


def test_what_ran_before_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "MOST_REPORTS", len(demo.REPORTS) + 1)
    demo.REPORTS.append(None)
    try:
        assert demo.reads_of_first(SMALL[0]) == 1
        assert demo.REPORTS[-1] is None
    finally:
        del demo.REPORTS[-1]


def test_the_chain_is_30_operations() -> None:
    (chain,) = (case for case in SMALL if case.title.startswith("30"))
    (kernel,) = chain.function.kernels(*demo.random_arrays(chain.small))
    fusion = kernel.source.partition("\n# schedule")[0]
    assert sum(fusion.count(f"= {op}(") for op in ("add", "subtract", "multiply")) == 30


def test_the_table_is_right_and_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "CASES", SMALL)
    assert demo.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert [line for line in lines if line.startswith(tuple(NAMES))] != []


def test_a_wrong_result_shows_in_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "CASES", SMALL[:1])
    monkeypatch.setattr(demo, "TOLERANCE", 0.0)
    assert demo.main() == 1
    assert f"not as it should be: {NAMES[0]}" in capsys.readouterr().out
