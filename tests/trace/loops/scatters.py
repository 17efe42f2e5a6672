# SPDX-License-Identifier: Apache-2.0
"""Loops that write single elements, with calls of which some write beyond an array."""

# Programs are given, and give, what has no static type.
# pyright: basic

from __future__ import annotations

import numpy as np


def histogram(x, i):
    c = np.zeros(5, int)
    for k in range(len(i)):
        c[i[k]] += 1
    return c


def into_an_argument(x, i):
    for k in range(len(i)):
        x[i[k]] = k + 0.5
    return x


def into_an_argument_and_another(x, i):
    y = np.zeros(len(x))
    for k in range(len(i)):
        y[i[k]] = x[i[k]]
        x[0] = -k
    return y


def counted_and_read(x, i):
    total = 0.0
    for k in range(len(i)):
        x[i[k]] += 1
        total += x[0]
    return total


def chosen(x, i):
    k = 0
    for n in range(len(i)):
        if i[n] > 0:
            x[k] = i[n]
            k += 1
        else:
            x[i[n]] = -7.0
    return k


def two_branches(x, i):
    y = np.zeros(4)
    for n in range(len(i)):
        if x[n % 2] > 0:
            y[i[n]] = x[n % 2]
        else:
            y[-i[n]] = -x[n % 2]
            x[n % 2] = n + 1
    return y


def while_writing(x, i):
    k = 0
    while i[k] >= 0:
        x[i[k]] = k
        k += 1
    return k


def while_and_break(x, i):
    k = 0
    while True:
        x[i[k]] -= 1
        if x[i[k]] < -3:
            break
        k += 1
    return k


def nested(x, i):
    for a in range(len(i)):
        b = a
        while b > 0 and x[i[b]] > x[i[b - 1]]:
            t = x[i[b]]
            x[i[b]] = x[i[b - 1]]
            x[i[b - 1]] = t
            b -= 1
    return x


def nested_ranges(x, i):
    for a in range(len(i)):
        for b in range(a):
            x[i[a] + b] += b
    return x


def in_two_axes(x, i):
    y = np.zeros((3, 4))
    for k in range(len(i)):
        y[i[k], k % 4] += x[k]
    return y


