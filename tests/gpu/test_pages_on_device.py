# SPDX-License-Identifier: Apache-2.0
"""Pages whose code needs a GPU run, and say what is true."""

# torch and CuPy have partial types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nfuser
from tests.contract.pages import run_python

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]
DOCS = Path(__file__).parents[2] / "docs"


def test_the_first_answer_is_of_tensors_on_the_gpu() -> None:
    torch: Any = pytest.importorskip("torch")
    rms_norm = run_python(DOCS / "index.md")["rms_norm"]
    x, residual, weight = torch.rand(5, 8), torch.rand(5, 8), torch.rand(8)
    given = {"x": x, "residual": residual, "weight": weight}
    names = run_python(DOCS / "questions.md", rms_norm=rms_norm, **given)
    for name, wanted in zip("hy", rms_norm(x, residual, weight), strict=True):
        assert names[name].is_cuda
        torch.testing.assert_close(names[name].cpu(), wanted)


def test_graphs_of_several_calls_read_their_arguments_anew() -> None:
    torch: Any = pytest.importorskip("torch")
    step = nfuser.fuse(lambda x, y: x + y)
    x, y = (torch.ones(1000, device="cuda") for _ in range(2))
    step(x, y)
    names = run_python(DOCS / "calling.md", nfuser=nfuser, step=step, x=x, y=y)
    torch.testing.assert_close(names["z"], x + 10 * y)
    y[:] = 2
    names["graph"].replay()
    torch.testing.assert_close(names["z"], x + 10 * y)


def test_the_graphs_of_the_reference_are_replayed() -> None:
    torch: Any = pytest.importorskip("torch")
    scaled = nfuser.fuse(lambda x, factor: x * factor)
    x = torch.rand(5, 8, device="cuda")
    given = {"nfuser": nfuser, "scaled": scaled, "x_on_gpu": x}
    scaled(x, 2.0)
    names = run_python(DOCS / "reference" / "fuse.md", **given)
    torch.testing.assert_close(names["y"], x * 2)
    torch.testing.assert_close(names["replay"](), x * 2)


def test_the_page_for_those_from_cupy_runs_one_kernel() -> None:
    cp: Any = pytest.importorskip("cupy")
    names = run_python(DOCS / "coming_from" / "cupy.md")
    cp.testing.assert_allclose(names["y"].sum(axis=-1), 1, rtol=1e-4)
    assert len(names["softmax"].kernels(names["y"])) == 1
