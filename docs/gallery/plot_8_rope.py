# SPDX-License-Identifier: Apache-2.0
"""
Rotary embeddings of many lengths
=================================

Half of each row changes places with the other half. Compilers that fix sizes compile
this for each length; here sizes are names, and one kernel serves all.
"""

from functools import partial

import numba
import numpy as np
from by_turns import bars, by_turns, dots, in_jax, in_order, in_torch

import nfuser


@nfuser.fuse
def rope(x, cos, sin):
    h = x.shape[-1] // 2
    rotated = np.concatenate([-x[..., h:], x[..., :h]], axis=-1)
    return x * cos + rotated * sin


def given(length):
    """Return heads of queries, and the tables of angles for their places."""
    x = np.random.default_rng(0).standard_normal((8, length, 64), dtype=np.float32)
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(64) % 32 / 32)
    return x, np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


lengths = np.random.default_rng(1).integers(16, 900, 200)
calls = (partial(rope, *given(length)) for length in lengths)
dots(in_order(calls), "200 calls of 8 heads", "call, each of another length")

# %%
# Only the first call compiled.

info = rope.cache_info()
print(
    f"{info.calls} calls, {len(set(lengths))} lengths, {info.traces} trace, "
    f"{info.compiled + info.loaded} kernel"
)
print(rope.why())
arguments = given(300)
plain = rope.__wrapped__
print(np.allclose(rope(*arguments), plain(*arguments), atol=1e-6))

# %%
# A length that is known, beside others.


@numba.njit(parallel=True)
def in_loops(x, cos, sin):
    out, h = np.empty_like(x), x.shape[2] // 2
    for b in numba.prange(x.shape[0]):
        for s in range(x.shape[1]):
            for k in range(h):
                low, high = x[b, s, k], x[b, s, k + h]
                out[b, s, k] = low * cos[s, k] - high * sin[s, k]
                out[b, s, k + h] = high * cos[s, k + h] + low * sin[s, k + h]
    return out


def in_words_of(torch):
    def rotary(x, cos, sin):
        low, high = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-high, low], dim=-1) * sin

    return rotary


long = given(4096)
print(np.allclose(in_loops(*long), plain(*long), atol=1e-6))
calls = {
    "nfuser": lambda: rope(*long),
    "NumPy": lambda: plain(*long),
    "Numba": lambda: in_loops(*long),
    **in_jax(plain, *long),
    **in_torch(in_words_of, *long),
}
bars(by_turns(calls), "8 heads of 4096 places of 64 numbers, float32")
