# SPDX-License-Identifier: Apache-2.0
"""Spans as ranges of other people's profilers: of torch's, and of NVTX."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nfuser.base.debug import events
from nfuser.base.locks import ForkSafeLock
from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable


def shown_name(name: str, kind: str) -> str:
    """Return the name of a range: others have theirs beside it."""
    return name if kind == "launch" else f"nfuser {kind}: {name}"


class NvtxRanges:
    """Spans as NVTX ranges, by the package ``nvtx``, or by torch where it has CUDA."""

    def __init__(self) -> None:
        self._push, self._pop = _nvtx()

    def begin(self, name: str, kind: str) -> None:
        """Push a range."""
        self._push(shown_name(name, kind))

    def end(self, begun: None, told: dict[str, object]) -> None:
        """Pop it."""
        self._pop()


def _nvtx() -> tuple[Callable[[str], Any], Callable[[], Any]]:
    if "nvtx" in sys.modules or find_spec("nvtx") is not None:
        nvtx: Any = import_module("nvtx")
        return nvtx.push_range, nvtx.pop_range
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    message = (
        "install the package nvtx, or import a torch that has CUDA first: NVTX ranges "
        "were asked for, and neither is there"
    )
    raise ArgumentError(message)


class TorchRanges:
    """Spans as ``record_function`` ranges, while torch's profiler runs."""

    def begin(self, name: str, kind: str) -> Any:
        """Enter a range."""
        profiler: Any = sys.modules["torch.autograd.profiler"]
        entered = profiler.record_function(shown_name(name, kind))
        entered.__enter__()
        return entered

    def end(self, begun: Any, told: dict[str, object]) -> None:
        """Leave it."""
        begun.__exit__(None, None, None)


_lock = ForkSafeLock()
_ranges = TorchRanges()
_followed: list[Any] = []
_START, _STOP = "_run_on_profiler_start", "_run_on_profiler_stop"


def follow_torch() -> None:
    """Watch whenever torch's profiler runs, from now on.

    Torch calls two functions of its module when a profiler starts and when it stops;
    each is put inside one that also says so here. To ask at each call whether a
    profiler runs would cost all calls.
    """
    profiler: Any = sys.modules.get("torch.autograd.profiler")
    if profiler is None or profiler in _followed:
        return
    with _lock:
        is_whole = hasattr(profiler, _START) and hasattr(profiler, _STOP)
        if profiler in _followed or not is_whole:
            return  # half imported, or a torch that does it in another way
        _followed.append(profiler)
        _extend(profiler, _START, lambda: events.watch(_ranges))
        _extend(profiler, _STOP, lambda: events.leave(_ranges))
        if getattr(profiler, "_is_profiler_enabled", False):
            events.watch(_ranges)


def _extend(module: Any, name: str, then: Callable[[], None]) -> None:
    before: Callable[[], object] = getattr(module, name)

    def extended() -> None:
        before()
        then()

    setattr(module, name, extended)
