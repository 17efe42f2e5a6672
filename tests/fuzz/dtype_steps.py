# SPDX-License-Identifier: Apache-2.0
"""Statements of random programs that write arrays of many dtypes, or by rarer keys.

They are patterns as in ``form_steps``. What is an integer comes of sizes, so that no
rounding decides it.
"""

from __future__ import annotations

TYPED = tuple(
    """
{h} = np.arange({x}.size).reshape({x}.shape) % 5
{h}[1:] = {h}[:-1]
{h}[0] = 2.7

{h} = np.arange({x}.size).reshape({x}.shape) % 5 - 2
{h}[{h} > 0] += 2
{x}[{h} == 0] = t

{h} = np.arange({x}.size).reshape({x}.shape) * 7 % 4
{h}[::2] //= 2
{h} -= {h}.max()
{x} += {h}

{h} = np.arange({x}.size).reshape({x}.shape)
np.add.at({h}, {i}, 2)
{h} %= 3
{x}[0] = {h}[-1]

{h} = np.arange({x}.size).reshape({x}.shape) % 3
np.maximum.at({h}, {i}, 2)
np.multiply.at({h}, {j}, -1)
np.subtract.at({h}, {i}, {h}[:3].copy())

{h} = np.zeros({x}.shape, int)
for i in range({r}):
    {h}[i % 3] += i
    {h}[0] *= 2

{h} = np.zeros(4, int)
np.add.at({h}, np.arange({x}.size) % 4, 1)
{e} = {h} * t

{h} = np.ones({x}.shape, np.int32)
{h}[1:] += {h}[:-1] * 3
{h} <<= 2
{h}[0] |= 1

{h} = (np.arange({x}.size).reshape({x}.shape) % 7).astype(np.uint8)
{h} *= np.uint8(99)
{h}[...] = {h}[::-1] + {h}
{e} = {h} * 1.0

{h} = (np.arange({x}.size).reshape({x}.shape) % 7 - 3).astype(np.int8)
{h}[0] = 99
{h} += {h}
{h}[1:] = {h}[:-1] // 2

{h} = np.zeros({x}.shape, bool)
{h}[1:] = {y}[:-1] > {c}
{h}[0] = True
{x}[{h}] = t

{h} = {x} > {c}
{h} |= {y} < 1
{h}[::2] ^= True
{x}[~{h}] *= 0.5

{h} = {y} > {c}
{h}[0], {h}[-1] = {h}[-1].copy(), {h}[0].copy()
{x}[{h}] -= 1
{e} = {h}.sum(axis=0)

{h} = np.zeros({x}.shape, bool)
for i in range({r}):
    {h}[i % 3] = {x}[0] > i
    {h}[0] = ~{h}[-1]
{e} = np.where({h}, {x}, t)

{_h} = {x} + 1j * {y}
{_h}.real[0] = 2
{_h}.imag[...] *= 2
{x}[...] = {_h}.imag + {_h}.real

{_h} = {x} + 1j * {y}
{_h}[1:] = {_h}[:-1].conj() * 1j
{x}[...], {y}[...] = {_h}.real, {_h}.imag

{_h} = np.zeros({x}.shape, complex)
{_h}[::2] = {x}[::2] * 1j
{_h} += t
for i in range({r}):
    {_h}[i % 3] = {_h}[0] * 0.5j
{e} = np.abs({_h})

{_h} = np.zeros({x}.shape, complex)
np.add.at({_h}, {i}, 1 + 2j)
{e} = {_h}.real - {_h}.imag
{e}[0] = t

{_h} = {x} * 1j
{_h}[{y} > {c}] = 0.5
{_v} = {_h}.imag
{_v}[0] = 3
{e} = {_h}.imag + 1

{h} = {x}.astype(np.float32)
{h}[1:] = {x}[:-1]
{h} *= 0.5
{x}[0] = {h}[-1]

{h} = np.arange({x}.size, dtype=np.float32).reshape({x}.shape) % 3
{h}[::-1] = {h} + {h}[0]
{x} += {h}

{h} = np.zeros({x}.shape, np.float32)
for i in range({r}):
    {h}[i % 3] += i
    {x}[0] = {h}[0]

{_h} = (np.arange({x}.size).reshape({x}.shape) % 5).astype(np.float16)
{_h}[1:] = {_h}[:-1] + 1
{_h} += {_h}[::-1]
{e} = {_h} * 1.0
{f} = {e}.astype(float)

{_h} = (np.arange({x}.size).reshape({x}.shape) % 7).astype(np.float16)
{_v} = {_h}[::-1]
{_v} -= 2
{_v}[0] = {_h}[1]
{e} = {_h}[:2].astype(float) + {_v}[:2]

{_h} = np.zeros({x}.shape, np.float16)
for i in range({r}):
    {_h}[i % 3] += i
    {_h}[0] = {_h}[-1] * 2
{e} = {_h}.astype(float)

{_h} = (np.arange({x}.size).reshape({x}.shape) % 3).astype(np.float16)
for i in range(1, {x}.shape[0]):
    {_h}[i] = {_h}[i - 1] * 0.5 + {_h}[i]
{e} = {_h}[:9].astype(float)

{_h} = np.zeros({x}.shape, np.float16)
{_h}[::2] = 3
np.add.at({_h}, {i}, 2)
{x}[...] = {_h}

{h} = np.array([3, 1, 2])
{x}[{h} - 1] = {y}[{h} % 2]
{h}[0] = 0
{x}[{h}] += 1

{h} = np.arange({x}.shape[0])
{h}[1:] = {h}[:-1]
{x}[...] = {y}[{h}]

{h} = np.arange({x}.shape[0], dtype=np.uint32)[::-1]
{x}[{h}] = {x} * 0.5

{h} = np.array([[0, 1], [-1, 0]])
{x}[{h}] = {y}[{h}] * 0.5
{e} = {x}[{h}]

{x}[:3][[True, False, True]] = {c}

{x}[np.int64(1)] = {y}[np.int8(0)]
{x}[np.array(2)] += t

{x}[()] = {x} * 0.5
{e} = {x}[()] + 1

{x}[5:2] = {c}
{x}[-100:3] += 1
{x}[100:] = t

{x}[::-3] = t
{x}[4::-2] *= 0.5

{x}[:-9:-1] = {c}
{x}[2:2] += 1

{x}[1, None] = {y}[0]
{x}[None, :2] = t

{h} = {x}[:, 0] > {c} if {x}.ndim > 1 else {x} > {c}
{x}[{h}] = {y}[{h}] * 2
{e} = {x}[{h}].sum()

{h} = {y} > {c}
{e} = {x}[{h}].sum() + {x}[{h}].size
{x}[{h}] = {x}[{h}] - {x}[{h}].mean() if n > 9 else t

{h} = {y} > {c}
{e} = {x}[{h}].max(initial=-7)
{x}[{h}] = np.clip({x}[{h}], -1, {y}[{h}] + 1)
""".strip().split("\n\n")
)
