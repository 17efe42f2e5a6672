# SPDX-License-Identifier: Apache-2.0
"""Which functions may write into arrays from outside: ``self.u[1:] = x``, ``G += 1``.

Python does such a thing at once, and so it would be done once, while tracing, in place
of in each call. A trace that meets such a function, and an array that it might write,
begins anew with functions that say what they write.
"""

from __future__ import annotations

import dis
import operator
from functools import lru_cache
from types import CodeType

_IN_PLACE = (
    *("iadd", "isub", "imul", "imatmul", "itruediv", "ifloordiv", "imod", "ipow"),
    *("ilshift", "irshift", "iand", "ixor", "ior", "setitem"),
)
OPERATORS = frozenset(getattr(operator, name) for name in _IN_PLACE)
_METHODS = frozenset(f"__{name}__" for name in _IN_PLACE)
_STORES = ("STORE_SUBSCR", "STORE_SLICE", "INPLACE_")
_WRITERS = frozenset(
    {
        *("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"),
        *("fill", "sort", "partition", "at", "shuffle", "setflags", "itemset"),
        *_IN_PLACE,
    }
)


def is_in_place(name: str) -> bool:
    """Tell whether methods of such a name write: ``__iadd__``, or torch's ``add_``."""
    if name.endswith("__"):
        return name in _METHODS
    return name.endswith("_") and name != "_"


@lru_cache(1024)
def may_write(code: CodeType) -> bool:
    """Tell whether ``code``, or a function inside of it, may write into an array."""
    if any(name in _WRITERS or is_in_place(name) for name in code.co_names):
        return True
    for instruction in dis.get_instructions(code):
        name, text = instruction.opname, instruction.argrepr
        if name.startswith(_STORES) or (name == "BINARY_OP" and text.endswith("=")):
            return True
    for held in code.co_consts:
        if isinstance(held, CodeType) and may_write(held):
            return True
        if isinstance(held, tuple) and "out" in held:  # names of keywords
            return True
        if isinstance(held, str) and held in _METHODS:  # for getattr
            return True
    return False
