# SPDX-License-Identifier: Apache-2.0
"""Which parts of Numba compile kernels: those it keeps to itself, or public ones.

Private parts change without notice. What they do not compile and public ones do, shows
that they have: from then on public parts serve, and one warning says so.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypeVar

import nfuser.config as config

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_changed: list[str] = []  # what was found of private parts that do not serve


def compiled(by_private: Callable[[], T], by_public: Callable[[], T]) -> T:
    """Return what private parts compile; public ones if asked for, or in their place.

    If neither can, the error is that of the private parts, as it is in most processes.
    """
    if is_public():
        return by_public()
    try:
        return by_private()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 (of any kind, where names have changed)
        try:
            made = by_public()
        except Exception:  # noqa: BLE001 (the kernel is at fault, and is told of)
            raise error from None
        _changed.append(f"{type(error).__name__}: {error}")
    message = (
        "set NFUSER_NUMBA=public to compile by numba.njit and numba.cuda alone, "
        "without this warning: parts that nfuser uses of this version of Numba have "
        f"changed ({_changed[0]}). Kernels are right, and may be slower; please "
        "report it"
    )
    warnings.warn(message, RuntimeWarning, stacklevel=2)
    return made


def is_public() -> bool:
    """Tell whether public parts of Numba compile what comes next."""
    return bool(_changed) or config.current().numba == "public"


def told() -> str:
    """Return in words which parts compile, and why."""
    if _changed:
        return f"Numba's public functions, since other parts changed ({_changed[0]})"
    if config.current().numba == "public":
        return "Numba's public functions, as NFUSER_NUMBA asks for"
    return "parts that Numba keeps to itself, which compile sooner"
