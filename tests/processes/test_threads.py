# SPDX-License-Identifier: Apache-2.0
"""Traces beside threads that draw random numbers and a collector that reads a clock."""

from __future__ import annotations

import pytest

from nfuser.errors import TraceError
from tests.trace.test_draws import (
    HONEST,
    Network,
    collector_with_a_clock,
    plain,
    threads_that_draw,
    trace,
)


@pytest.mark.slow
def test_five_hundred_traces_beside_eight_threads_are_not_disturbed() -> None:
    pytest.importorskip("distributed")  # too long where tests are many
    network = Network()
    with threads_that_draw(8), collector_with_a_clock():
        for _ in range(250):
            trace(plain)
            trace(network.apply)
        for function in HONEST.values():
            with pytest.raises(TraceError, match="random numbers"):
                trace(function)
