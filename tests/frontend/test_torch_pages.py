# SPDX-License-Identifier: Apache-2.0
"""Pages whose code needs torch run, and say what is true."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfuser
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


def test_functions_in_torchs_words_mean_what_the_page_says() -> None:
    words = torch.nn.functional
    names = run_python(DOCS / "torch.md", torch=torch, F=words, nfuser=nfuser, np=np)
    q, k, weight = torch.randn(4, 8), torch.randn(6, 8), torch.rand(8)
    mask = torch.rand(4, 6) > 0.8
    for fused, given in (
        (names["attend"], (q, k, mask, weight)),
        (names["attend"], (q[:2], k, mask[:2], weight)),
    ):
        torch.testing.assert_close(fused(*given), fused.__wrapped__(*given))
    image, x = torch.randint(0, 255, (5, 7), dtype=torch.uint8), torch.rand(7, 5)
    turned = (image / 255).transpose(0, 1) / (image / 255).std() * x.mean(-1, True)
    wanted = turned - turned.std(correction=0)
    torch.testing.assert_close(names["normalize"](image, x), wanted)


def test_the_page_for_those_from_torch_runs_backwards() -> None:
    x, residual, weight = (torch.rand(s, requires_grad=True) for s in ((3, 8), 8, 8))
    names = run_python(
        DOCS / "coming_from" / "pytorch.md", x=x, residual=residual, weight=weight
    )
    plain = names["rms_norm"].__wrapped__
    wanted = torch.autograd.grad(
        plain(x, residual, weight)[1].sum(), (x, residual, weight)
    )
    for found, right in zip((x, residual, weight), wanted, strict=True):
        torch.testing.assert_close(found.grad, right, rtol=1e-4, atol=1e-5)
    given = (x.detach(), residual.detach(), weight.detach())
    assert len(names["rms_norm"].kernels(*given)) == 1


def test_a_definition_takes_the_form_of_a_tensor() -> None:
    with nfuser.FusionDefinition() as fd:
        names = run_python(DOCS / "reference" / "definition.md", torch=torch, fd=fd)
        fd.add_output(fd.ops.add(names["tensor"], names["tensor"]))
    (found,) = fd.execute([torch.ones(2, 3)])
    torch.testing.assert_close(found, torch.full((2, 3), 2.0))


def test_ranges_of_the_profiler_are_as_the_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @nfuser.fuse
    def centred(x: Any) -> Any:
        return x - x.mean()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's own, where there is no GPU
        run_python(
            DOCS / "howto" / "see-a-timeline.md",
            torch=torch,
            centred=centred,
            tensor=torch.rand(4, 8),
        )
    assert "centred:centred" in capsys.readouterr().out
