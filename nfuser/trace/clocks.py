# SPDX-License-Identifier: Apache-2.0
"""Randomness and clocks: a trace would freeze what they say, so it refuses them."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable

_MODULES = {"random", "time", "uuid", "secrets", "numpy.random", "datetime"}
_DATES = {"now", "utcnow", "today"}
_GENERATORS = {"Generator", "RandomState"}


def is_generator(item: Any) -> bool:
    """Tell whether ``item`` draws random numbers."""
    if isinstance(item, random.Random):
        return True
    kinds = type(item).__mro__
    return any(k.__module__.startswith("numpy.random") for k in kinds) and any(
        k.__name__ in _GENERATORS for k in kinds
    )


def refuse(name: str, found: Any) -> None:
    """Refuse a function that answers differently each time."""
    module = getattr(found, "__module__", None) or ""
    short = getattr(found, "__name__", name.rpartition(".")[2])
    owner = getattr(found, "__self__", None)
    drawn = is_generator(owner) or short in ("urandom", "default_rng")
    drawn |= module in _MODULES and not isinstance(found, type)
    drawn |= module in ("torch", "builtins", "") and short in _TORCH
    drawn |= _is_clock(owner, short) or name.startswith("numpy.random")
    drawn |= name.startswith("random.") or found is random.SystemRandom
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


def state(generators: Iterable[Any]) -> dict[object, Any]:
    """Return the state of the global generators and of ``generators``."""
    found: dict[object, Any] = {"random": random.getstate()}
    # NumPy imports it on first use, and so do we: a look must not pay for it.
    if (module := sys.modules.get("numpy.random")) is not None:
        found["numpy"] = _legacy(module)
    if (torch := sys.modules.get("torch")) is not None:
        found["torch"] = bytes(torch.get_rng_state().numpy())
        if torch.cuda.is_initialized():
            states = torch.cuda.get_rng_state_all()
            found["torch.cuda"] = [bytes(state.numpy()) for state in states]
    for item in generators:
        if isinstance(item, random.SystemRandom):
            raise _error("random.SystemRandom")
        if isinstance(item, random.Random):
            found[id(item)] = item.getstate()
        elif hasattr(item, "bit_generator"):
            found[id(item)] = repr(item.bit_generator.state)
        else:
            found[id(item)] = _legacy(item)
    return found


def _legacy(item: Any) -> str:
    kind, keys, *rest = item.get_state()
    return repr((kind, keys.tobytes(), rest))


def check(before: dict[object, Any], after: dict[object, Any]) -> None:
    """Refuse a trace that drew random numbers."""
    if any(after[key] != drawn for key, drawn in before.items()):
        raise _error("random numbers were drawn")
