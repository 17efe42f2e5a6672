# SPDX-License-Identifier: Apache-2.0
"""A fused function that torch.compile meets is called as it is: the graph breaks."""

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
        "a function": plain,
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


def test_a_whole_graph_is_refused_by_torch() -> None:
    inner = nfuser.fuse(lambda x: np.tanh(x) * 3)
    compiled = torch.compile(lambda x: inner(x) + 1, backend="eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"fused function|Fused"):
        compiled(X)


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
