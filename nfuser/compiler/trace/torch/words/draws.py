# SPDX-License-Identifier: Apache-2.0
"""Draws in torch's words: seeded by torch's generators, with the numbers of stream 1.

``torch.manual_seed`` makes a run repeat. The numbers are not those that torch draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.ops.elementwise.random_numbers import (
    normal_numbers,
    uniform_numbers,
)
from nfuser.compiler.ops.elementwise.random_words import random_words
from nfuser.compiler.trace.captures.randomness.torch_seeds import default_origin
from nfuser.compiler.trace.numpy.composed.dropouts import kept, require_floats
from nfuser.compiler.trace.numpy.speaking import speaking_numpy
from nfuser.compiler.trace.torch.words.common import refuse_others
from nfuser.errors import DTypeError, OptionError

if TYPE_CHECKING:
    from nfuser.compiler.trace.torch.words.common import Word
    from nfuser.compiler.trace.tracer import Tracer

_ALL = 1 << 16


def _words(t: Tracer, generator: Any) -> tuple[Any, Any]:
    """Return the key and the number of the next draw from a generator."""
    if generator is None:
        origin = default_origin(t.device)
        generator = origin.read((), {})
        t.note(origin, generator)
    return t.draw(generator)


def _like(verb: Any, name: str) -> Word:
    def drawn(
        t: Tracer, x: Any, *, dtype: Any = None, generator: Any = None, **options: Any
    ) -> Any:
        options.pop("memory_format", None)
        refuse_others(name, **options)
        held = t.tensor(x)
        kind = held.dtype if dtype is None else as_dtype(dtype)
        if not kind.is_float:
            message = f"write {name}(x, dtype=torch.float32): floats are drawn"
            raise DTypeError(message)
        return t.apply(verb, held.shape, *_words(t, generator), kind)

    return drawn


def _bernoulli(t: Tracer, x: Any, *, generator: Any = None) -> Any:
    held = t.tensor(x)
    if not held.dtype.is_float:
        message = "write torch.bernoulli(x.float()): probabilities are floats"
        raise DTypeError(message)
    kind = DType.F64 if held.dtype is DType.F64 else DType.F32
    u = t.apply(uniform_numbers, held.shape, *_words(t, generator), kind)
    return t.handlers["astype"](t, u < x, held.dtype)


def _dropout(
    t: Tracer, x: Any, p: Any = 0.5, training: Any = True, inplace: Any = False
) -> Any:
    is_known = isinstance(p, int | float)
    if is_known and not 0 <= p <= 1:
        message = f"dropout probability has to be between 0 and 1, but got {p}"
        raise OptionError(message)
    if not training or (is_known and p == 0):
        return x
    require_floats(x)
    key, call = _words(t, None)
    with speaking_numpy(t):
        word = t.apply(random_words, t.tensor(x).shape, key, call, 16)
        if not is_known:
            drop = (word.astype(np.float32) + np.float32(0.5)) < p * _ALL
        elif (often := round(p * _ALL)) == _ALL:
            drop = word <= np.uint16(_ALL - 1)
        else:
            drop = word < np.uint16(often)
        found = t.tensor(kept(x, drop, p))
    if inplace:
        x[...] = t.wrap(found)
        return x
    return t.wrap(found)


WORDS: dict[str, Word] = {
    "rand_like": _like(uniform_numbers, "rand_like"),
    "randn_like": _like(normal_numbers, "randn_like"),
    "bernoulli": _bernoulli,
    "dropout": _dropout,
}
