# SPDX-License-Identifier: Apache-2.0
"""Kernels that need more of a launch than a grid and a block."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import pytest

from nfuser.errors import BackendError
from nfuser.execution.device.cuda import driver
from nfuser.execution.device.cuda.module import PLAIN_SHARED, CudaFunction


class _Function(CudaFunction):
    """A kernel that declares ``static`` bytes; its device allows 100,000."""

    def __init__(self, static: int, asked: list[int], patch: Any) -> None:
        super().__init__(1, "kernel", 0)
        limits = type("Limits", (), {"shared_per_block_optin": 100_000})
        patch.setattr(type(self), "static_shared_bytes", static)
        patch.setattr(driver, "attributes", lambda _: limits)
        patch.setattr("nfuser.execution.device.cuda.module.DeviceGuard", _NoGuard)
        patch.setattr(driver, "call", lambda *given: asked.append(given[-1]))


class _NoGuard:
    def __init__(self, device: int) -> None:
        del device

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def test_what_a_kernel_declares_counts_as_shared_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    function = _Function(16_384, asked, monkeypatch)
    function.allow_dynamic_shared(PLAIN_SHARED - 16_384)
    assert asked == []
    function.allow_dynamic_shared(40_960)  # 57,344 in all
    function.allow_dynamic_shared(40_960)
    assert asked == [40_960]
    with pytest.raises(BackendError, match="needs 116384 bytes"):
        function.allow_dynamic_shared(100_000)
