# SPDX-License-Identifier: Apache-2.0
"""A function of tensors means unfused what it means fused."""

# torch has partial types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.config as config
import nfuser.numpy as xp

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = pytest.importorskip("torch")

OUTSIDE = np.arange(3)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "np.max(x, axis, keepdims)": lambda x: np.max(x, axis=-1, keepdims=True),
    "np.std(x)": np.std,
    "np.divide(x, 2)": lambda x: np.divide(x, 2),
    "np.where(x)": lambda x: np.where(x > 2, x, 0),
    "np.concatenate([x])": lambda x: np.concatenate([x, x]),
    "np.split(x)": lambda x: np.split(x, 3, 1),
    "np.flip(x)": lambda x: np.flip(x, 1),
    "np.add.reduce(x)": lambda x: np.add.reduce(x),
    "np.add.outer(x)": lambda x: np.add.outer(x, x),
    "xp.gelu(x)": lambda x: xp.gelu(x),
    "xp.var_mean(x)": lambda x: xp.var_mean(x),
    "x + xp.arange(3)": lambda x: x + xp.arange(3),
    "xp.asarray(list) * x": lambda x: xp.asarray([1, 2, 3]) * x,
    "xp.zeros(3, x.dtype)": lambda x: x + xp.zeros(3, x.dtype),
    "x + table": lambda x: x + OUTSIDE,
    "table + x": lambda x: OUTSIDE + x,
    "np.float64(2) * x": lambda x: np.float64(2) * x,
    "x * np.float32(2)": lambda x: x * np.float32(2),
    "x.astype(NumPy's)": lambda x: x.astype(np.float32),
    "x.astype(torch's)": lambda x: x.astype(torch.float64),
    "x.sum(dtype)": lambda x: x.sum(0, dtype=np.float64),
    "x.sum() / x.size": lambda x: x.sum() / x.size,
    "x.amax(dim) - np.max(x, axis)": lambda x: x.amax(1) - np.max(x, axis=1),
    "x.transpose(0, 1) / 255": lambda x: x.transpose(0, 1) / 255,
}


def _tensor(dtype: str) -> Any:
    return torch.arange(9).reshape(3, 3).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "bfloat16", "float32"])
def test_functions_give_the_same_tensors_fused_and_unfused(dtype: str) -> None:
    listed = tuple(FUNCTIONS.values())
    fused = nfuser.fuse(lambda x: [f(x) for f in listed])
    x = _tensor(dtype)
    expected = fused(x)
    with config.override(disable_all=True):
        found = fused(x)
    for name, ours, theirs in zip(FUNCTIONS, expected, found, strict=True):
        many = isinstance(theirs, (tuple, list))
        for a, b in zip(*((ours, theirs) if many else ([ours], [theirs])), strict=True):
            assert type(b) is torch.Tensor, name
            assert (b.dtype, b.shape) == (a.dtype, a.shape), name
            torch.testing.assert_close(b, a, rtol=2e-2, atol=1e-6, msg=name)


@pytest.mark.parametrize("name", ["gelu", "softmax", "exp", "var_mean", "sort"])
def test_a_function_that_is_called_alone_gives_what_it_gives_fused(name: str) -> None:
    x, function = _tensor("bfloat16"), getattr(xp, name)
    expected = nfuser.fuse(lambda x: getattr(xp, name)(x))(x)
    torch.testing.assert_close(function(x), expected, rtol=2e-2, atol=1e-6)


def test_what_speaks_numpy_does_so_unfused() -> None:
    x = torch.arange(6, dtype=torch.uint8).reshape(2, 3)
    fused = nfuser.fuse(lambda x: [x.std(), x / 2, x.max(axis=1)], dialect="numpy")
    expected = fused(x)
    with config.override(disable_all=True):
        torch.testing.assert_close(fused(x), expected)


def test_a_function_in_torchs_words_is_checked_on_tensors() -> None:
    def function(x: Any) -> Any:
        y = x.transpose(0, 1) / x.std()
        return np.where(y > 1, y, 0), x.amax(-1, True), (x.dtype == torch.float32) * x

    found = nfuser.check(function, torch.rand(3, 4))
    assert len(found.errors) == 3


def test_a_wrong_tensor_is_found() -> None:
    def wrong(x: Any) -> Any:
        return np.exp(x) + (0.5 if isinstance(x, torch.Tensor) and _is_plain(x) else 0)

    with pytest.raises(AssertionError, match="differs by"):
        nfuser.check(wrong, torch.rand(3, 4))


def _is_plain(x: Any) -> bool:
    return hasattr(type(x), "add_")


def test_numpys_functions_say_how_to_leave_gradients() -> None:
    x = torch.rand(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        xp.gelu(x)
    with torch.no_grad():
        assert isinstance(xp.gelu(x), torch.Tensor)
