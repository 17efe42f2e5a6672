# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import pytest

from nfuser.compiler.dtypes import DType
from nfuser.errors import ArgumentError, DeviceError, DTypeError
from nfuser.execution.device.describe.descriptor import (
    CPU,
    Library,
    describe,
    is_array,
    key_reader,
    pointer_reader,
)

torch: Any = pytest.importorskip("torch")


def test_a_plain_tensor() -> None:
    tensor = torch.zeros(2, 3)
    found = describe(tensor, "x")
    assert (found.library, found.device, found.dtype) == (Library.TORCH, CPU, DType.F32)
    assert (found.shape, found.strides) == ((2, 3), (3, 1))
    assert found.pointer == tensor.data_ptr() == pointer_reader(Library.TORCH)(tensor)
    assert found.writable


@pytest.mark.parametrize("dtype", list(DType))
def test_every_dtype(dtype: DType) -> None:
    tensor = torch.zeros(3, dtype=getattr(torch, dtype.numpy.name))
    assert describe(tensor, "x").dtype is dtype


def test_views() -> None:
    tensor = torch.zeros(4, 6)
    assert describe(tensor.T[1:, ::2], "x").strides == (1, 12)
    expanded = describe(tensor[:1].expand(5, 6), "x")
    assert expanded.strides == (0, 1)
    assert not expanded.writable


def test_empty_and_scalar_tensors() -> None:
    assert describe(torch.zeros(()), "x").shape == ()
    assert describe(torch.zeros(0, 3), "x").shape == (0, 3)


def test_a_gradient_is_refused_only_where_one_would_be_recorded() -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(ArgumentError, match=r"torch\.no_grad"):
        describe(parameter, "x")
    with torch.no_grad():
        assert describe(parameter, "x").shape == (3,)
    assert describe(parameter.detach(), "x").shape == (3,)


def fake() -> Any:
    subclasses: Any = importlib.import_module("torch._subclasses")
    with subclasses.FakeTensorMode():
        return torch.empty(3)


def sub() -> Any:
    return torch.ones(3).as_subclass(type("Mine", (torch.Tensor,), {}))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: torch.eye(3).to_sparse(), ArgumentError, "to_dense"),
        (
            lambda: torch.ones(3, dtype=torch.complex64).conj(),
            ArgumentError,
            "conjugate",
        ),
        (
            lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
            ArgumentError,
            "negative view",
        ),
        (lambda: torch.ones(3, device="meta"), DeviceError, "meta"),
        (fake, ArgumentError, "FakeTensor"),
        (sub, ArgumentError, "Mine"),
        (lambda: torch.zeros(3, dtype=torch.float8_e5m2), DTypeError, "float8_e5m2"),
        (
            lambda: torch.frombuffer(bytearray(9), dtype=torch.float32, offset=1),
            ArgumentError,
            "not aligned",
        ),
    ],
)
def test_what_would_be_misread_is_refused(
    make: Any, error: type[Exception], words: str
) -> None:
    tensor = make()
    assert is_array(tensor)
    with pytest.raises(error, match=words):
        describe(tensor, "x")


def test_tracers_of_torch_func_are_refused() -> None:
    def function(x: Any) -> Any:
        with pytest.raises(ArgumentError, match="tracer"):
            describe(x, "x")
        with pytest.raises(RuntimeError):
            pointer_reader(Library.TORCH)(x)
        return x

    torch.func.vmap(function)(torch.ones(2, 3))


def test_a_distributed_tensor_is_refused_by_name() -> None:
    cls = type("DTensor", (torch.Tensor,), {})
    with pytest.raises(ArgumentError, match="to_local"):
        describe(torch.ones(2).as_subclass(cls), "x")


def test_a_refused_tensor_has_a_key_of_its_own() -> None:
    key = key_reader(Library.TORCH)
    plain = torch.ones(3)
    lazy = torch.ones(3, dtype=torch.complex64)
    assert key(torch.zeros(3)) == key(plain)
    assert key(plain.clone().requires_grad_()) != key(plain)
    assert key(sub()) != key(plain)
    assert key(torch.ones(3, device="meta")) != key(plain)
    assert key(lazy.conj()) != key(lazy)
    assert key(lazy.conj().imag) != key(lazy.imag)


SHRUNK = """
import sys, torch, nfuser
f = nfuser.fuse(lambda x: x * 2 + 1)
x = torch.ones(100_000)
for _ in range(int(sys.argv[1])):
    f(x)
part = x[int(sys.argv[2]) :]
f(part.clone())
x.untyped_storage().resize_(0)
try:
    f(part)
except nfuser.errors.ArgumentError as error:
    print("refused:", error)
"""


@pytest.mark.parametrize("calls", [0, 1, 9])
@pytest.mark.parametrize("offset", [0, 5])
def test_a_tensor_whose_storage_was_shrunk_is_refused(calls: int, offset: int) -> None:
    command = [sys.executable, "-c", SHRUNK, str(calls), str(offset)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("refused: "), (done.returncode, done.stderr)
    assert (
        "pass a tensor whose storage is whole; this one's holds 0 bytes" in done.stdout
    )
