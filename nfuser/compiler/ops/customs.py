# SPDX-License-Identifier: Apache-2.0
"""Results whose way back somebody else has written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.tensor import TensorView


@node
class Custom:
    """Results that stand one after another in a program, and what pulls back.

    ``pull`` takes a cotangent for each result, None where none came, and gives one for
    each input, None where the result does not depend on it.
    """

    inputs: tuple[TensorView, ...]
    results: tuple[TensorView, ...]
    pull: Callable[[Sequence[TensorView | None]], Sequence[TensorView | None]]
