# SPDX-License-Identifier: Apache-2.0
"""Torch tensors served by native code, and what of theirs it has to tell apart."""

# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import gc
import importlib
import sys
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, DeviceError
from nfuser.execution.device.native.shared import is_as_expected

torch: Any = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(not is_as_expected(), reason="no native calls here"),
    pytest.mark.skipif(
        not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="an old torch"
    ),
]


def _plain(x: Any, y: Any) -> Any:
    return x * 2 + y


def _tensor(*shape: int, dtype: Any = torch.float32) -> Any:
    count = int(np.prod(shape, dtype=int))
    return (torch.arange(count) % 13 + 1).reshape(shape).to(dtype)


def _warm(*args: Any) -> Any:
    fused = nfuser.fuse(_plain)
    for _ in range(2):
        fused(*args)
    assert _served(fused, *args) == 1
    return fused


def _served(fused: Any, *args: Any) -> int:
    before = fused.native_calls
    fused(*args)
    return fused.native_calls - before


X = _tensor(4, 6)
CHANGED: dict[str, Any] = {
    "float64": X.double(),
    "int32": X.int(),
    "bfloat16": X.bfloat16(),
    "float16": X.half(),
    "transposed": _tensor(6, 4).T,
    "strided": _tensor(8, 6)[::2],
    "expanded": _tensor(6).expand(4, 6),
    "one row": _tensor(1, 6),
    "another alignment": _tensor(25)[1:].reshape(4, 6),
    "no axes": torch.tensor(2.0),
    "NumPy": X.numpy(),
    "a parameter": torch.nn.Parameter(X, requires_grad=False),
    "a float": 2.5,
}


@pytest.mark.parametrize("change", CHANGED)
def test_an_argument_of_another_kind_is_told_apart(change: str) -> None:
    fused, y = _warm(X, X), CHANGED[change]
    other = y if isinstance(y, float) else torch.as_tensor(y).detach()
    expected = _plain(X, other)
    for _ in range(4):
        found = fused(X, y)
        assert type(found) is torch.Tensor
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found, expected)
    assert _served(fused, X, y) == 1
    assert _served(fused, X, X) == 1


def test_a_tensor_that_requires_a_gradient_is_recorded_only_while_grad_mode_is_on() -> (
    None
):
    fused = _warm(X, X)
    y = X.clone().requires_grad_()
    parameter = torch.nn.Parameter(X.clone())
    for leaf in (y, parameter):
        for _ in range(3):
            assert fused(X, leaf).grad_fn is not None
            with torch.no_grad():
                found = fused(X, leaf)
            assert found.grad_fn is None
            torch.testing.assert_close(found, _plain(X, leaf.detach()))
    with torch.no_grad():
        assert _served(fused, X, y) == 1


def test_conjugate_and_negative_views_are_refused() -> None:
    z = torch.complex(X, X)
    fused = _warm(z, z)
    real = _warm(z.imag, z.imag)
    for _ in range(3):
        with pytest.raises(ArgumentError, match="conjugate"):
            fused(z, z.conj())
        with pytest.raises(ArgumentError, match="negative"):
            real(z.imag, z.conj().imag)
    assert _served(fused, z, z) == 1


def test_subclasses_are_refused() -> None:
    class Mine(torch.Tensor):
        pass

    fused = _warm(X, X)
    for _ in range(3):
        with pytest.raises(ArgumentError, match="subclass"):
            fused(X, X.as_subclass(Mine))


@pytest.mark.filterwarnings("ignore:Accessing the data pointer")
def test_tensors_without_memory_are_refused() -> None:
    mode: Any = importlib.import_module("torch._subclasses").FakeTensorMode

    fused = _warm(X, X)
    with mode():
        fake = torch.empty(4, 6)
    for _ in range(3):
        with pytest.raises(ArgumentError):
            fused(X, fake)
        with pytest.raises((ArgumentError, DeviceError, RuntimeError)):
            fused(X, torch.empty(4, 6, device="meta"))
        with pytest.raises((ArgumentError, RuntimeError)):
            fused(X, X.to_sparse())


@pytest.mark.parametrize("name", ["vmap", "grad", "functionalize"])
def test_tracers_of_torch_func_are_refused(name: str) -> None:
    fused = _warm(X, X)
    transform = getattr(torch.func, name)
    for _ in range(3):
        with pytest.raises((ArgumentError, RuntimeError)):
            transform(lambda x: fused(x, x).sum())(X)
    assert _served(fused, X, X) == 1


def test_references_are_neither_lost_nor_kept() -> None:
    fused = _warm(X, X)
    gc.collect()
    shape, before = fused(X, X).shape, sys.getrefcount(X)
    live = len([o for o in gc.get_objects() if type(o) is torch.Tensor])
    for _ in range(500):
        fused(X, X)
    assert sys.getrefcount(X) == before
    found = fused(X, X)
    assert sys.getrefcount(found) == 2
    assert found.shape == shape
    del found
    assert len([o for o in gc.get_objects() if type(o) is torch.Tensor]) == live
