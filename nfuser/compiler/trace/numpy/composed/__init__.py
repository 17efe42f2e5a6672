# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that are made of other ones, in NumPy's own words.

Each takes the trace and what NumPy's function takes; on traced arrays, the functions
of NumPy that it calls are traced in turn.
"""

from __future__ import annotations

from typing import Any

from nfuser.compiler.trace.numpy.composed import choices, grids, kinds
from nfuser.compiler.trace.numpy.composed.linear import (
    diagonals,
    einsum,
    linear_algebra,
    norms,
    products,
)
from nfuser.compiler.trace.numpy.composed.ordering import orders, places, searches
from nfuser.compiler.trace.numpy.composed.signals import (
    convolutions,
    differences,
    fourier,
    polynomials,
    windows,
)
from nfuser.compiler.trace.numpy.composed.statistics import (
    averages,
    counts,
    histograms,
    nan_reductions,
)

HANDLERS: dict[str, Any] = {
    name: handler
    for family in (
        averages,
        choices,
        convolutions,
        counts,
        diagonals,
        differences,
        einsum,
        fourier,
        grids,
        histograms,
        kinds,
        linear_algebra,
        nan_reductions,
        norms,
        orders,
        places,
        polynomials,
        products,
        searches,
        windows,
    )
    for name, handler in family.HANDLERS.items()
}
