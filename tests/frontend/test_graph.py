# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs where there are none: errors that say what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.device.graphs import Graph
from nfuser.errors import ArgumentError, BackendError


@nfuser.fuse
def doubled(x: Any) -> Any:
    return x * 2


def test_arrays_of_numpy_have_no_graph() -> None:
    with pytest.raises(BackendError, match="bind the call"):
        doubled.graph(np.ones(3))


def test_a_capture_needs_a_library_that_records() -> None:
    with (
        pytest.raises(BackendError, match="CUDA graphs of jax arrays"),
        nfuser.capture("jax"),
    ):
        pass


def test_a_call_without_arrays_has_nothing_to_replay() -> None:
    with pytest.raises(ArgumentError, match="nothing to replay"):
        doubled.graph(2.0)


def test_a_graph_is_not_replayed_before_its_end() -> None:
    with pytest.raises(BackendError, match="before its capture ended"):
        Graph().replay()
