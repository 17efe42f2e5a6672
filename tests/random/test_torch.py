# SPDX-License-Identifier: Apache-2.0

# What is drawn has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
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
    kept = torch.from_numpy(uniform.random(words_of(3, 0, (5, 7)), np.float32) >= 0.25)
    wanted = torch.where(kept, x / 0.75, torch.zeros((), dtype=x.dtype))
    fused = nfuser.fuse(lambda x, rng: dropout(x, 0.25, rng=rng))
    for found in (fused(x, default_rng(3)), dropout(x, 0.25, rng=default_rng(3))):
        assert found.dtype is x.dtype
        torch.testing.assert_close(found, wanted)
