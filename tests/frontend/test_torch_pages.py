# SPDX-License-Identifier: Apache-2.0
"""Pages whose code needs torch run, and say what is true."""

# torch has partial types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.contract.pages import run_python

torch: Any = pytest.importorskip("torch")
DOCS = Path(__file__).parents[2] / "docs"


def test_gradients_by_hand_are_those_of_torch() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of torch
        names = run_python(DOCS / "howto" / "autograd-by-hand.md")
    norm, there = names["RmsNorm"], names["there"]
    x = torch.randn(5, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(norm.apply, (x, weight))
    assert len(there.kernels(x.detach(), weight.detach())) == 1