def in_two_axes_by_arrays(x, i):
    y = np.zeros((3, 4))
    for k in range(len(i)):
        y[i[k] // 2, i[k]] = k
    return y


def of_a_view(x, i):
    y = x[1:]
    for k in range(len(i)):
        y[i[k]] = k
    return x


def backwards(x, i):
    y = x[::-1]
    for k in range(len(i)):
        y[i[k]] = k
    return x


def of_truth(x, i):
    seen = np.zeros(len(x), bool)
    n = 0
    for k in range(len(i)):
        if not seen[i[k]]:
            seen[i[k]] = True
            n += 1
    return n


def narrow(x, i):
    y = np.zeros(6, np.int8)
    for k in range(len(i)):
        y[i[k]] += 3
    return y


def half(x, i):
    y = np.zeros(6, np.float32)
    for k in range(len(i)):
        y[i[k]] = y[i[k]] * 0.5 + x[k]
    return y


def complex_ones(x, i):
    y = np.zeros(6, complex)
    for k in range(len(i)):
        y[i[k]] += x[k] * 1j
    return y


def queue(x, i):
    q = np.zeros(8, int)
    q[0] = i[0]
    head, tail = 0, 1
    while head < tail:
        u = q[head]
        head += 1
        if u > 0:
            q[tail] = u - 1
            tail += 1
        x[head] = u
    return tail


def stack(x, i):
    s, y = np.zeros(4, int), np.zeros(8)
    top = 0
    for k in range(len(i)):
        if i[k] > 0:
            s[top] = i[k]
            top += 1
        elif top > 0:
            top -= 1
            y[k] = s[top]
    return y


def union(x, i):
    p = np.zeros(len(x), int)
    for k in range(len(p)):
        p[k] = k
    for k in range(len(i)):
        r = k
        while p[r] != r:
            p[r] = p[p[r]]
            r = p[r]
        p[r] = i[k]
        if p[p[r]] != p[r]:
            break
    return p


def merge(x, i):
    out = np.zeros(len(i))
    a = 0
    b = 0
    for k in range(len(out)):
        if x[a] <= i[b]:
            out[k] = x[a]
            a += 1
        else:
            out[a + b] = i[b]
            b += 1
    return out


def sieve(x, i):
    p = np.ones(8, bool)
    for k in range(2, len(i)):
        if p[k]:
            for m in range(k * k, len(i) + 4, k):
                p[m] = False
    return p


def partition(x, i):
    lo = -1
    for j in range(len(x) - 1):
        if x[j] <= x[i[0]]:
            lo += 1
            t = x[lo]
            x[lo] = x[j]
            x[j] = t
    return lo


def heap(x, i):
    n = len(x)
    for s in range(n // 2 - 1, -1, -1):
        k = s
        while 2 * k + 1 < n:
            c = 2 * k + 1
            if c + 1 < n and x[c + 1] > x[c]:
                c += 1
            if x[k] >= x[c]:
                break
            t = x[k]
            x[k] = x[c]
            x[c] = t
            k = c
    return x


def counting_sort(x, i):
    c = np.zeros(7, int)
    for k in range(len(i)):
        c[i[k] + 1] += 1
    for k in range(len(c) - 1):
        c[k + 1] += c[k]
    out = np.zeros(len(i), int)
    for k in range(len(i)):
        out[c[i[k]]] = i[k]
        c[i[k]] += 1
    return out


def swapped_arrays(x, i):
    y = np.zeros(len(x))
    for k in range(len(i)):
        x, y = y, x
        x[i[k]] = k
    return x - y


def whole_beside(x, i):
    y = np.zeros(len(x))
    for k in range(len(i)):
        y += x
        y[i[k]] = 0
        x *= 0.5
    return y


def row_beside(x, i):
    y = np.zeros((len(i), 3))
    for k in range(len(i)):
        y[k] = x[k]
        y[i[k], 1] = -1
    return y


def returned_early(x, i):
    for k in range(len(i)):
        x[i[k]] = 1
        if k == 2:
            return k + x[0]
    return x[0] - 1


def all_of(x, i):
    for k in range(len(i)):
        x[i[k]] = x[k // 3] + 1
    return x.sum()


def by_float_sums(x, i):
    k = 0
    s = 0.0
    while s < 4:
        s += abs(x[k % len(x)]) + 0.5
        x[k + i[0]] = s
        k += 1
    return k


def twice(x, i):
    for k in range(len(i)):
        x[i[k]] = k
    for k in range(len(i)):
        x[i[k] + 1] = -k
    return x


def safe_in_a_branch(x, i):
    for k in range(len(i)):
        x[i[k]] += 1
        if x[k // 4] > 0:
            x[k // 4] = -9
    return 0


def safe_in_both_branches(x, i):
    y = x[:1]
    for k in range(len(i)):
        x[i[k]] += 1
        if x[0] > 0:
            x[0] += 1
            y[0] *= 2
        else:
            x[0] = k
    return 0


def safe_after_continue(x, i):
    for k in range(len(i)):
        x[i[k]] += 1
        if k > 2:
            continue
        x[0] -= 3
    return 0


def safe_in_a_while(x, i):
    for k in range(len(i)):
        x[i[k]] += 1
        q = 0
        while q < len(x) and x[q] < 50:
            x[q] += 10
            q += 1
    return 0


def safe_in_ranges(x, i):
    for k in range(len(i)):
        x[i[k]] += 1
        for q in range(len(x)):
            for r in range(q):
                x[q] += r
            x[q] += 0.5
    return 0


def otherwise_beside(x, i):
    for _ in range(len(i)):
        for q in range(len(i)):
            if x[i[q]] > 40:
                break
            x[i[q]] += 1
        else:
            x[0] = -9
    return 0


PROGRAMS = (
    histogram,
    into_an_argument,
    into_an_argument_and_another,
    counted_and_read,
    chosen,
    two_branches,
    while_writing,
    while_and_break,
    nested,
    nested_ranges,
    in_two_axes,
    in_two_axes_by_arrays,
    of_a_view,
    backwards,
    of_truth,
    narrow,
    half,
    complex_ones,
    queue,
    stack,
    union,
    merge,
    sieve,
    partition,
    heap,
    counting_sort,
    swapped_arrays,
    whole_beside,
    row_beside,
    returned_early,
    all_of,
    by_float_sums,
    twice,
    safe_in_a_branch,
    safe_in_both_branches,
    safe_after_continue,
    safe_in_a_while,
    safe_in_ranges,
    otherwise_beside,
)
X = [1.5, -2.0, 0.5, 3.0, -1.0, 2.5]
CALLS = (
    (X, [0, 1, 2, 3]),
    (X, [2, 2, 1, -1, 0]),
    (X, [0, 3, 6, 1]),  # one beyond
    (X, [-7, 1]),
    (X, [4, -6, -1, 5, 0, 9]),
    (X[:3], [1, 0, 1, 2, 2]),
    (X[:1], [0, -1, 0]),
    (X[:2], [1, -2, 2]),
    ([], [0, 1]),
    (X, []),
    (X, [10**12, 0]),
    (X, [-(10**12), 0]),
)
