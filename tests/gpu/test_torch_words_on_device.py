# SPDX-License-Identifier: Apache-2.0
"""Torch's words on CUDA tensors give what torch gives there."""

from __future__ import annotations

from typing import Any

import pytest

import nfuser

torch: Any = pytest.importorskip("torch")
from tests.trace.test_torch_words import (  # noqa: E402 (it asks for torch, too)
    FLOATS,
    arguments_of,
    listed,
)

# The other libraries may warn as they like.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]
AT_ONCE = 12
GROUPS = [sorted(FLOATS)[k : k + AT_ONCE] for k in range(0, len(FLOATS), AT_ONCE)]


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_words_give_what_torch_gives_on_a_device(names: list[str]) -> None:
    for name in names:
        run = FLOATS[name]
        given = [a.cuda() for a in arguments_of(run, torch.float32)]
        found = listed(nfuser.fuse(run)(*given))
        for ours, theirs in zip(found, listed(run(*given)), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
            torch.testing.assert_close(
                ours, theirs, rtol=2e-5, atol=2e-5, equal_nan=True, msg=name
            )
