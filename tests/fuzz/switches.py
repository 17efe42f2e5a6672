# SPDX-License-Identifier: Apache-2.0
"""Which planted fault is on, and which would have shown where it stands.

Copies of the package that `tests.fuzz.planting` writes ask here. With none on, both
ways are computed, and ``SHOWN`` keeps the faults whose ways differed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ACTIVE = os.environ.get("NFUSER_TESTS_FAULT")
SHOWN: set[str] = set()
_PLAIN = (int, str, float, tuple, frozenset, set, dict, list)


def is_on(name: str) -> bool:
    """Tell whether a fault is on; it shows wherever its statement is met."""
    if ACTIVE is None:
        SHOWN.add(name)
    return name == ACTIVE


def either(
    name: str, right: Callable[[], Any], wrong: Callable[[], Any], *, as_truth: bool
) -> Any:
    """Return the value of the way that is on, of two expressions without effects."""
    if ACTIVE is not None:
        return wrong() if name == ACTIVE else right()
    value = right()
    if name not in SHOWN and not _is_alike(value, wrong, as_truth=as_truth):
        SHOWN.add(name)
    return value


def _is_alike(value: Any, wrong: Callable[[], Any], *, as_truth: bool) -> bool:
    try:
        other = wrong()
        if value is other or as_truth:
            return bool(value) == bool(other)
        if type(value) is not type(other):
            return False
        is_plain = isinstance(value, _PLAIN)
        return bool(value == other) and (is_plain or hash(value) == hash(other))
    except Exception:  # noqa: BLE001 (whatever the fault raises, it shows)
        return False
