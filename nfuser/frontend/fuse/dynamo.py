# SPDX-License-Identifier: Apache-2.0
"""Keeps ``torch.compile`` out of fused functions, where a graph of it breaks.

Dynamo follows whatever a compiled function calls, and compiles anew what runs behind a
break. A function that is marked here is neither followed nor compiled, and nothing that
it calls is.
"""

# What torch keeps for itself has no static type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

F = TypeVar("F", bound="Callable[..., Any]")

_REASON = "a fused function compiles itself, and breaks the graph of torch.compile"
_waiting: dict[int, CodeType] = {}  # by identity: functions made in one place share it


def graph_break(function: F) -> F:
    """Mark ``function``: torch.compile leaves it, and all that it calls, alone."""
    marked: Any = function
    marked._torchdynamo_disable = True  # what torch.compiler.disable sets
    marked._torchdynamo_disable_msg = _REASON
    _waiting[id(marked.__code__)] = marked.__code__
    tell()
    return function


def tell() -> bool:
    """Tell torch, once it is imported, what was marked; return whether that was now.

    Then the frame that asks may be one that Dynamo has begun with: whoever it calls
    next is left alone.
    """
    if _waiting and (torch := sys.modules.get("torch")) is not None:
        frames: Any = getattr(getattr(torch, "_C", None), "_dynamo", None)
        frames = getattr(frames, "eval_frame", None)
        if not hasattr(frames, "set_code_exec_strategy"):
            return False  # an old torch, or one that is being imported
        skip = frames._FrameAction.SKIP
        strategy = frames._FrameExecStrategy(skip, skip)
        while _waiting:
            frames.set_code_exec_strategy(_waiting.popitem()[1], strategy)
        return True
    return False


tell.__dict__["_torchdynamo_disable"] = True
