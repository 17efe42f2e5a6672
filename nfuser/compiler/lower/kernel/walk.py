# SPDX-License-Identifier: Apache-2.0
"""What statements consist of."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast, get_args

from nfuser.compiler.lower.kernel.kernel_ir import Stmt, Value

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

PARTS = (*get_args(Stmt), *get_args(Value))
FIELDS: dict[type, tuple[str, ...]] = {
    part: tuple(field.name for field in fields(part)) for part in PARTS
}
"""What each kind of statement and value holds, by name."""


def every(
    items: Iterable[Any], leaves: Container[type] = frozenset[type]()
) -> Iterator[Any]:
    """Yield all statements and values in ``items``, in program order.

    Those of the kinds ``leaves`` as well, as they are.
    """
    stack = [iter(items)]
    while stack:
        for item in stack[-1]:
            kind = cast("type[object]", type(item))
            if kind in leaves:
                yield item
                continue
            names = FIELDS.get(kind)
            if names is not None:
                yield item
                stack.append(iter([getattr(item, name) for name in names]))
                break
            if isinstance(item, tuple):
                stack.append(iter(cast("tuple[Any, ...]", item)))
                break
        else:
            stack.pop()
