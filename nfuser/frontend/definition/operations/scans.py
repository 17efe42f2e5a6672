# SPDX-License-Identifier: Apache-2.0
"""The scans of ``fd.ops``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.frontend.definition.operations.shapes import along

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.frontend.definition.draft import Draft


def _scanned(verb: Callable[..., Any], join: Callable[..., Any]) -> Any:
    def operation(d: Draft, arg: Any, dim: Any, init: Any = None) -> Any:
        found = along(d, arg, dim, lambda x, place: verb(d.builder, x, place))
        if init is None:
            return found
        taken = [found, d.operand(init)]
        return d.same_kind(join(d.builder, *taken), taken)

    operation.__doc__ = verb.__doc__
    return operation


SCANS: dict[str, Callable[..., Any]] = {
    "cummax": _scanned(ops.cummax, ops.maximum),
    "cummin": _scanned(ops.cummin, ops.minimum),
    "cumprod": _scanned(ops.cumprod, ops.multiply),
    "cumsum": _scanned(ops.cumsum, ops.add),
}
