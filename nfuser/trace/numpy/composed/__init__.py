# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that are made of other ones, in NumPy's own words.

Each takes the trace and what NumPy's function takes; on traced arrays, the functions
of NumPy that it calls are traced in turn.
"""

from __future__ import annotations

from typing import Any

from nfuser.trace.numpy.composed import (
    averages,
    choices,
    convolutions,
    counts,
    diagonals,
    differences,
    einsum,
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
    transforms,
    windows,
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
        transforms,
        windows,
    )
    for name, handler in family.HANDLERS.items()
}
