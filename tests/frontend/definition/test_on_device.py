# SPDX-License-Identifier: Apache-2.0
"""Definitions over tensors of PyTorch on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from nfuser import DataType, FusionDefinition
from nfuser.errors import DeviceError
from tests.definitions.check import check

pytestmark = pytest.mark.gpu


def _torch() -> Any:
    return pytest.importorskip("torch")


def test_outputs_stay_on_the_device() -> None:
    torch = _torch()
    x = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    with FusionDefinition() as fd:
        t0 = fd.from_pytorch(x)
        scale = fd.define_scalar(dtype=DataType.Double)
        fd.add_output(fd.ops.mul(t0, scale))
        fd.add_output(fd.ops.sum(t0, 1))
    scaled, total = fd.execute([x, 0.5])
    assert torch.equal(scaled, x * 0.5)
    assert torch.equal(total, x.sum(1))
    assert scaled.device == x.device


def test_only_an_array_without_axes_may_stay_on_the_cpu() -> None:
    torch = _torch()
    x = torch.ones(3, device="cuda")
    scale = torch.tensor(2.0)
    for is_cpu in (True, False):
        with FusionDefinition() as fd:
            s = fd.define_tensor(shape=[], is_cpu=is_cpu)
            fd.add_output(fd.ops.mul(fd.define_tensor(shape=[-1]), s))
        if is_cpu:
            assert torch.equal(fd.execute([scale, x])[0], x * 2)
        else:
            with pytest.raises(DeviceError, match="is_cpu=True"):
                fd.execute([scale, x])


@pytest.mark.parametrize("seed", range(60, 80))
@pytest.mark.parametrize("library", ["torch-cuda", "cupy"])
def test_a_random_definition_computes_what_numpy_does(library: str, seed: int) -> None:
    pytest.importorskip(library.partition("-")[0])
    check(seed, None, library)


def test_an_input_is_written_on_the_stream_of_the_kernels() -> None:
    torch = _torch()
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1])
        fd.add_output(fd.ops.add(fd.ops.flip(x, 0), 1.0), x)
        fd.add_output(fd.ops.sum(x))
    data = torch.zeros(1 << 22, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        totals = [fd.execute([data])[0] for _ in range(20)]
    stream.synchronize()
    assert torch.equal(data, torch.full_like(data, 20.0))
    assert [float(x) for x in totals] == [k * (1 << 22) for k in range(20)]
