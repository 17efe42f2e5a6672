# SPDX-License-Identifier: Apache-2.0
"""What a fusion says, as a value: fusions that say the same have equal structures.

Tensors are numbered in the order in which expressions meet them; everything else that
an expression holds takes part, whatever its class. The name of a fusion and the lines
of the user's that made it do not: they change no result.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np

from nfuser.ir.scalar import Scalar
from nfuser.ir.tensor import SourceLine, TensorView

if TYPE_CHECKING:
    from collections.abc import Hashable

    from nfuser.ir.fusion import Fusion

_SCALARS: tuple[type, ...] = get_args(Scalar)
_NUMBERS: tuple[type, ...] = (int, float, complex, np.generic)
_KEY = "_structure"


class Structure:
    """A value that is hashed once, however large it is.

    ``scalars`` are all that occur, extents among them, each once.
    """

    __slots__ = ("_hash", "_parts", "scalars")

    def __init__(self, parts: Hashable, scalars: tuple[Scalar, ...]) -> None:
        self._parts = parts
        self._hash = hash(parts)
        self.scalars = scalars

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Structure):
            return NotImplemented
        if self is other:
            return True
        return self._hash == other._hash and self._parts == other._parts

    def __repr__(self) -> str:
        return f"<Structure {self._hash & 0xFFFFFFFF:08x}>"


def structure(fusion: Fusion) -> Structure:
    """Return what ``fusion`` says; worked out once and kept with the fusion.

    >>> from nfuser.ir.fusion import Fusion
    >>> structure(Fusion("one", (), ())) == structure(Fusion("two", (), ()))
    True
    """
    kept = vars(fusion)
    if _KEY not in kept:
        reader = _Reader()
        body = tuple(reader.read(expr) for expr in fusion.exprs)
        outputs = tuple(reader.read(tensor) for tensor in fusion.outputs)
        kept[_KEY] = Structure((body, outputs), tuple(reader.scalars))
    return kept[_KEY]


class _Reader:
    def __init__(self) -> None:
        self.scalars: dict[Scalar, None] = {}
        self._numbers: dict[TensorView, int] = {}

    def read(self, item: object) -> Hashable:
        """Return ``item`` as a value, tensors as numbers once they are known."""
        if isinstance(item, TensorView):
            return self._tensor(item)
        if isinstance(item, _SCALARS):
            self.scalars[cast("Scalar", item)] = None
            return cast("Scalar", item)
        if item is None or isinstance(item, SourceLine):
            return None
        if isinstance(item, (Enum, str)):
            return item
        if isinstance(item, _NUMBERS):
            return type(item), repr(item)  # 0.0 and -0.0, 1 and True differ
        if isinstance(item, (tuple, list)):
            listed = cast("tuple[object, ...]", item)
            return tuple([self.read(x) for x in listed])
        if is_dataclass(item):
            return self._contents(item)
        if isinstance(item, (bytes, frozenset)):
            return cast("Hashable", item)
        message = f"{type(item).__name__} cannot be part of an expression"
        raise TypeError(message)

    def _tensor(self, tensor: TensorView) -> Hashable:
        number = self._numbers.get(tensor)
        if number is not None:
            return number
        self._numbers[tensor] = number = len(self._numbers)
        return number, *self._contents(tensor)

    def _contents(self, item: Any) -> tuple[Hashable, ...]:
        kind = cast("type[object]", type(item))
        read, names = self.read, _names(kind)
        return kind, *[read(getattr(item, name)) for name in names]


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))
