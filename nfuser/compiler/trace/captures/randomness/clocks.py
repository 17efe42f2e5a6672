# SPDX-License-Identifier: Apache-2.0
"""Randomness and clocks: a trace would freeze what they say, so it refuses them."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable

# To a strict checker type(x) of a value typed Any is unknown; this one is not.
_class_of: Callable[[object], type[object]] = type
_MODULES = {"random", "time", "uuid", "secrets", "numpy.random", "datetime"}
_DATES = {"now", "utcnow", "today"}
_GENERATORS = {"Generator", "RandomState", "BitGenerator"}


def is_generator(item: Any) -> bool:
    """Tell whether ``item`` draws random numbers."""
    if isinstance(item, Standin):
        return False
    return isinstance(item, random.Random) or _makes_generators(_class_of(item))


def _makes_generators(kind: type) -> bool:
    return any(
        base.__name__ in _GENERATORS
        and (
            base.__module__ == "torch._C" or base.__module__.startswith("numpy.random")
        )
        for base in kind.__mro__
    )


def is_of_numpy(item: Any) -> bool:
    """Tell whether ``item`` is a generator of NumPy's, whose draws can be traced."""
    kind = _class_of(item)
    return kind.__name__ == "Generator" and kind.__module__.startswith("numpy.random")


def refuse(name: str, found: Any) -> None:
    """Refuse a function that answers differently each time."""
    module = getattr(found, "__module__", None) or ""
    if module.startswith("nfuser."):
        return
    short = getattr(found, "__name__", name.rpartition(".")[2])
    owner = getattr(found, "__self__", None)
    is_drawn = is_generator(owner) or short in ("urandom", "default_rng")
    is_drawn |= module in _MODULES and not isinstance(found, type)
    is_drawn |= module in ("torch", "builtins", "") and short in _TORCH
    is_drawn |= _is_clock(owner, short) or name.startswith("numpy.random")
    is_drawn |= name.startswith("random.") or found is random.SystemRandom
    if is_drawn and not is_generator(found):
        raise _slept(name) if found is time.sleep else drawn(name)


_TORCH = {"rand", "randn", "randint", "randperm", "normal"}


def _is_clock(owner: Any, short: str) -> bool:
    return getattr(owner, "__module__", None) == "datetime" and short in _DATES


def _slept(name: str) -> TraceError:
    message = (
        f"call {name} outside: a fused function is traced once, so it would wait while "
        "it is traced, and in no later call"
    )
    return TraceError(message)


def drawn(name: str) -> TraceError:
    """Return the error for random numbers, or a clock, called ``name``."""
    message = (
        f"draw them outside and pass them as arguments: {name}: a fused function is "
        "traced once, so random numbers and clocks would be the same in every call; "
        "generators of nfuser.random are drawn from inside"
    )
    return TraceError(message)
