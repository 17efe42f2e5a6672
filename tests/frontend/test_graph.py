# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs where there are none: errors that say what to do."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, BackendError
from nfuser.execution.device.cuda import graphs
from nfuser.execution.device.cuda.graphs import CudaGraph
from nfuser.execution.device.describe.libraries import Library

if TYPE_CHECKING:
    from collections.abc import Generator


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
        CudaGraph().replay()


def test_no_graph_is_destroyed_while_another_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []

    @contextmanager
    def record(graph: CudaGraph) -> Generator[None]:
        yield
        events.append("recorded")
        graph.finish(lambda: None)

    monkeypatch.setitem(graphs.RECORDERS, Library.TORCH, record)
    for turn in range(3):
        with CudaGraph().recorded(Library.TORCH) as graph:
            finalize(graph, events.append, f"destroyed {turn}")
    assert events == ["recorded", "recorded", "destroyed 0", "recorded", "destroyed 1"]


def test_a_graph_is_recorded_between_its_beginning_and_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def record(graph: CudaGraph) -> Generator[None]:
        yield
        graph.finish(lambda: None)

    monkeypatch.setitem(graphs.RECORDERS, Library.TORCH, record)
    assert not graphs.is_recording()
    with CudaGraph().recorded(Library.TORCH):
        assert graphs.is_recording()
    assert not graphs.is_recording()
