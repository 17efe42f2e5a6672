# SPDX-License-Identifier: Apache-2.0
"""Where a function has a corner, torch's words have the slope that torch takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = pytest.importorskip("torch")
F: Any = torch.nn.functional

CORNERS = (-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0)
NAMES = (
    *("relu", "elu", "celu", "selu", "hardtanh", "relu6", "hardsigmoid", "hardswish"),
    *("leaky_relu", "softplus", "silu", "gelu", "softsign"),
)
OF_ONE: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(F, name) for name in NAMES},
    "elu, steeper": lambda x: F.elu(x, 1.5),
    "celu, steeper": lambda x: F.celu(x, 1.5),
    "clamp": lambda x: x.clamp(-1, 1),
    "clamp from below": lambda x: torch.clamp(x, min=0.5),
    "clamp_max": lambda x: x.clamp_max(3),
    "clamp in the wrong order": lambda x: torch.clamp(x, 1, -1),
    "norm": lambda x: (x * 0).norm(),
    "norms": lambda x: torch.stack([x, x * 0]).norm(dim=1),
    "std": lambda x: torch.stack([x * 0, x]).std(1),
    "std of one": lambda x: torch.std(x[:, None], 1, unbiased=False),
    "abs": torch.abs,
}
OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "clamp": lambda x, y: torch.clamp(x, y),
    "clamp between": lambda x, y: torch.clamp(x, y, y + 1),
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "maximum": torch.maximum,
    "atan2": torch.atan2,
}


def _slopes(run: Any, *values: Any) -> list[Any]:
    given = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    result = run(*given)
    (result * torch.arange(1.0, 1.0 + result.numel())).sum().backward()
    return [result.detach(), *[x.grad for x in given]]


@pytest.mark.parametrize("name", OF_ONE)
def test_of_one_operand(name: str) -> None:
    run = OF_ONE[name]
    for ours, theirs in zip(
        _slopes(nfuser.fuse(run), CORNERS), _slopes(run, CORNERS), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", OF_TWO)
def test_of_two_operands(name: str) -> None:
    run = OF_TWO[name]
    pair = (0.0, 0.0, 1.0, 2.0, -1.0), (0.0, 1.0, 1.0, 1.0, -1.0)
    for ours, theirs in zip(
        _slopes(nfuser.fuse(run), *pair), _slopes(run, *pair), strict=True
    ):
        torch.testing.assert_close(ours, theirs)
