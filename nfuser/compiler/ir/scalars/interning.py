# SPDX-License-Identifier: Apache-2.0
"""Nodes that are one object wherever they are made alike."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from nfuser.base.locks import INTERNING

if TYPE_CHECKING:
    from collections.abc import Callable

_interned: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()


def intern(make: Any, key: Callable[[], tuple[int, ...]], *fields: object) -> Any:
    """Return the ``make`` of ``fields``, whose last field is ``key()``."""
    identity = (make, *fields)
    with INTERNING:
        found = _interned.get(identity)
        if found is None:
            found = _interned[identity] = make(*fields, key())
    return found


def interned_again(kind: Any, *found: Any) -> Any:
    """Return what was pickled, as it is in this process."""
    *parts, key = found
    return intern(kind, lambda: key, *parts)


def digest(*parts: object) -> int:
    """Return a number for the structure of a compound, alike in every process."""
    text = repr(parts).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
