# SPDX-License-Identifier: Apache-2.0
"""Arrays between each other's elements: one address for both on a CPU.

LLVM loads and stores them in whole vectors, which it takes apart and puts together,
where it sees that they lie beside each other; two addresses might be anywhere.
"""

from __future__ import annotations

from dataclasses import fields, replace
from operator import is_
from typing import TYPE_CHECKING, Any, cast

from nfuser.compiler.lower.kernel.kernel_ir import Load, Store
from nfuser.compiler.lower.kernel.walk import PARTS
from nfuser.compiler.schedule.scheduled import Scheduled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.lower.kernel.kernel_ir import Buffer, Kernel, Stmt


def share_addresses(kernel: Kernel) -> Kernel:
    """Write accesses of the second of each pair of arrays as the first's.

    Each element of the first has one of the second after it.
    """
    scheduled = kernel.scheduled
    is_flat = isinstance(scheduled, Scheduled)
    if not is_flat or not (between := scheduled.between):
        return kernel
    buffers = {b.tensor: b for b in kernel.buffers}
    pairs = {buffers[tensor]: buffers[first] for tensor, first in between.items()}
    body = from_one_base(kernel.body, pairs)
    return kernel if body is kernel.body else replace(kernel, body=body)


def from_one_base(
    body: tuple[Stmt, ...], pairs: Mapping[Buffer, Buffer]
) -> tuple[Stmt, ...]:
    """Return ``body`` with accesses of the second of each pair written as the first's.

    ``pairs`` gives the first, whose elements each have one of the second after them.
    """
    return _rewritten(body, pairs)


def _rewritten(item: Any, pairs: Mapping[Buffer, Buffer]) -> Any:
    if isinstance(item, tuple):
        old = cast("tuple[Any, ...]", item)
        made: tuple[Any, ...] = tuple(_rewritten(part, pairs) for part in old)
        return old if all(map(is_, made, old)) else made
    if not isinstance(item, PARTS):
        return item
    held = {f.name: getattr(item, f.name) for f in fields(item)}
    parts = {name: _rewritten(part, pairs) for name, part in held.items()}
    changed = {name: part for name, part in parts.items() if part is not held[name]}
    new = replace(item, **changed) if changed else item
    if isinstance(new, (Load, Store)) and new.buffer in pairs:
        return replace(new, buffer=pairs[new.buffer], index=new.index + 1)
    return new
