# SPDX-License-Identifier: Apache-2.0
"""What torch copies is a copy, and views of tensors that were written are views."""

# Torch has no types here, and what a traced function is given has no static type.
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def _whole(x: Any) -> Any:
    y = torch.rot90(x, 0)
    y += 1
    return x * 1


def _quarter(x: Any) -> Any:
    y = torch.rot90(x)
    x += 1
    return y


def _half_after(x: Any) -> Any:
    x += 1
    return x.rot90(2), x.flip(0)


def _grids(x: Any) -> Any:
    a, b = torch.meshgrid(x[0], x[1], indexing="ij")
    x += 1
    return a * b


@pytest.mark.parametrize("function", [_whole, _quarter, _half_after, _grids])
def test_torch_decides_what_is_a_copy(function: Callable[..., Any]) -> None:
    fused = nfuser.fuse(function)
    for _ in range(3):
        mine, theirs = (torch.arange(9.0).reshape(3, 3) for _ in range(2))
        found, wanted = fused(mine), function(theirs)
        pairs = zip(found, wanted, strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)
        assert torch.equal(mine, theirs)


def test_a_view_of_a_tensor_that_was_written_is_one() -> None:
    def parts(x: Any) -> Any:
        x += 1
        return x[1:], x.T[::2], x.unsqueeze(0), x[:, 1]

    fused = nfuser.fuse(parts)
    for _ in range(3):
        x = torch.arange(9.0).reshape(3, 3)
        found, wanted = fused(x), parts(torch.arange(9.0).reshape(3, 3))
        for one, other in zip(found, wanted, strict=True):
            assert torch.equal(one, other)
            assert one.stride() == other.stride()
            assert one.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
