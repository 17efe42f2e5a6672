# SPDX-License-Identifier: Apache-2.0
"""Many shapes of one function are right, and take one trace and few kernels."""

from __future__ import annotations

import pytest

from tests.many_shapes import SUBJECTS, call_all


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("subject", SUBJECTS)
def test_many_shapes_take_one_trace_and_few_kernels(subject: str, backend: str) -> None:
    outcome, _ = call_all(subject, backend, calls=40, seed=1, most=1 << 13)
    assert outcome.is_good, outcome
