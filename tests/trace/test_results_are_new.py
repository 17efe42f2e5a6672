# SPDX-License-Identifier: Apache-2.0
"""What NumPy's functions give is a new array, or a view of what they are given."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.trace.test_assignment import agree

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.random.default_rng(0).random((4, 4)) * 4

NEW: dict[str, Callable[[Any], Any]] = {
    "median": lambda x: np.median(x, axis=0),
    "quantile": lambda x: np.quantile(x, 0.3, axis=0),
    "nanpercentile": lambda x: np.nanpercentile(x, 30.0, axis=1),
    "kron": lambda x: np.kron(x, x),
    "tensordot": lambda x: np.tensordot(x, x, 1),
    "inner": lambda x: np.inner(x, x),
    "histogram": lambda x: np.histogram(x, 5)[0],
    "resize": lambda x: np.resize(x, (3, 5)),
    "meshgrid": lambda x: np.meshgrid(x[0], x[1])[0],
    "vander": lambda x: np.vander(x[0]),
    "sums": lambda x: np.einsum("ij->i", x),
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: np.einsum("ij->ji", x),
    "as it is": lambda x: np.einsum("...", x),
    "quarter": np.rot90,
    "half": lambda x: np.rot90(x, 2),
    "three quarters": lambda x: np.rot90(x, -1),
    "whole": lambda x: np.rot90(x, 4),
    "matrix": np.linalg.matrix_transpose,
    "rollaxis": lambda x: np.rollaxis(x, 1),
}


@pytest.mark.parametrize("name", NEW)
def test_a_new_array_is_assigned_to(name: str) -> None:
    def assigned(x: Any) -> Any:
        found = NEW[name](x)
        found[0] = 1
        found[-1:] += 2
        return found, NEW[name](x)

    agree(lambda x: assigned(x)[0], X)
    agree(lambda x: assigned(x)[1], X)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_writes_into_what_it_is_a_view_of(name: str) -> None:
    def assigned(x: Any) -> Any:
        found = VIEWS[name](x)
        found[0] = 1
        found[-1:, 1] += 2
        x[1] *= 3
        return found + 0

    agree(assigned, X)


SEEN: dict[str, Callable[[Any], Any]] = {
    "diagonal": np.diag,
    "diagonal by letters": lambda x: np.einsum("ii->i", x),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=0),
    "windows of both": lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3)),
    "grid": lambda x: np.meshgrid(x[0], x[:, 1], copy=False)[1],
    "the same": lambda x: np.array(x, copy=None),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_view_sees_what_is_written_later(name: str) -> None:
    def written(x: Any) -> Any:
        found = SEEN[name](x)
        x[1] = 7
        x[:, 2] += 1
        return found + 0

    agree(written, X)
