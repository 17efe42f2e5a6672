# SPDX-License-Identifier: Apache-2.0
"""What one run gave, as the caller is to have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.call.passed import found_at
from nfuser.compiler.trace.call.returned_views import moves_of, view_of
from nfuser.execution.device.allocate import finish

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.trace.call.call import OutputLeaf
    from nfuser.execution.device.describe.libraries import Library


class Results:
    """The outputs of a run by the leaves that they are.

    ``nest`` is what was passed, ``written`` are the arrays that were assigned to, by
    slot, ``sizes`` gives sizes and integers of the call.
    """

    __slots__ = (
        *("_library", "_made", "_nest", "_outputs", "_sizes", "_stream", "_views"),
        "_written",
    )

    def __init__(
        self,
        outputs: Sequence[Any],
        library: Library,
        stream: int,
        nest: Any,
        written: Mapping[int, Any],
        sizes: Callable[[], Mapping[Scalar, int]],
    ) -> None:
        self._outputs = outputs
        self._library = library
        self._stream = stream
        self._nest = nest
        self._written = written
        self._sizes = sizes
        self._made: dict[int, Any] = {}
        self._views: dict[int, Any] = {}

    def of(self, leaf: OutputLeaf) -> Any:
        """Return what a leaf is; the same object each time."""
        if leaf.slot is not None and leaf.view is not None:
            if id(leaf) not in self._views:
                moves = moves_of(leaf.view, self._sizes())
                self._views[id(leaf)] = view_of(self._written[leaf.slot], moves)
            return self._views[id(leaf)]
        if leaf.slot is not None:
            return self._written[leaf.slot]
        if leaf.passed is not None:
            return found_at(self._nest, leaf.passed)
        if leaf.position in self._made:
            return self._made[leaf.position]
        array, scalar = self._outputs[leaf.position], not leaf.is_array
        found = finish(self._library, array, stream=self._stream, scalar=scalar)
        if leaf.python is not None:
            found = leaf.python(found.item())
        self._made[leaf.position] = found
        return found
