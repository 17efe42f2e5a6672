# SPDX-License-Identifier: Apache-2.0
"""Loops over single elements as they are often written: tables, sorts, searches, grids.

Each is a text in which ``{one|other}`` is either: a border, a step, an order, a sign.
Arguments are those of ``element_programs``: tables ``a`` and ``b`` of ``n`` rows and
``m`` columns, a row ``x`` and places ``p`` in it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

_TEXTS = """
y, k = x.copy(), 0
for i in range(1, n):
    v, k = y[i], i - 1
    while k >= 0 and y[k] {>|<} v:
        y[k + 1] = y[k]
        k -= 1
    y[k + 1] = v
return y, x, k

y = {x.copy()|b[:, 0] * 1.0|x}
for i in range(n):
    for j in range({n - 1|0, n - 1 - i|i, n - 1}):
        if y[j] {>|<} y[j + 1]:
            y[j], y[j + 1] = y[j + 1], y[j]
return y, y[0], x

y, k = x.copy(), 0
for i in range(n):
    k = i
    for j in range(i + 1, n):
        if y[j] {<|>} y[k]:
            k = j
    s = y[i]
    y[i] = y[k]
    y[k] = s
return y, k, x

s = np.zeros(n)
for i in range(n):
    low, high = 0, m
    while low < high:
        k = (low + high) // 2
        if a[0, k] {<|<=} x[i]:
            low = k + 1
        else:
            high = k
    s[i] = low
return s, low, high

y = np.zeros((n + 1, m + 1))
for i in range({1, n + 1|n, 0, -1}):
    for j in range(1, m + 1):
        if a[i - 1, 0] == b[0, j - 1]:
            y[i, j] = y[i - 1, j - 1] + 1
        else:
            y[i, j] = {max|min}(y[i - 1, j], y[i, j - 1])
return y, y[n, m], y[-1]

y, s = np.zeros((n, m)), 0.0
for j in range(m):
    y[0, j] = {a[0, j]|j|0.5}
for i in range(1, n):
    y[i, 0] = {i|x[i]|0}
    for j in range(1, m):
        s = y[i - 1, j - 1] + (0 if a[i, j] > b[i, j] else {1|0.5})
        y[i, j] = min(s, y[i - 1, j] + 1, y[i, j - 1] + 1)
return y, y[-1, -1], s

y = np.zeros({n|n + 2})
for i in range(n):
    k = {p[i]|p[n - 1 - i]}
    y[k % n] += {1|x[i]|0.5}
return y, k, y.sum()

y, k = x.copy(), 0
k = 0
for i in range(n + {0|2}):
    k = p[k]
    y[k] = y[k] * 0.5 + {i|1}
return y, k, p[k]

y = a.copy()
for k in range(min(n, m)):
    for i in range({n|k + 1, n}):
        for j in range(m):
            y[i, j] = min(y[i, j], y[i, {k|0}] + y[k, j])
return y, y[0], y[-1, 0]

y = np.zeros((n, n))
for i in range(n):
    for j in range(n):
        s = {0.0|x[i]}
        for k in range(m):
            s += a[i, k] * b[{j|i}, k]
        y[i, j] = s
return y, s, y[0]

y = a.copy()
for t in range({2|3}):
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            if (i + j) % 2 == {0|1|t % 2}:
                y[i, j] = 0.25 * (y[i - 1, j] + y[i + 1, j] + y[i, j - 1] + y[i, j + 1])
return y, y[0], t

y, z = (a > 0) * 1, np.zeros((n, m), int)
for t in range(2):
    for i in range(n):
        for j in range(m):
            k = y[i - 1, j] + y[(i + 1) % n, j] + y[i, j - 1] + y[i, (j + 1) % m]
            z[i, j] = 1 if k == {2|3} or (y[i, j] == 1 and k < 2) else 0
    {y, z = z, y|y[...] = z}
return y, z, k

y = np.ones({n * 2|n + 5}, bool)
y[:2], i = False, 0
for i in range(2, n):
    if y[i]:
        for j in range({i * i|i + i}, len(y), i):
            y[j] = False
return y, y.sum(), i

y = np.zeros(n)
s = r = {0.0|x[0]}
for i in range(n):
    s = {max|min}(s, x[i])
    r = x[i] if x[i] > r + 1 else r
    y[i] = s - r
