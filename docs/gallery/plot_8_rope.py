# SPDX-License-Identifier: Apache-2.0
"""
Rotary embeddings of many lengths
=================================

Half of each row changes places with the other half. Compilers that fix sizes compile
this for each length; here sizes are names, and one kernel serves all.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

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
waits = []
for length in lengths:
    arguments = given(length)
    begin = perf_counter()
    rope(*arguments)
    waits.append(1e3 * (perf_counter() - begin))
figure, axes = plt.subplots(figsize=(6.4, 3))
axes.semilogy(waits, ".", color="#2f9e44")
axes.set_xlabel("call, each of another length")
axes.set_ylabel("milliseconds")
figure.tight_layout()

# %%
# Only the first call compiled.

info = rope.cache_info()
print(
    f"{info.calls} calls, {len(set(lengths))} lengths, {info.traces} trace, "
    f"{info.compiled + info.loaded} kernel"
)
print(rope.why())
arguments = given(300)
print(np.allclose(rope(*arguments), rope.__wrapped__(*arguments), atol=1e-6))
