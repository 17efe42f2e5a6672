# SPDX-License-Identifier: Apache-2.0
"""One executor cache for all functions and definitions that say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.config as config
from nfuser.compiler.concretize import DEFAULT_RESIZE
from nfuser.compiler.ir.identity import structure
from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
from nfuser.execution.runtime.compile.executable import KERNELS
from nfuser.execution.runtime.kernel_runtime import LOWERED
from nfuser.execution.runtime.tables.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.concretize import ResizePolicy
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.identity import Structure
    from nfuser.compiler.segment import ShouldMerge

_SHARED: Memo[tuple[Structure, ResizePolicy], FusionExecutorCache] = Memo()
_above: list[Callable[[], None]] = []


def shared_cache(
    fusion: Fusion,
    resize: ResizePolicy = DEFAULT_RESIZE,
    should_merge: ShouldMerge | None = None,
) -> FusionExecutorCache:
    """Return the cache of all fusions that say what ``fusion`` says.

    While something is dumped nothing is shared: each function shows all its stages.
    Nor is it where ``should_merge`` decides, of which nothing is known.
    """
    if config.current().dump or should_merge is not None:
        return FusionExecutorCache(fusion, resize=resize, should_merge=should_merge)
    key = (structure(fusion), resize)
    return _SHARED.get(key, lambda: FusionExecutorCache(fusion, resize=resize))[0]


def register_clear(clear: Callable[[], None]) -> None:
    """Let ``forget_all`` call ``clear`` too: an upper layer has a cache of its own."""
    _above.append(clear)


def forget_all(*, kernels: bool = True) -> None:
    """Empty the caches of the process, as if nothing had been built yet.

    Functions and definitions keep what they use. ``kernels=False`` keeps machine code.
    """
    for clear in _above:
        clear()
    _SHARED.clear()
    LOWERED.clear()
    if kernels:
        KERNELS.clear()
