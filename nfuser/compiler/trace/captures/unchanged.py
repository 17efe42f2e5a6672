# SPDX-License-Identifier: Apache-2.0
"""Tests that a value from outside is what it was while tracing."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import sys
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.captures.parts import (
    PLAIN,
    is_array,
    is_silent,
    is_users_array,
)
from nfuser.compiler.trace.captures.windows import bytes_of
from nfuser.compiler.trace.standins.standin import Standin, is_ndarray

if TYPE_CHECKING:
    from collections.abc import Callable


def same_defaults(values: Any) -> Callable[[Any], bool]:
    """Return the test that the defaults of a function are what they were."""
    if not isinstance(values, dict):
        return lambda found: found is values
    before: dict[str, Any] = dict(values)
    return lambda found: (
        found is not None
        and found.keys() == before.keys()
        and all(found[name] is before[name] for name in before)
    )


def same(expected: Any) -> Callable[[Any], bool]:
    """Return the test that a value is unchanged; arrays also in their elements."""
    is_object = is_users_array(expected) and not is_ndarray(expected)
    if is_array(expected) and not is_object:
        return _same_array(expected)
    if isinstance(expected, PLAIN) and not isinstance(expected, (Standin, np.void)):
        kind, text = type(expected), repr(expected)
        if expected != expected or (expected == 0 and kind not in (int, bool)):
            # NaN is not itself, and -0.0 is not 0.0.
            return lambda found: type(found) is kind and repr(found) == text
        return lambda found: type(found) is kind and found == expected
    if isinstance(expected, (set, frozenset)):
        return _same_set(expected)
    if (memory := bytes_of(expected)) is not None:
        kind, content = type(expected), _digest(memory)
        return lambda found: type(found) is kind and _digest(bytes_of(found)) == content
    try:
        reference = weakref.ref(expected)
    except TypeError:
        return lambda found: found is expected
    return lambda found: found is not None and found is reference()


def _same_set(expected: Any) -> Callable[[Any], bool]:
    """Return the test that a set has the same elements in the same order."""
    kind, before = type(expected), [(type(e), repr(e), e) for e in expected]
    return lambda found: (
        type(found) is kind and [(type(e), repr(e), e) for e in found] == before
    )


def _same_array(expected: Any) -> Callable[[Any], bool]:
    if not is_ndarray(expected) and not is_silent(expected):
        return _same_written_once(expected)
    digest = _digest(expected)

    return lambda found: is_array(found) and _digest(found) == digest


def _same_written_once(expected: Any) -> Callable[[Any], bool]:
    """Return the test of an array whose own elements never change, as JAX's."""
    reference, kind, digest = weakref.ref(expected), type(expected), _shown(expected)

    def holds(found: Any) -> bool:
        if found is not None and found is reference():
            return True
        is_shown = digest is not None and type(found) is kind
        return is_shown and _shown(found) == digest

    return holds


def _shown(item: Any) -> tuple[Any, ...] | None:
    try:
        return _digest(np.asarray(item))
    except TypeError:  # JAX's word while it traces
        return None


def _digest(item: Any) -> tuple[Any, ...]:
    """Return a summary of the elements, or what says that they were written."""
    if is_ndarray(item):
        content = hashlib.blake2b(np.ascontiguousarray(item).tobytes())
        return content.digest(), item.shape, item.dtype
    if hasattr(type(item), "_version"):
        if item.device.type == "cpu":
            return _digest(_bytes_of(item)), tuple(item.shape), str(item.dtype)
        return item._version, id(item), str(item.dtype)
    return object(), id(item), None


def _bytes_of(tensor: Any) -> np.ndarray[Any, Any]:
    """Return the elements of a tensor, which NumPy may have written, too."""
    torch = sys.modules["torch"]
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
