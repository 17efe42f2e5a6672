# SPDX-License-Identifier: Apache-2.0
"""What a fusion says, as a value: fusions that say the same have equal structures.

Tensors are numbered in the order in which expressions meet them; everything else that
an expression holds takes part, whatever its class. The name of a fusion and the lines
of the user's that made it do not: they change no result.

A structure is told to other processes. The keys of a ``Likeness`` are for this one, and
for fusions that are cut from one program: what an expression says is read once, however
many of them it is part of, and is a number from then on.
"""

from __future__ import annotations

import hashlib
import marshal
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np

from nfuser.base.locks import cached_property
from nfuser.compiler.ir.expr import Argument
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.point_op import PointOp
from nfuser.compiler.ir.scalars.scalar import Scalar
from nfuser.compiler.ir.tensor import SourceLine, TensorView

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from nfuser.compiler.ir.expr import Expr


_SCALARS: tuple[type, ...] = get_args(Scalar)
_NUMBERS: tuple[type, ...] = (int, float, complex, np.generic)
_KEY = "_structure"
_LIKE = "_likeness"
_TENSOR = object()
_MOST = 1 << 16  # what is said by expressions and tensors, some 20 MB
_Tensors: TypeAlias = "list[TensorView]"
_numbers = count(1)  # never one twice: who holds an old one finds nothing by it
_said: dict[Hashable, int] = {}
_members: dict[int, str] = {}  # of enumerations, which stay


