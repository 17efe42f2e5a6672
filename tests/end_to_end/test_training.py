# SPDX-License-Identifier: Apache-2.0
"""Models whose pieces are fused learn as they do in torch alone."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
training: Any = pytest.importorskip("asv_bench.compare.training")


@pytest.mark.parametrize(("model", "steps"), [("perceptron", 200), ("transformer", 20)])
def test_the_steps_of_training_are_those_of_torch(model: str, steps: int) -> None:
    found = training.equal(getattr(training, model), steps)
    assert found["last"] < 0.9 * found["first"]
    assert found["losses"] <= 1e-5
    assert found["parameters"] <= 1e-5


def test_autocast_learns_within_what_seeds_are_apart() -> None:
    found = training.spread(training.perceptron, 20, training.AUTOCAST)
    assert found["apart"] <= found["spread"]


def test_a_layer_keeps_no_more_than_torch() -> None:
    size = training.Size(4, 16, 32)
    pieces = training.FUSED, training.EAGER
    made = [training.transformer(p, size, 0, torch.float32) for p in pieces]
    ours, theirs = map(training.kept, made)
    assert ours < theirs
