# SPDX-License-Identifier: Apache-2.0
"""How an IR node and a plain value are declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[T]) -> type[T]:
    """Make ``cls`` an IR node: frozen, slotted, compared by identity."""
    return dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)(cls)


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Make ``cls`` a plain value: frozen, slotted, compared by its fields."""
    return dataclass(frozen=True, slots=True)(cls)