class Structure:
    """A value that is hashed once, however large it is.

    ``scalars`` are all that occur, extents among them, each once. All else is strings,
    integers and tuples of them, so that it reads alike in every process.
    """

    def __init__(self, parts: Hashable, scalars: tuple[Scalar, ...]) -> None:
        self._parts = parts, scalars
        self._hash = hash(self._parts)
        self.scalars = scalars

    @cached_property
    def digest(self) -> str:
        """A name for the value that is the same in every process."""
        parts: Any = self._parts[0]
        # The version 2 writes what a value is, and not which objects it is made of.
        said = marshal.dumps((parts, [x.key for x in self.scalars]), 2)
        return hashlib.sha256(said).hexdigest()

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

    >>> from nfuser.compiler.ir.fusion import Fusion
    >>> structure(Fusion("one", (), ())) == structure(Fusion("two", (), ()))
    True
    """
    kept = vars(fusion)
    if _KEY not in kept:
        reader = _Reader()
        body = tuple([reader.read(expr) for expr in fusion.exprs])
        outputs = tuple([reader.read(tensor) for tensor in fusion.outputs])
        kept[_KEY] = Structure((body, outputs), tuple(reader.scalars))
    return kept[_KEY]


def spelled(item: object) -> str:
    """Return text that equal values have in common, and no others, in every process.

    >>> from nfuser.compiler.ir.scalars.symbols import size
    >>> spelled((size(0, 1), frozenset({"b", "a"})))
    "((-1, ('set', 'a', 'b')), [(1, 0, 1)])"
    """
    reader = _Reader()
    parts = reader.read(item)
    return _spelled(parts, tuple(reader.scalars))


def _spelled(parts: Hashable, scalars: tuple[Scalar, ...]) -> str:
    return f"({parts!r}, {[x.key for x in scalars]})"


class _Reader:
    """Reads what expressions are made of, by the class of each part."""

    def __init__(self) -> None:
        self.scalars: dict[Scalar, int] = {}
        self._numbers: dict[TensorView, int] = {}
        self._kinds: dict[Hashable, tuple[Hashable, ...]] = {}
        self._operations: dict[int, Hashable] = {}

    def read(self, item: object) -> Hashable:
        """Return ``item`` as a value, tensors as numbers once they are known."""
        return _HOW[item.__class__](self, item)

    def scalar(self, item: Scalar) -> Hashable:
        """Return its number from -1 on down; tensors have those from 0 on up."""
        return -1 - self.scalars.setdefault(item, len(self.scalars))

    def tensor(self, tensor: TensorView) -> Hashable:
        """Return its number; where it is met first, also what it is."""
        number = self._numbers.get(tensor)
        if number is not None:
            return number
        self._numbers[tensor] = number = len(self._numbers)
        kind = tensor.dtype, *[(axis.extent, axis.iter_type) for axis in tensor.axes]
        said = self._kinds.get(kind)
        if said is None:
            said = self._kinds[kind] = self.contents(tensor)
        return number, *said

    def body(self, item: Fusion) -> Hashable:
        """Return what the body of a loop says."""
        return self.listed(item.exprs), self.listed(item.outputs)

    def nothing(self, _item: object) -> Hashable:
        """Return what takes no part."""
        return None

    def word(self, item: str) -> Hashable:
        """Return a string."""
        return item if item.__class__ is str else str(item)

    def member(self, item: Enum) -> Hashable:
        """Return the name of a member, by identity: to hash one takes longer."""
        found = _members.get(id(item))
        if found is None:
            found = _members[id(item)] = f"<{type(item).__name__}.{item._name_}>"
        return found

    def number(self, item: object) -> Hashable:
        """Return a number and its type: 0.0 and -0.0, 1 and True differ."""
        return _name(type(item)), repr(item)

    def bytes_(self, item: bytes) -> Hashable:
        """Return bytes in digits."""
        return "bytes", item.hex()

    def listed(self, items: tuple[object, ...]) -> Hashable:
        """Return items in order."""
        return tuple([_HOW[x.__class__](self, x) for x in items])

    def members(self, items: frozenset[object]) -> Hashable:
        """Return items in the order of their spelling."""
        return "set", *[self.read(x) for x in sorted(items, key=spelled)]

    def operation(self, item: PointOp) -> Hashable:
        """Return an operation, by identity: to hash one takes longer."""
        found = self._operations.get(id(item))
        if found is None:
            found = self._operations[id(item)] = _operation(item)
        return found

    def contents(self, item: object) -> tuple[Hashable, ...]:
        """Return the class of a node or a value, and what it holds."""
        return _contents(item.__class__)(self, item)


class _How(dict[type[object], "Callable[[_Reader, Any], Hashable]"]):
    """How each class is read, once it is."""

    def __missing__(self, kind: type[object]) -> Callable[[_Reader, Any], Hashable]:
        self[kind] = found = _how(kind)
        return found


_HOW = _How()


def _how(kind: type[object]) -> Callable[[_Reader, Any], Hashable]:
    """Return how what is of this class is read."""
    rows: tuple[tuple[Any, Callable[[_Reader, Any], Hashable]], ...] = (
        (TensorView, lambda reader, item: reader.tensor(item)),
        (Fusion, _Reader.body),
        (_SCALARS, lambda reader, item: reader.scalar(item)),
        ((type(None), SourceLine), _Reader.nothing),
        (Enum, _Reader.member),
        (str, _Reader.word),
        (_NUMBERS, _Reader.number),
        ((tuple, list), _Reader.listed),
        (PointOp, _Reader.operation),
        (bytes, _Reader.bytes_),
        (frozenset, _Reader.members),
    )
    for kinds, read in rows:
        if issubclass(kind, kinds):
            return read
    if is_dataclass(kind):
        return _contents(kind)
    message = f"{_name(kind).rpartition('.')[2]} cannot be part of an expression"
    raise TypeError(message)


@cache
def _operation(item: PointOp) -> Hashable:
    return _Reader().contents(item)


@cache
def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


@cache
def _contents(kind: type[object]) -> Callable[[_Reader, Any], tuple[Hashable, ...]]:
    """Return what gives the class of a node or a value, and what it holds."""
    name, held = _kind(kind)

    def contents(reader: _Reader, item: object) -> tuple[Hashable, ...]:
        return name, *[_HOW[x.__class__](reader, x) for x in held(item)]

    return contents


@cache
def _kind(kind: Any) -> tuple[str, Callable[[Any], tuple[object, ...]]]:
    names = [f.name for f in fields(kind) if f.compare]
    if len(names) > 1:
        return _name(kind), attrgetter(*names)
    return _name(kind), lambda item: tuple([getattr(item, name) for name in names])


class Likeness:
    """Reads the fusions of one program; it holds its expressions."""

    def __init__(self) -> None:
        self._exprs: dict[Expr, tuple[int, _Tensors]] = {}
        self._tensors: dict[TensorView, int] = {}

    def key(self, fusion: Fusion) -> Hashable:
        """Return what ``fusion`` says; worked out once and kept with the fusion.

        Expressions are numbers from 1 on up, the end of them is 0. Tensors are numbers
        from 0 on down; where one is met first, another follows that says what it is.
        """
        kept = vars(fusion)
        if _LIKE in kept:
            return kept[_LIKE]
        places: dict[TensorView, int] = {}
        key: list[int] = []
        for expr in fusion.exprs:
            number, tensors = self._read(expr)
            key.append(number)
            self._add(tensors, places, key)
        key.append(0)
        self._add(fusion.outputs, places, key)
        kept[_LIKE] = found = tuple(key)
        return found

    def _add(
        self,
        tensors: _Tensors | tuple[TensorView, ...],
        places: dict[TensorView, int],
        key: list[int],
    ) -> None:
        for tensor in tensors:
            place = places.get(tensor)
            if place is None:
                places[tensor] = place = -len(places)
                key += (place, self._kind(tensor))
            else:
                key.append(place)

    def _read(self, expr: Expr) -> tuple[int, _Tensors]:
        if isinstance(expr, Argument):  # each piece has its own
            said = Argument, expr.slot, expr.by_value, expr.part, expr.home
            return _number(said), [expr.result]
        found = self._exprs.get(expr)
        if found is None:
            reader = _Apart()
            number = _number(reader.contents(expr))
            self._exprs[expr] = found = number, reader.met
        return found

    def _kind(self, tensor: TensorView) -> int:
        number = self._tensors.get(tensor)
        if number is None:
            said = _Apart().contents(tensor)
            self._tensors[tensor] = number = _number(said)
        return number


class _Apart(_Reader):
    """Reads all but tensors, which it lists; a scalar is what it is."""

    def __init__(self) -> None:
        super().__init__()
        self.met: _Tensors = []

    def scalar(self, item: Scalar) -> Hashable:
        return item

    def tensor(self, tensor: TensorView) -> Hashable:
        self.met.append(tensor)
        return _TENSOR


def _number(said: Any) -> int:
    if len(_said) > _MOST:
        _said.clear()
    return _said.setdefault(said, next(_numbers))
