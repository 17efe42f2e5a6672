# SPDX-License-Identifier: Apache-2.0
"""What later passes over a row find of what earlier ones have left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.lower.kernel.kernel_ir import For, Number, SetElement
from nfuser.compiler.schedule.placement.kept_values import closure

if TYPE_CHECKING:
    from nfuser.compiler.lower.elements.value_scopes import Key
    from nfuser.compiler.lower.elements.values import Values


def is_everywhere(values: Values, roots: list[Key]) -> bool:
    """Tell whether steps beyond the end have all kept values that ``roots`` read."""
    return (values.filled - values.everywhere).isdisjoint(_along_rows(values, roots))


def computed_everywhere(values: Values, roots: list[Key]) -> list[Key]:
    """Return what every step can compute of what ``roots`` read and is to be kept."""
    return [
        key
        for key in _along_rows(values, roots)
        if key in values.kept
        and key not in values.filled
        and key[0] not in values.buffers
        and is_everywhere(values, [key])
    ]


def forget(values: Values) -> None:
    """Clear what is kept: where a row ends early, nothing of the last one stays.

    Else its registers would be taken from one row to the next.
    """
    for array in values.kept.values():
        each = values.loops.make(array.size)
        zero = Number(0, array.dtype)
        clear = SetElement(array, each, zero)
        values.emit(For(each, each.extent, (clear,)))


def _along_rows(values: Values, roots: list[Key]) -> list[Key]:
    return closure(values.fusion, values.varying, roots)
