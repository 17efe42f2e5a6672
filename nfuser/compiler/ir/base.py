# SPDX-License-Identifier: Apache-2.0
"""How an IR node and a plain value are declared.

They are dataclasses, frozen and slotted. The standard decorator compiles up to six
methods for each class, which for all of nfuser's takes longer than a whole warm first
call may: here the methods are shared, and ``__init__`` is compiled when the first
object of its class is made.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[T]) -> type[T]:
    """Make ``cls`` an IR node: frozen, slotted, compared by identity."""
    made = dataclass(init=False, repr=False, eq=False, slots=True, weakref_slot=True)
    return _freeze(made(cls))


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Make ``cls`` a plain value: frozen, slotted, compared by its fields."""
    return _compare(
        _freeze(dataclass(init=False, repr=False, eq=False, slots=True)(cls))
    )


def _freeze(cls: type[T]) -> type[T]:
    methods = {
        "__init__": _first_init(cls),
        "__repr__": _repr,
        "__getstate__": _state,
        "__setstate__": _restore,
        "__setattr__": refuse_change,
        "__delattr__": refuse_change,
    }
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    return cls


def _compare(cls: type[T]) -> type[T]:
    names = [f.name for f in fields(cls) if f.compare]  # pyright: ignore[reportArgumentType]
    key = attrgetter(*names) if names else type

    def equals(self: object, other: object) -> bool:
        if self.__class__ is other.__class__:
            return key(self) == key(other)
        return NotImplemented

    def hashed(self: object) -> int:
        return hash(key(self))

    for name, method in (("__eq__", equals), ("__hash__", hashed)):
        if name not in cls.__dict__ or cls.__dict__[name] is None:
            setattr(cls, name, method)
    return cls


def _first_init(cls: type[Any]) -> Any:
    def init(self: object, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = _compiled_init(cls)
        cls.__init__(self, *args, **kwargs)

    return init


def _compiled_init(cls: type[Any]) -> Any:
    """Return the ``__init__`` that ``dataclass`` would make for a frozen class."""
    known: dict[str, Any] = {"MISSING": MISSING}
    parameters, body = ["self"], ["pass"]
    for field in fields(cls):
        name = field.name
        known[f"_set_{name}"] = getattr(cls, name).__set__  # past our __setattr__
        if field.default is not MISSING:
            known[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        elif field.default_factory is not MISSING:
            known[f"_make_{name}"] = field.default_factory
            parameters.append(f"{name}=MISSING")
            body.append(f"if {name} is MISSING: {name} = _make_{name}()")
        else:
            parameters.append(name)
        body.append(f"_set_{name}(self, {name})")
    text = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body)
    exec(text, known)
    known["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return known["__init__"]


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for put, kept in zip(_setters(self.__class__), state, strict=True):
        put(self, kept)


@cache
def _setters(cls: type[Any]) -> tuple[Callable[[Any, Any], None], ...]:
    """Return what sets each field of a class, past our ``__setattr__``."""
    return tuple([getattr(cls, field.name).__set__ for field in fields(cls)])


def refuse_change(self: object, name: str, *_: object) -> NoReturn:
    """Refuse to set or to delete an attribute."""
    raise FrozenInstanceError(f"cannot change field {name!r}")
