# SPDX-License-Identifier: Apache-2.0
"""Generators: a key, and the number of the draw calls so far."""

# Seeds have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ops.elementwise.random_words import philox
from nfuser.compiler.trace import current_tracer
from nfuser.compiler.trace.captures.randomness.stream import Stream
from nfuser.compiler.trace.captures.randomness.torch_seeds import (
    is_of_torch,
    key_of_torch,
)
from nfuser.errors import ArgumentError, TraceError
from nfuser.random.methods import Distributions

if TYPE_CHECKING:
    from nfuser.random.draw import Source

STREAM = 1
SPAWN, SPLIT, FOLD = 255, 254, 253  # slots that no distribution takes words of
SLOT_AT = 56
_WORD = 1 << 64


class Generator(Distributions, Stream):
    """Random numbers in NumPy's words; the same seed does not give NumPy's numbers.

    Each draw call advances it by one, whatever its size; so does one in a fused
    function, in each of its calls. Threads may share it: each draw call has a number
    of its own.
    """

    def __init__(self, key: int, call: int = 0, spawned: int = 0) -> None:
        super().__init__(key, call, current_tracer())
        self._spawned = spawned

    @property
    def _source(self) -> Source:
        return self

    @property
    def state(self) -> dict[str, int]:
        """The stream's number, the key, and the numbers of draw calls and children."""
        with self._lock:
            key, call = self.words
            spawned = self._spawned
        return {"stream": STREAM, "key": key, "call": call, "spawned": spawned}

    @state.setter
    def state(self, state: dict[str, int]) -> None:
        if state.get("stream") != STREAM:
            message = f"write a state of stream {STREAM}: found {state.get('stream')!r}"
            raise ArgumentError(message)
        key, call, spawned = (int(state[name]) for name in ("key", "call", "spawned"))
        if not all(0 <= word < _WORD for word in (key, call, spawned)):
            message = "write a state of integers from 0 to 2**64 - 1"
            raise ArgumentError(message)
        with self._lock:
            self.place(key, call)
            self._spawned = spawned

    def spawn(self, count: int) -> list[Generator]:
        """Return new generators, whose numbers are independent of this one's."""
        if count < 0:
            message = f"write a number of children that is not negative: found {count}"
            raise ArgumentError(message)
        with self._lock:
            first, key = self._spawned, self.words[0]
            self._spawned += count
        word = philox(64)
        place = SPAWN << SLOT_AT
        return [Generator(int(word(place, key, first + k))) for k in range(count)]

    def __reduce__(self) -> Any:
        return type(self)._of_state, (self.state,)

    @classmethod
    def _of_state(cls, state: dict[str, int]) -> Generator:
        return cls(state["key"], state["call"], state["spawned"])

    def __repr__(self) -> str:
        state = self.state
        return (
            f"Generator(stream={STREAM}, key={state['key']:#018x}, "
            f"call={state['call']})"
        )


def default_rng(seed: Any = None) -> Generator:
    """Return a generator; the same seed does not give NumPy's numbers.

    A seed is an integer, several in a sequence, or a ``numpy.random.SeedSequence``;
    without one the numbers are others each time. A generator is returned as it is.
    One of torch's is drawn from once: after ``torch.manual_seed(0)``,
    ``default_rng(torch.default_generator)`` is the same in each run.

    >>> import nfuser
    >>> nfuser.random.default_rng(7)
    Generator(stream=1, key=0x0000000000000007, call=0)
    >>> nfuser.random.default_rng(7).random(2)
    array([0.75015222, 0.08565787])
    """
    return seed if isinstance(seed, Generator) else Generator(key_of(seed))


def key_of(seed: Any) -> int:
    """Return the key of 64 bits that a seed stands for."""
    if seed is None:
        if current_tracer() is not None:
            message = (
                "write default_rng(seed), or make the generator outside and pass it: "
                "without a seed it would have the same numbers in every call"
            )
            raise TraceError(message)
        return secrets.randbits(64)
    if is_of_torch(seed):
        return _key_of_torch(seed)
    if isinstance(seed, np.random.SeedSequence):
        return int(seed.generate_state(1, np.uint64)[0])
    if hasattr(seed, "__index__"):
        return _word(int(seed.__index__()))
    if isinstance(seed, list | tuple | np.ndarray):
        listed = [_word_of_any_size(int(n)) for n in np.asarray(seed).ravel()]
        text = ",".join(map(str, listed)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
    message = (
        "write an integer, a sequence of integers or None as seed: found "
        f"{type(seed).__name__}"
    )
    raise ArgumentError(message)


def _key_of_torch(generator: Any) -> int:
    """Return a key that a generator of torch's gives, and advance it."""
    if current_tracer() is not None:
        message = (
            "write default_rng(generator) outside and pass what it returns: a fused "
            "function is traced once, and would take one key from torch's generator"
        )
        raise TraceError(message)
    return key_of_torch(generator)


def _word(seed: int) -> int:
    """Return a seed below 2**64 as it is, and the digest of a larger one."""
    if _word_of_any_size(seed) < _WORD:
        return seed
    digest = hashlib.blake2b(str(seed).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _word_of_any_size(seed: int) -> int:
    if seed < 0:
        message = f"write a seed that is not negative: found {seed}"
        raise ArgumentError(message)
    return seed
