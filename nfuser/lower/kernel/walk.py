# SPDX-License-Identifier: Apache-2.0
"""What statements consist of."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast, get_args

from nfuser.lower.kernel.kernel_ir import Stmt, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PARTS = (*get_args(Stmt), *get_args(Value))


def every(items: Iterable[Any]) -> Iterator[Any]:
    """Yield all statements and values in ``items``, in program order."""
    stack = [iter(items)]
    while stack:
        for item in stack[-1]:
            if isinstance(item, tuple):
                stack.append(iter(cast("tuple[Any, ...]", item)))
                break
            if isinstance(item, PARTS):
                yield item
                stack.append(iter([getattr(item, f.name) for f in fields(item)]))
                break
        else:
            stack.pop()
