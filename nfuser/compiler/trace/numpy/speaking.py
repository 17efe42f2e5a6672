# SPDX-License-Identifier: Apache-2.0
"""Parts of a trace that are written in NumPy's words, whatever the arguments speak."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from nfuser.compiler.trace.standins.dialect import NUMPY

if TYPE_CHECKING:
    from collections.abc import Generator

    from nfuser.compiler.trace.tracer import Tracer


@contextmanager
def speaking_numpy(tracer: Tracer) -> Generator[None]:
    """Let stand-ins have NumPy's methods and types, as distributions are written."""
    builder = tracer.builder
    before = tracer.dialect, tracer.home, tracer.array_class, builder.rounds_integers
    tracer.dialect = tracer.home = NUMPY
    tracer.array_class, builder.rounds_integers = np.ndarray, True
    were_counted, tracer.turns.are_counted = tracer.turns.are_counted, False
    try:
        yield
    finally:
        tracer.turns.are_counted = were_counted
        tracer.dialect, tracer.home, tracer.array_class = before[:3]
        builder.rounds_integers = before[3]
