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


def test_a_model_of_fused_functions_trains_as_in_torch_alone() -> None:
    names = run_python(DOCS / "howto" / "train-with-torch.md")
    ours = names["losses"]
    nn = torch.nn.functional

    def norm(x: Any, weight: Any) -> Any:
        return nn.rms_norm(x, weight.shape, weight, 1e-6)

    names.update(norm=norm, swiglu=names["plain"], loss_of=nn.cross_entropy)
    theirs = names["train"](names["make_model"](words=50))
    assert ours[:20] == pytest.approx(theirs[:20], rel=1e-2)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
    p, slope, velocity = torch.rand(3, 50)
    wanted = torch.nn.Parameter(p.clone())
    optimizer = torch.optim.SGD([wanted], 0.1, momentum=0.9)
    optimizer.state[wanted]["momentum_buffer"] = velocity.clone()
    wanted.grad = slope.clone()
    optimizer.step()
    names["momentum_step"](p, slope, velocity, 0.1)
    torch.testing.assert_close(p, wanted.detach())
