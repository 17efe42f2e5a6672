# SPDX-License-Identifier: Apache-2.0
"""
Softmax and norms
=================

What stands between the products of a transformer: rows that are folded, then gone over
again. Each function here is one kernel that reads its input once; other shapes run the
same kernel.
"""

import numba
import numpy as np
from by_turns import by_turns, in_jax, in_torch, lines

import nfuser


@nfuser.fuse
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@nfuser.fuse
def add_rms_norm(x, residual, weight):
    h = x + residual
    return h, h / np.sqrt((h * h).mean(axis=-1, keepdims=True) + 1e-6) * weight


@nfuser.fuse
def layer_norm(x, weight, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * weight + bias


rng = np.random.default_rng(0)
x = rng.standard_normal((512, 1024), dtype=np.float32)
w, b = rng.standard_normal((2, 1024), dtype=np.float32)
for function, given in (
    (softmax, (x,)),
    (add_rms_norm, (x, x, w)),
    (layer_norm, (x, w, b)),
):
    told = function.explain(*given)
    print(f"{function.__name__}: {told.operations} operations, {told.kernels} kernel")

# %%
# The time of a softmax over the length of a row, for as many elements in all.


@numba.njit(parallel=True)
def in_loops(x):
    out = np.empty_like(x)
    for i in numba.prange(x.shape[0]):
        out[i] = np.exp(x[i] - x[i].max())
        out[i] /= out[i].sum()
    return out


def in_words_of(torch):
    return lambda x: torch.softmax(x, -1)


sizes, found = [64, 256, 1024, 4096, 16384], []
for n in sizes:
    x = rng.standard_normal((2**20 // n, n), dtype=np.float32)
    calls = {
        "nfuser": lambda x=x: softmax(x),
        "NumPy": lambda x=x: softmax.__wrapped__(x),
        "Numba": lambda x=x: in_loops(x),
        **in_jax(softmax.__wrapped__, x),
        **in_torch(in_words_of, x),
    }
    assert np.allclose(in_loops(x), softmax(x), atol=1e-6)
    found.append(by_turns(calls))
lines(sizes, found, "softmax of a million elements, float32", "elements in a row")

# %%
# One trace served them all.

info = softmax.cache_info()
print(
    f"{info.calls} calls, {info.traces} trace; kernels: {info.compiled + info.loaded}"
)
