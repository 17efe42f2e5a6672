# SPDX-License-Identifier: Apache-2.0
"""The captured arrays whose elements Python saw.

An array that an operation met is an input; a number taken from it is a constant.
Nothing tells when an element is read. So a trace looks for the signs of it: a number of
NumPy's in an operation or a variable, a method or a function of NumPy's called with the
array, a subscript or a builtin that code applies to it. Sizes that code asks for are
numbers of Python's, too: an array whose sizes it read has the same ones in each call.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.captures.lookup.chains import looks
from nfuser.compiler.trace.captures.parts import is_array
from nfuser.compiler.trace.standins.standin import Standin, is_ndarray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import CodeType, FrameType

    from nfuser.compiler.trace.captures.lookup.chains import Chain, TakenApart


class Elements:
    """The arrays that Python may have looked into, told apart by ``key``."""

    def __init__(self, key: Callable[[Any], Any], known: Iterable[Any]) -> None:
        self._key = key
        numbers = (x for x in known if isinstance(x, np.generic))
        self._numbers = {id(x): x for x in numbers}
        self._seen: set[Any] = set()
        self._dtypes: set[np.dtype[Any]] = set()
        self._all = False
        self._sized: set[Any] = set()
        self._sized_dtypes: set[Any] = set()

    def was_seen(self, array: Any) -> bool:
        """Tell whether there is a sign that elements of ``array`` were read."""
        is_seen = self._key(array) in self._seen or array.dtype in self._dtypes
        return self._all or is_seen

    def was_measured(self, array: Any) -> bool:
        """Tell whether there is a sign that Python read how long its axes are.

        A loop may have asked other arrays before, which had the same name.
        """
        return self._key(array) in self._sized or array.dtype in self._sized_dtypes

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

    def begin(self, frame: FrameType, code: CodeType) -> None:
        """Note what a function looks into that begins: names may mean others later."""
        found = looks(code)
        if found.earlier or found.sized:  # locals are copied to be looked into
            self._note(found, frame.f_locals, frame.f_globals)

    def look(self, frame: FrameType, names: Mapping[str, Any]) -> None:
        """Note what the variables of a function that ends show, its ``names``."""
        for held in names.values():
            self.meet(held)
        taken, outside = looks(frame.f_code), frame.f_globals
        for chain in taken.apart:
            found = _value(chain, names, outside)
            if is_ndarray(found):
                # The loop that this is in may have taken others apart before.
                self._seen.add(self._key(found))
                self._dtypes.add(found.dtype)
        self._note(taken, names, outside)

    def _note(
        self, taken: TakenApart, names: Mapping[str, Any], outside: Mapping[str, Any]
    ) -> None:
        for chain in taken.earlier:
            found = _value(chain, names, outside)
            if is_ndarray(found):
                self._seen.add(self._key(found))
        for chain in taken.sized:
            found = _value(chain, names, outside)
            if is_array(found):
                self._sized.add(self._key(found))
                self._sized_dtypes.add(found.dtype)


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
