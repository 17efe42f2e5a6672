# SPDX-License-Identifier: Apache-2.0
"""What statements consist of."""

from __future__ import annotations

import re
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast, get_args

from nfuser.compiler.lower.kernel.kernel_ir import Stmt, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PARTS = (*get_args(Stmt), *get_args(Value))
FIELDS: dict[type, tuple[str, ...]] = {
    part: tuple(field.name for field in fields(part)) for part in PARTS
}
"""What each kind of statement and value holds, by name."""

_KINDS = {"Stmt", "Value", *(part.__name__ for part in PARTS)}


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return what gives the fields of these ``names``, the last one first."""
    if not names:
        return None
    read = attrgetter(*reversed(names))
    return read if len(names) > 1 else lambda item: (read(item),)


_ALL = {part: _getter([*names]) for part, names in FIELDS.items()}
_PARTS = {
    part: _getter(
        [f.name for f in fields(part) if _KINDS & {*re.findall(r"\w+", str(f.type))}]
    )
    for part in PARTS
}
"""The same of what statements and values alone may be in."""


def every(
    items: Iterable[Any], leaves: frozenset[type] = frozenset[type]()
) -> list[Any]:
    """Return all statements and values in ``items``, in program order.

    Those of the kinds ``leaves`` as well, as they are.
    """
    found: list[Any] = []
    stack = [*items]
    stack.reverse()
    held = _ALL if leaves else _PARTS
    while stack:
        item = stack.pop()
        kind = cast("type[object]", type(item))
        if kind in held:
            found.append(item)
            read = held[kind]
            if read is not None:
                stack += read(item)
        elif kind in leaves:
            found.append(item)
        elif kind is tuple:
            stack += item[::-1]
    return found
