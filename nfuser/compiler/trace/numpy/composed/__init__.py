# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions that are made of other ones, in NumPy's own words.

Each takes the trace and what NumPy's function takes; on traced arrays, the functions
of NumPy that it calls are traced in turn.
"""

from __future__ import annotations

from functools import wraps
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
from nfuser.compiler.trace.standins.sizes import is_sequence

_VIEWS = {
    *(
        "diag",
        "diagonal",
        "linalg.diagonal",
        "linalg.matrix_transpose",
        "einsum",
        "rollaxis",
        "rot90",
    ),
    *("lib.stride_tricks.sliding_window_view", "meshgrid"),
}


def _new(handler: Any) -> Any:
    """Return a handler whose results are new arrays, and views of none within it."""

    @wraps(handler)
    def made(*args: Any, **options: Any) -> Any:
        found: Any = handler(*args, **options)
        for x in _listed(found):
            if getattr(x, "_base", None) is not None:
                x._detach()
        return found

    return made


def _listed(found: Any) -> Any:
    return found if is_sequence(found) else (found,)


HANDLERS: dict[str, Any] = {
    name: handler if name in _VIEWS else _new(handler)
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
