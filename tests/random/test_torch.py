# SPDX-License-Identifier: Apache-2.0

# What is drawn has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import TraceError
from nfuser.nn import dropout
from nfuser.random import default_rng, key, of
from nfuser.random.distributions import uniform
from tests.random.philox import words_of

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_tensors_get_the_numbers_that_arrays_get() -> None:
    wanted = uniform.random(words_of(3, 0, (5, 7)), np.float32)
    x = torch.zeros(5, 7)
    fused = nfuser.fuse(lambda x, rng: x + rng.random(x.shape, torch.float32))
    keyed = nfuser.fuse(lambda x, k: x + of(k).random(x.shape, x.dtype))
    for found in (
        fused(x, default_rng(3)),
        keyed(x, key(3)),
        default_rng(3).random((5, 7), torch.float32, like=x),
    ):
        assert found.dtype is torch.float32
        np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
def test_dropout_of_tensors_keeps_their_dtype(name: str) -> None:
    x = torch.linspace(1, 2, 35, dtype=getattr(torch, name)).reshape(5, 7)
    kept = torch.from_numpy(words_of(3, 0, (5, 7))(16) >= 1 << 14)
    wanted = torch.where(kept, x / 0.75, torch.zeros((), dtype=x.dtype))
    fused = nfuser.fuse(lambda x, rng: dropout(x, 0.25, rng=rng))
    for found in (fused(x, default_rng(3)), dropout(x, 0.25, rng=default_rng(3))):
        assert found.dtype is x.dtype
        torch.testing.assert_close(found, wanted)


def test_a_seed_of_torch_makes_a_run_repeat() -> None:
    generator = torch.Generator()
    found: list[Any] = []
    for _ in range(2):
        generator.manual_seed(5)
        first, second = (default_rng(generator) for _ in range(2))
        assert first.state["key"] != second.state["key"]
        found.append(first.random(4))
    np.testing.assert_array_equal(found[0], found[1])
    torch.manual_seed(5)
    key = default_rng(torch.default_generator).state["key"]
    assert key == default_rng(generator.manual_seed(5)).state["key"]


def test_a_trace_takes_no_seed_of_torch() -> None:
    generator = torch.Generator()
    fused = nfuser.fuse(lambda x: x + default_rng(generator).random(3))
    before = generator.get_state()
    with pytest.raises(TraceError, match="outside"):
        fused(np.zeros(3))
    assert torch.equal(generator.get_state(), before)


class Generator:
    """Counts as a generator of a GPU does."""

    device = torch.device("cuda")
    offset = 0

    def initial_seed(self) -> int:
        return 5

    def get_offset(self) -> int:
        return self.offset

    def set_offset(self, offset: int) -> None:
        self.offset = offset


def test_a_generator_of_a_gpu_is_counted_on_without_asking_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Generator, "__module__", "torch._C")
    generator: Any = Generator()
    keys = [default_rng(generator).state["key"] for _ in range(3)]
    assert len(set(keys)) == 3
    assert generator.offset == 12
    generator.set_offset(4)
    assert default_rng(generator).state["key"] == keys[1]
