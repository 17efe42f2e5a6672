# SPDX-License-Identifier: Apache-2.0
"""What a fused function tells of its way back, and of what it is not asked."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nfuser.frontend.call.line import telling

if TYPE_CHECKING:
    from nfuser.compiler.transforms.partition import Saved


def asked_with_arguments(name: str) -> str:
    """Return what is said to who asks ``why`` about a call that was not made."""
    return (
        f"write {name}.why(): it tells of the last call that compiled; "
        f"{name}.explain(...) says how a call with these arguments runs"
    )


class Keeping:
    """The method that says what is kept for the way back."""

    __slots__ = ()

    @telling
    def saved(self, *args: Any, **kwargs: Any) -> list[Saved]:
        """Return what a call keeps for the way back through it, and why.

        These are the arrays that ``nfuser.vjp`` holds; of tensors that require
        gradients, those that torch does. The least is kept that there is to keep, in
        bytes: all else is computed again, but products of matrices, sorts and loops.

        >>> import nfuser, numpy as np
        >>> f = nfuser.fuse(lambda x, w: np.tanh(x @ w))
        >>> for kept in f.saved(np.ones((4, 3)), np.ones((3, 2))):
        ...     print(kept)
        x: f64[4, 3], 96 bytes: an argument, which the backward pass reads
        w: f64[3, 2], 48 bytes: an argument, which the backward pass reads
        result 0: f64[4, 2], 64 bytes: a result, which is there anyway
        """
        # Few ask for it; and it imports what imports this.
        found = import_module("nfuser.frontend.gradients.saved")
        return found.saved_of(self, args, kwargs)
