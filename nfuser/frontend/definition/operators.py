# SPDX-License-Identifier: Apache-2.0
"""Python's operators on what a definition hands out: each is a call of ``fd.ops``.

``==`` is one of them, so that it never tells without a word whether two names stand for
one tensor; handles are kept in dicts and sets by what they are, and nfuser itself
compares them by ``is`` and by name alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Owner(Protocol):
    """The draft that a handle belongs to."""

    def call(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Apply operation ``name``."""
        ...

    def refuse(self, message: str) -> NoReturn:
        """Raise an error that names the user's line."""
        ...


def _called(name: str, *operands: Any, owner: Any) -> Any:
    assert owner is not None
    return owner.call(name, operands, {})


def _unary(name: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return _called(name, self, owner=self.draft)

    method.__doc__ = f"Return ``fd.ops.{name}(self)``."
    return method


def _straight(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return _called(name, self, other, owner=self.draft)

    method.__doc__ = f"Return ``fd.ops.{name}(self, other)``."
    return method


def _power(self: Any, other: Any, modulus: Any = None) -> Any:
    """Return ``fd.ops.pow(self, other)``."""
    if modulus is not None:
        message = "pow with a modulus has no fused form; take remainder of the power"
        self.draft.refuse(message)
    return _called("pow", self, other, owner=self.draft)


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return _called(name, other, self, owner=self.draft)

    method.__doc__ = f"Return ``fd.ops.{name}(other, self)``."
    return method


class HandleOperators:
    """The operators of a handle, which has its owner as ``draft``."""

    __slots__ = ()
    draft: Owner | None
    # Numbers and arrays of NumPy leave their operators to ours.
    __array_ufunc__ = None

    __neg__, __pos__ = _unary("neg"), _unary("positive")
    __abs__, __invert__ = _unary("abs"), _unary("bitwise_not")
    __add__, __radd__ = _straight("add"), _reflected("add")
    __sub__, __rsub__ = _straight("sub"), _reflected("sub")
    __mul__, __rmul__ = _straight("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _straight("truediv"), _reflected("truediv")
    __floordiv__, __rfloordiv__ = _straight("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _straight("remainder"), _reflected("remainder")
    __divmod__, __rdivmod__ = _straight("divmod"), _reflected("divmod")
    __pow__, __rpow__ = _power, _reflected("pow")
    __matmul__, __rmatmul__ = _straight("matmul"), _reflected("matmul")
    __and__, __rand__ = _straight("bitwise_and"), _reflected("bitwise_and")
    __or__, __ror__ = _straight("bitwise_or"), _reflected("bitwise_or")
    __xor__, __rxor__ = _straight("bitwise_xor"), _reflected("bitwise_xor")
    __lshift__ = _straight("bitwise_left_shift")
    __rlshift__ = _reflected("bitwise_left_shift")
    __rshift__ = _straight("bitwise_right_shift")
    __rrshift__ = _reflected("bitwise_right_shift")
    __lt__, __gt__ = _straight("lt"), _straight("gt")
    __le__, __ge__ = _straight("le"), _straight("ge")
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        """Return ``fd.ops.eq(self, other)``."""
        return _called("eq", self, other, owner=self.draft)

    def __ne__(self, other: object) -> Any:
        """Return ``fd.ops.ne(self, other)``."""
        return _called("ne", self, other, owner=self.draft)

    def __bool__(self) -> NoReturn:
        """Refuse: what a call gives is not known while the definition is written."""
        message = (
            f"{self!r} has no truth while the definition is written: `if`, `and`, "
            "`or`, `not`, `in` and chains as a < b < c ask for one. Choose elements "
            "with fd.ops.where, join conditions with & and |, and ask with `is` "
            "whether two names stand for one tensor"
        )
        self._refuse(message)

    def __iter__(self) -> NoReturn:
        """Refuse: elements are taken by operations."""
        message = (
            f"{self!r} is not indexed or iterated over; fd.ops.select, fd.ops.slice "
            "and fd.ops.split take parts of a tensor"
        )
        self._refuse(message)

    def __getitem__(self, key: Any) -> NoReturn:
        """Refuse: a definition names what takes parts of a tensor."""
        self.__iter__()

    def __contains__(self, item: object) -> NoReturn:
        """Refuse: Python would say that this is not iterable, and name no line."""
        self.__iter__()

    def _refuse(self, message: str) -> NoReturn:
        assert self.draft is not None
        self.draft.refuse(message)