return y, s, r

k, s = 0, 0.0
y = np.zeros(n)
for i in range(n):
    if i == 0 or x[i] {>|>=} x[i - 1]:
        k += 1
    else:
        k = {0|1}
    y[i] = k
    s = max(s, k * 1.0)
return y, s, k

y = np.zeros(n)
y[-1] = {x[-1]|0}
for i in range(n - 2, -1, -1):
    y[i] = x[i] + {0.5 * y[i + 1]|y[i + 1] * a[i, 0] * 0.25}
for i in range({1|2}, n):
    y[i] -= y[i - 1] * 0.5
return y, y[0], x

y = a.copy()
for j in range(min(n, m)):
    for i in range(j + 1, n):
        s = y[i, j] * 0.25
        for k in range({j|j + 1|0}, m):
            y[i, k] -= s * y[j, k]
return y, y[0], y[-1]

y, k, g = np.zeros({4|n}), 0, 0
for i in range(n):
    y[k] = x[i]
    k = (k + 1) % len(y)
    g = {k|g + k}
    s = y[k - 1] + y[g % len(y)]
return y, k, s

low, high = 0, n - 1
y, k = x.copy(), 0
while low < high:
    if y[low] > y[high]:
        y[low], y[high] = y[high], y[low]
        high -= 1
    low += 1
return y, low, high

y = a.copy()
s, k = 100.0, 0
while s > {1|0.5} and k < 9:
    s = 0.0
    for i in range(1, n):
        v = 0.5 * (y[i, 0] + y[i - 1, 0])
        s = s + abs(v - y[i, 0])
        y[i, 0] = v
    k += 1
return y, s, k

y = np.zeros((n, m))
for i in range(n):
    for j in range(m):
        for k in range({-1|0}, 2):
            if 0 <= j + k < m:
                y[i, j] += a[i, j + k] * {0.5|(k + 1)}
return y, y[:, 0], y[-1]

y = np.zeros((n, m))
k = 0
for i in range(n):
    if {x[i] > 0|p[i] > 1|a[i, 0] != 0}:
        for j in range(m):
            y[k, j] = a[i, j]
        k += 1
return y, k, y[0]

y = np.full(n, {-1|7})
for i in range(n):
    j = i - 1
    while j >= 0 and x[j] {<=|<} x[i]:
        j = {j - 1|y[j] if y[j] < j else j - 1}
    y[i] = j
return y, j, y.sum()

v = {17|3}
y = x * 1.0
for i in range(n):
    v = (v * {5|7} + 3) % {64|31}
    k = v % n
    y[i], y[k] = y[k], y[i]
return y, v, k

y = b.copy()
for i in range(n):
    s = y[i].sum() {+ 1|* 0.5}
    y[i] /= {4|2}
    y[i, 0] += s
    x[i] = s - {y[i, -1]|y[i - 1, 0]}
return y, x, s

y = np.zeros((m, n))
for i in range(n):
    for j in range(m):
        y[j, {i|n - 1 - i}] = a[i, j] {+ b[i, j]|* 0.5}
        if i == j:
            continue
        y[j, i] -= 1
return y, y.T, y[0]

c = np.zeros({5|m}, int)
for i in range(n):
    for j in range(m):
        k = {p[i] % len(c)|(i * j) % len(c)}
        c[k] += 1
for k in range(1, len(c)):
    c[k] += c[k - 1]
return c, c[-1], k

y = a.copy()
for i in range(n):
    for j in range(m):
        if y[i, j] > {1|0}:
            break
        y[i, j] = {i - j|-1}
    else:
        y[i, 0] = 9
return y, y[:, -1], j

y, s = np.zeros(n), 0.0
for i in range(n):
    s = 0.0
    for j in range(i + 1):
        s += x[j] * x[{i - j|n - 1 - j}]
    y[i] = s
return y, s, x
"""


def classic(rng: random.Random) -> str:
    """Return the text of a function."""
    body = rng.choice(_TEXTS.strip().split("\n\n"))

    def chosen(found: re.Match[str]) -> str:
        return rng.choice(found[1].split("|"))

    lines = re.sub(r"\{([^{}]*\|[^{}]*)\}", chosen, body).split("\n")
    return "".join(["def program(a, b, x, p, n, m):\n", *(f"    {x}\n" for x in lines)])
