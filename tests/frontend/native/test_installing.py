# SPDX-License-Identifier: Apache-2.0
"""Native calls are installed once, however many threads come first."""

# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import numpy as np
import pytest

import nfuser
from nfuser.execution.device.native.shared import is_as_expected, shared
from nfuser.execution.host.call.native.calls import NativeCall
from nfuser.frontend.fuse.fused import Fused


@pytest.mark.skipif(not is_as_expected(), reason="this Python has no native calls")
def test_what_is_native_does_not_serve_itself() -> None:
    shifted = nfuser.fuse(lambda x: x + 1.5)
    for _ in range(4):
        shifted(np.ones(3))
    found = shared()
    assert found is not None
    found.install(Fused, "_native")  # as a thread does that came second
    found.install(NativeCall, "_native", bound=True)
    for _ in range(4):
        np.testing.assert_array_equal(shifted(np.ones((2, 3))), np.full((2, 3), 2.5))
