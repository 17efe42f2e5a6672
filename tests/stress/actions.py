# SPDX-License-Identifier: Apache-2.0
"""What threads do to the functions that they share; each tells what was wrong."""

# Functions of arrays whose types only a trace knows.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from nfuser import config
from nfuser.execution.runtime.caches.shared_cache import forget_all
from tests.stress.forks import forked

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = np.linspace(0, 1, 60).reshape(5, 12)
LARGE = np.full((4, 70_000), 1.5)


class UserError(Exception):
    """What a traced function raises."""


def _fails(x: Any, n: Any) -> Any:
    if n is None:
        raise UserError
    return x - n


PLAIN: tuple[Callable[..., Any], ...] = (
    lambda x, n: x * 2 + n,
    lambda x, n: (x + n).sum(axis=-1, keepdims=True) - x,
    lambda x, n: (np.sqrt(x + n), x * int(n)),
    _fails,
)
SHARED = [nfuser.fuse(plain) for plain in PLAIN]


def _differs(found: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return any(map(_differs, found, expected))
    return not np.allclose(found, expected, rtol=1e-12)


def call(rng: np.random.Generator, x: Any = SMALL) -> str:
    """Call a shared function."""
    number, n = int(rng.integers(len(PLAIN))), int(rng.integers(1, 5))
    rows = x[: int(rng.integers(1, len(x) + 1))]
    found = SHARED[number](rows, n)
    return "wrong" if _differs(found, PLAIN[number](rows, n)) else ""


def call_large(rng: np.random.Generator) -> str:
    """Call with arrays that several threads compute, in memory used before."""
    return call(rng, LARGE)


def call_bound(rng: np.random.Generator) -> str:
    """Bind a call and drop what it was bound to."""
    x, n = SMALL + rng.random(), float(rng.random())
    bound, expected = SHARED[0].bind(x, n), PLAIN[0](x, n)
    del x
    return "wrong" if any(_differs(bound(), expected) for _ in range(5)) else ""


def compile_anew(rng: np.random.Generator) -> str:
    """Compile a function of one's own, and drop it."""
    factor = float(rng.random())
    fused = nfuser.fuse(lambda x: x * factor)
    found = [fused(SMALL) for _ in range(4)]
    return "wrong" if any(_differs(a, SMALL * factor) for a in found) else ""


def clear(rng: np.random.Generator) -> str:
    """Clear the caches of a shared function."""
    SHARED[int(rng.integers(len(SHARED)))].cache_clear()
    return ""


def discard(rng: np.random.Generator) -> str:
    """Make shared functions discard plans: their caches hold two for a while."""
    with config.override(cache_size=2):
        for _ in range(4):
            if wrong := call(rng):
                return wrong
    return ""


def forget(rng: np.random.Generator) -> str:
    """Forget all that is built, kernels now and then."""
    forget_all(kernels=bool(rng.random() < 0.1))
    return ""


def configure(rng: np.random.Generator) -> str:
    """Change settings under everybody's calls."""
    with config.override(num_threads=int(rng.integers(1, 4))):
        return call_large(rng)


def fail(rng: np.random.Generator) -> str:
    """Raise in the middle of a trace."""
    try:
        SHARED[3](SMALL, None)
    except UserError:
        return ""
    return "no error"


def fork(rng: np.random.Generator) -> str:
    """Fork; the child calls, and compiles."""
    forked(lambda: call(rng) or call_large(rng) or compile_anew(rng))
    return ""


ACTIONS: tuple[tuple[Callable[[np.random.Generator], str], float], ...] = (
    (call, 30),
    (call_large, 20),
    (call_bound, 8),
    (clear, 8),
    (discard, 2),
    (configure, 4),
    (fail, 3),
    (compile_anew, 1),
    (forget, 0.5),
    (fork, 0.5),
)
