# SPDX-License-Identifier: Apache-2.0
"""The captured arrays whose elements Python saw.

An array that an operation met is an input; a number taken from it is a constant.
Nothing tells when an element is read. So a trace looks for the signs of it: a number of
NumPy's in an operation or a variable, a method or a function of NumPy's called with the
array, a subscript or a builtin that code applies to it.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import dis
from functools import lru_cache
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nfuser.compiler.trace.standins.standin import Standin, is_ndarray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import CodeType, FrameType

Chain: TypeAlias = "tuple[str, ...]"  # a name and the attributes that follow

_READERS = (
    "abs all any bool complex divmod enumerate filter float format int iter list map "
    "max min next pow print repr reversed round set sorted str sum tuple zip"
)
_BUILTINS = frozenset(_READERS.split())
_NAMES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_CLASSDEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_TAKES_APART = ("GET_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "FORMAT_VALUE", "TO_BOOL")


class Elements:
    """The arrays that Python may have looked into, told apart by ``key``."""

    def __init__(self, key: Callable[[Any], Any], known: Iterable[Any]) -> None:
        self._key = key
        numbers = (x for x in known if isinstance(x, np.generic))
        self._numbers = {id(x): x for x in numbers}
        self._seen: set[Any] = set()
        self._dtypes: set[np.dtype[Any]] = set()
        self._all = False

    def was_seen(self, array: Any) -> bool:
        """Tell whether there is a sign that elements of ``array`` were read."""
        is_seen = self._key(array) in self._seen or array.dtype in self._dtypes
        return self._all or is_seen

    def use_all(self) -> None:
        """Note an array that may have been computed from any of them."""
        self._all = True

    def meet(self, item: Any) -> None:
        """Note a number that is in use; one that nobody captured was computed."""
        if isinstance(item, Standin):  # asked first, it is told without a call
            return
        if isinstance(item, np.generic) and id(item) not in self._numbers:
            self._dtypes.add(item.dtype)

    def use(self, item: Any) -> None:
        """Note an array that NumPy computes with at once."""
        if is_ndarray(item):
            self._seen.add(self._key(item))
        else:
            self.meet(item)

    def look(self, frame: FrameType, names: Mapping[str, Any]) -> None:
        """Note what the variables of a function that ends show, its ``names``."""
        for held in names.values():
            self.meet(held)
        for chain in _chains(frame.f_code):
            found = _value(chain, names, frame.f_globals)
            if is_ndarray(found):
                # The loop that this is in may have taken others apart before.
                self._seen.add(self._key(found))
                self._dtypes.add(found.dtype)


def _value(chain: Chain, names: Mapping[str, Any], outside: Mapping[str, Any]) -> Any:
    """Return what ``chain`` stands for, running no code of the user's."""
    name, *attributes = chain
    found = names[name] if name in names else outside.get(name)
    for attribute in attributes:
        member = getattr(type(found), attribute, None)
        if isinstance(member, MemberDescriptorType):
            found = getattr(found, attribute, None)
        else:
            found = getattr(found, "__dict__", {}).get(attribute)
    return found


@lru_cache(1024)
def _chains(code: CodeType) -> tuple[Chain, ...]:
    """Return what ``code`` may subscript, hand to a builtin or take apart."""
    found: dict[Chain, None] = {}
    in_line: list[Chain] = []
    is_reading, constant, owner, before = False, None, None, None
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if instruction.starts_line:
            found |= dict.fromkeys(in_line if is_reading else ())
            in_line, is_reading = [], False
        if name.startswith(_NAMES):
            values = instruction.argval
            for value in values if isinstance(values, tuple) else (values,):
                in_line.append((value,))
                is_reading |= value in _BUILTINS and "GLOBAL" in name
        elif name in _ATTRIBUTES and in_line:
            in_line.append((*in_line[-1], instruction.argval))
        elif name in _TAKES_APART:
            is_reading = True
        elif name == "BINARY_SUBSCR" or instruction.argrepr == "[]":
            if owner == "shape" and in_line:  # of an array, most likely
                found[in_line[-1]] = None
            else:
                is_reading |= not isinstance(constant, str)
        is_constant = name == "LOAD_CONST"
        constant, owner = (instruction.argval, before) if is_constant else (None, None)
        before = instruction.argval if name in _ATTRIBUTES else None
    return tuple(found | dict.fromkeys(in_line if is_reading else ()))
