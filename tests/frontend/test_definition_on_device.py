# SPDX-License-Identifier: Apache-2.0
"""Definitions over tensors of PyTorch on a GPU."""

# torch has partial types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import pytest

from nfuser import DataType, FusionDefinition
from nfuser.errors import DeviceError

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
