# SPDX-License-Identifier: Apache-2.0
"""What nfuser does with the text of a function is not watched as its values are."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from nfuser.compiler.trace.watch.observer import Observer

if TYPE_CHECKING:
    from types import FrameType

    import pytest


def _steps(u: Any) -> Any:
    for _ in (0, 1):
        u = u + np.sin(u)
    return u


def test_a_function_is_written_anew_out_of_sight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    see = Observer.see

    def counted(self: Observer, frame: FrameType, event: str, item: Any) -> None:
        seen.append(frame.f_code.co_filename)
        see(self, frame, event, item)

    monkeypatch.setattr(Observer, "see", counted)
    x = np.ones(3)
    np.testing.assert_array_equal(nfuser.fuse(_steps)(x), _steps(x))
    assert __file__ in seen
    assert not any(file.endswith("ast.py") for file in seen)
