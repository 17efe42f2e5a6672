# SPDX-License-Identifier: Apache-2.0
"""A fused function that torch.compile meets is an operator, or the graph breaks."""

# torch has partial types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

torch: Any = pytest.importorskip("torch")
X = torch.linspace(-1, 1, 24).reshape(4, 6)
TABLE = np.arange(6.0, dtype=np.float32)


@pytest.fixture(autouse=True)
def _quiet() -> Generator[None]:
    """Let no frame of nfuser's be compiled, of which Dynamo would warn."""
    with warnings.catch_warnings():
        # Of torch itself, while it is imported.
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        torch._dynamo.reset()
        yield
        torch._dynamo.reset()


class _Model:
    @nfuser.fuse
    def scaled(self, x: Any) -> Any:
        return np.tanh(x) * 3


def _fused() -> dict[str, Callable[[Any], Any]]:
    plain = nfuser.fuse(lambda x: np.tanh(x) * 3)
    captures = nfuser.fuse(lambda x: (np.tanh(x) * 3, float(TABLE[1])))
    definition = nfuser.FusionDefinition()
    with definition as fd:
        fd.add_output(fd.ops.mul(fd.ops.tanh(fd.from_pytorch(X)), 3.0))
    return {
        "a method": _Model().scaled,
        "what reads a global": lambda x: captures(x)[0],
        "a bound call": plain.bind(X),
        "a compiled call": plain.lower(X).compile(),
        "a definition": lambda x: definition.execute([x])[0],
    }


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("name", sorted(_fused()))
def test_a_fused_function_breaks_the_graph(name: str, warm: bool) -> None:
    inner = _fused()[name]

    def outer(x: Any) -> Any:
        return inner(x + 1) - x

    for _ in range(4 * warm):
        inner(X)
    graphs: list[Any] = []

    def backend(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(outer, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            torch.testing.assert_close(compiled(X), torch.tanh(X + 1) * 3 - X)
    # x + 1, and what is left; nothing that nfuser does.
    assert len(graphs) == 2


def test_a_method_in_a_whole_graph_is_refused_by_torch() -> None:
    model = _Model()
    compiled = torch.compile(model.scaled, backend="eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="fused function"):
        compiled(X)


def _of_both(x: Any, w: Any, scale: float = 2.0) -> dict[str, Any]:
    made = np.tanh(x @ w) * scale
    return {"rows": (made, None), "count": [(x * x).sum()]}


def _loss(fused: Callable[..., Any], x: Any, w: Any) -> Any:
    found = fused(x + 1, w, scale=3.0)
    return (found["rows"][0] ** 2).sum() + found["count"][0]


def _eager(x: Any, w: Any, scale: float) -> Any:
    return {"rows": (torch.tanh(x @ w) * scale, None), "count": [(x * x).sum()]}


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_whole_graph_has_the_call_and_its_gradients(backend: str, warm: bool) -> None:
    fused = nfuser.fuse(lambda x, w, scale: _of_both(x, w, scale))
    w = torch.linspace(-1, 1, 12).reshape(6, 2).requires_grad_()
    for _ in range(4 * warm):
        fused(X, w.detach(), 3.0)
    compiled = torch.compile(
        lambda x, w: _loss(fused, x, w), backend=backend, fullgraph=True
    )
    for rows in (4, 5, 9):
        x = torch.linspace(-1, 1, 6 * rows).reshape(rows, 6).requires_grad_()
        found, wanted = compiled(x, w), _loss(_eager, x, w)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(
            torch.autograd.grad(found, (x, w)), torch.autograd.grad(wanted, (x, w))
        )
        with torch.no_grad():
            found = compiled(x, w)
        assert not found.requires_grad
        torch.testing.assert_close(found, wanted.detach())


def test_sizes_of_results_stay_symbols() -> None:
    fused = nfuser.fuse(lambda x: np.concatenate([x, x.reshape(-1)[::2]], axis=0))
    count = 0

    def backend(graph: Any, _: Any) -> Any:
        nonlocal count
        count += 1
        return graph.forward

    compiled = torch.compile(
        lambda x: fused(x) * 2, backend=backend, fullgraph=True, dynamic=True
    )
    for n in (4, 7, 12, 31):
        x = torch.arange(float(n))
        torch.testing.assert_close(compiled(x), torch.cat([x, x[::2]]) * 2)
    assert count == 1


def test_gradients_of_gradients_in_a_whole_graph() -> None:
    fused = nfuser.fuse(lambda x: np.sin(x) * x)
    compiled = torch.compile(lambda x: fused(x).sum(), backend="eager", fullgraph=True)
    x = torch.linspace(-1, 1, 7, dtype=torch.float64).requires_grad_()
    (slope,) = torch.autograd.grad(compiled(x), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    torch.testing.assert_close(second, 2 * torch.cos(x) - x * torch.sin(x))


def test_what_an_operator_cannot_stand_for_breaks_the_graph() -> None:
    weight = torch.ones(6, requires_grad=True)
    captures = nfuser.fuse(lambda x: x * weight)

    @nfuser.fuse
    def writes(x: Any) -> Any:
        x += 1
        return x

    numbers = nfuser.fuse(lambda x, n: (x * n, n + 1))
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(captures, backend="eager", fullgraph=True)(X)
    compiled = torch.compile(lambda x: captures(x + 1), backend="eager")
    (found,) = torch.autograd.grad(compiled(X - 1).sum(), weight)
    torch.testing.assert_close(found, X.sum(dim=0))
    x = X.clone()
    torch.compile(lambda x: writes(x) * 2, backend="eager")(x)
    torch.testing.assert_close(x, X + 1)
    compiled = torch.compile(lambda x: numbers(x, 2), backend="eager")
    assert compiled(X)[1] == 3


PROGRAM = """
import nfuser, numpy as np
f = nfuser.fuse(lambda x: np.tanh(x) * 3)
import torch
compiled = torch.compile(lambda x: f(x + 1) - x, backend="eager")
x = torch.ones(6)
for _ in range(3):
    torch.testing.assert_close(compiled(x), torch.tanh(x + 1) * 3 - x)
"""


def test_torch_may_be_imported_after_a_function_is_fused() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True
    )
    assert not found.returncode, found.stderr
