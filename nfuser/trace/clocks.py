# SPDX-License-Identifier: Apache-2.0
"""Randomness and clocks: a trace would freeze what they say, so it refuses them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable

_MODULES = {"random", "time", "uuid", "secrets", "numpy.random", "datetime"}
_DATES = {"now", "utcnow", "today"}
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


def is_generator(item: Any) -> bool:
    """Tell whether ``item`` draws random numbers."""
    return isinstance(item, _GENERATORS)


def refuse(name: str, found: Any) -> None:
    """Refuse a function that answers differently each time."""
    module = getattr(found, "__module__", None) or ""
    short = getattr(found, "__name__", name.rpartition(".")[2])
    owner = getattr(found, "__self__", None)
    drawn = isinstance(owner, _GENERATORS) or short in ("urandom", "default_rng")
    drawn |= module in _MODULES and not isinstance(found, type)
    drawn |= module in ("torch", "builtins", "") and short in _TORCH
    drawn |= _is_clock(owner, short) or name.startswith("numpy.random")
    drawn |= name.startswith("random.")
    if drawn and not is_generator(found):
        raise _error(name)


_TORCH = {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "normal"}


def _is_clock(owner: Any, short: str) -> bool:
    return getattr(owner, "__module__", None) == "datetime" and short in _DATES


def _error(name: str) -> TraceError:
    message = (
        f"{name}: a fused function is traced once, so random numbers and clocks would "
        "be the same in every call; draw them outside and pass them as arguments"
    )
    return TraceError(message)


def state(generators: Iterable[Any]) -> list[Any]:
    """Return the state of the global generators and of ``generators``."""
    found: list[Any] = [random.getstate(), _legacy(np.random)]
    for item in generators:
        if isinstance(item, np.random.Generator):
            found.append(repr(item.bit_generator.state))
        elif isinstance(item, random.Random):
            found.append(item.getstate())
        else:
            found.append(_legacy(item))
    return found


def _legacy(item: Any) -> str:
    kind, keys, *rest = item.get_state()
    return repr((kind, keys.tobytes(), rest))


def check(before: list[Any], after: list[Any]) -> None:
    """Refuse a trace that drew random numbers."""
    if before != after:
        raise _error("random numbers were drawn")
