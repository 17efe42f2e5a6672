# SPDX-License-Identifier: Apache-2.0
"""What can be seen of a call, and where two calls differ in it.

Kinds of containers and their order, kinds of numbers, dtypes, shapes, order in memory,
who may write, each value and the sign of each zero, which arrays are the same, and
which share memory.
"""

# What a traced function is given, and gives, has no static type.
# pyright: basic

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nfuser.errors import (
    BackendError,
    CompileError,
    HostError,
    NfuserError,
    VerifyError,
)

_NEAR = {"f": 2e-5, "e": 4e-3, "d": 1e-11, "g": 1e-11}


@dataclass(frozen=True)
class Free:
    """What may differ: values by what singles round, signs of zeros, kinds of numbers,
    and how arrays lie in memory."""

    wide: bool = False
    signs: bool = False
    kinds: bool = False
    lies: bool = False


EXACT = Free()
_OWN_FAULTS = (VerifyError, CompileError, BackendError, HostError)


def is_refusal(error: object) -> bool:
    """Tell whether an error says that a program has no fused form.

    Some say that the package is wrong, and others what failed as the program ran.
    """
    return isinstance(error, NfuserError) and not isinstance(error, _OWN_FAULTS)


def leaves(value: Any, what: str) -> list[tuple[str, Any]]:
    """Return what a nest holds, each with words for its place and its containers."""
    if isinstance(value, (list, tuple)):
        kind = type(value).__name__
        found = [y for k, x in enumerate(value) for y in leaves(x, f"{what} {kind}{k}")]
        return found or [(f"{what} {kind}", None)]
    if isinstance(value, dict):
        return [y for k, x in value.items() for y in leaves(x, f"{what} dict{k!r}")]
    return [(what, value)]


def _order(x: Any) -> list[int]:
    """Return the axes that are longer than 1, as they lie in memory."""
    longer = [k for k, n in enumerate(x.shape) if n > 1]
    return sorted(longer, key=lambda k: (-abs(x.strides[k]), k))


def difference(wanted: Any, found: Any, free: Free = EXACT) -> str | None:
    """Say in what two leaves differ, if in anything that is not free."""
    if wanted is None or found is None or isinstance(wanted, (slice, str)):
        return None if wanted == found else f"{found!r} in place of {wanted!r}"
    a, c = np.asarray(wanted), np.asarray(found)
    is_free = free.kinds and not (a.ndim or c.ndim) and c.dtype.kind in "ifb"
    if is_free and a.dtype != c.dtype and a.dtype.kind in "ifb":
        a, c = a.astype(float), c.astype(float)
    if type(wanted) is not type(found) and not is_free:
        return f"{type(found).__name__} in place of {type(wanted).__name__}"
    if a.dtype.newbyteorder("=") != c.dtype.newbyteorder("=") or a.shape != c.shape:
        return f"{c.dtype}{c.shape} in place of {a.dtype}{a.shape}"
    if not free.lies and isinstance(wanted, np.ndarray) and (said := lying(a, c)):
        return said
    return _values(a, c, free)


def lying(a: Any, c: Any) -> str | None:
    """Say in what arrays of one shape lie otherwise, if they do."""
    if a.size and _order(a) != _order(c) and 0 not in a.strides:
        return f"strides {c.strides} in place of {a.strides}"
    if a.flags.writeable and not c.flags.writeable:
        return "an array that nobody may write"
    return None


def _values(a: Any, c: Any, free: Free) -> str | None:
    if a.dtype.kind == "c":
        return _values(a.real, c.real, free) or _values(a.imag, c.imag, free)
    if a.dtype.kind != "f":
        return None if np.array_equal(a, c) else f"{c}\nin place of\n{a}"
    near = _NEAR["f"] if free.wide and a.dtype.char == "d" else _NEAR[a.dtype.char]
    with np.errstate(all="ignore"):
        one, other = a.astype("f8"), c.astype("f8")
        finite = np.isfinite(one)
        most = np.abs(one[finite]).max(initial=0)
        apart = np.abs(np.where(finite, one - other, 0))
        is_off = apart > near * most
        is_off |= ~finite & ~((one == other) | (np.isnan(one) & np.isnan(other)))
        is_off |= finite != np.isfinite(other)
        if not free.signs:
            is_off |= (one == 0) & (other == 0) & (np.signbit(one) != np.signbit(other))
    return f"{c}\nin place of\n{a}" if is_off.any() else None


def sharing(listed: list[Any]) -> set[tuple[int, int]]:
    """Return which pairs of arrays share memory, by their places in a list."""
    arrays = [(k, x) for k, x in enumerate(listed) if isinstance(x, np.ndarray)]
    return {
        (j, k)
        for at, (k, y) in enumerate(arrays)
        for j, x in arrays[:at]
        if np.may_share_memory(x, y) and np.shares_memory(x, y)
    }


def identities(listed: list[Any]) -> set[tuple[int, int]]:
    """Return which pairs of arrays are the same, by their places in a list."""
    arrays = [(k, x) for k, x in enumerate(listed) if isinstance(x, np.ndarray)]
    return {
        (j, k) for at, (k, y) in enumerate(arrays) for j, x in arrays[:at] if x is y
    }


def own(listed: list[tuple[str, Any]], others: list[Any]) -> list[tuple[Any, Any]]:
    """Return arrays among leaves that share no memory with others, and copies."""
    arrays = [x for _, x in listed if isinstance(x, np.ndarray)]
    return [
        (x, x.copy())
        for x in arrays
        if not any(np.may_share_memory(x, y) for y in others)
    ]


def changed(kept: list[tuple[Any, Any]]) -> str | None:
    """Say which arrays are no longer what they were, if any."""
    for x, was in kept:
        if x.tobytes() != was.tobytes():
            return f"{was}\nto\n{x}"
    return None
