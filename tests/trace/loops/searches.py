# SPDX-License-Identifier: Apache-2.0
"""Searches in plain Python, of which some calls read beyond an array."""

# Programs are given, and give, what has no static type.
# pyright: basic

from __future__ import annotations


def first_at_least(x, v):
    c = 0
    while x[c] < v:
        c += 1
    return c


def first_at_least_bounded(x, v):
    c = 0
    while c < len(x) and x[c] < v:
        c += 1
    return c


def first_of_two(x, v):
    c = 0
    while x[c] != v and x[c] != -v:
        c += 1
    return c


def either_goes_on(x, v):
    c = 0
    while x[c] < v or x[c + 1] < v:
        c += 1
    return c


def backwards(x, v):
    c = len(x) - 1
    while x[c] > v:
        c -= 1
    return c


def by_steps(x, v):
    c = 0
    while x[c] < v:
        c += 3
    return c, x[c - 1]


def doubling(x, v):
    c = 1
    while x[c] < v:
        c = 2 * c
    return c


def binary(x, v):
    low, high = 0, len(x)
    while low < high:
        middle = (low + high) // 2
        if x[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low


def binary_found(x, v):
    low, high = 0, len(x) - 1
    while x[low] < x[high]:
        middle = (low + high) // 2
        if x[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low, x[low]


def gallop(x, v):
    step = 1
    while step < len(x) and x[step] < v:
        step *= 2
    low, high = step // 2, min(step, len(x))
    while low < high:
        middle = (low + high) // 2
        if x[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low


def probe(x, v):
    c = v % len(x)
    while x[c] != v:
        c += 1
    return c


def probe_round(x, v):
    c, n = v % len(x), 0
    while x[c] != v and n < len(x):
        c = (c + 1) % len(x)
        n += 1
    return c, n


def probe_put(x, v):
    c = v % len(x)
    while x[c] > 0:
        c += 1
    return c


def two_pointers(x, v):
    i, j = 0, len(x) - 1
    while x[i] + x[j] != v:
        if x[i] + x[j] < v:
            i += 1
        else:
            j -= 1
    return i, j


def two_pointers_bounded(x, v):
    i, j = 0, len(x) - 1
    while i < j and x[i] + x[j] != v:
        if x[i] + x[j] < v:
            i += 1
        else:
            j -= 1
    return i, j


def merged_until(x, y, v):
    i, j, n = 0, 0, 0
    while x[i] < v or y[j] < v:
        if x[i] <= y[j]:
            i += 1
        else:
            j += 1
        n += 1
    return i, j, n


def linked(x, p):
    n = 0
    while x[p] >= 0:
        p = x[p]
        n += 1
    return n


def linked_last(x, p):
    while x[p] != p:
        p = x[p]
    return p


def linked_twice(x, p):
    n = 0
    while x[p] >= 0:
        p = x[x[p]]
        n += 1
    return n, p


def linked_from_array(x, y):
    p, n = y[0], 0
    while x[p] >= 0:
        p = x[p]
        n += 1
    return n


def cycle(x, p):
    slow, fast = x[p], x[x[p]]
    while slow != fast:
        slow, fast = x[slow], x[x[fast]]
    return slow


def matched(x, y):
    i = 0
    while i < len(y) and x[i] == y[i]:
        i += 1
    return i


def matched_somewhere(x, y):
    at, i = 0, 0
    while i < len(y):
        if x[at + i] == y[i]:
            i += 1
        else:
            at += 1
            i = 0
    return at


def matched_by_nested(x, y):
    at = 0
    while True:
        i = 0
        while i < len(y) and x[at + i] == y[i]:
            i += 1
        if i == len(y):
            break
        at += 1
    return at


def common_prefix(x, y):
    n = 0
    while x[n] == y[n]:
        n += 1
    return n


def partition_ends(x, v):
    i, j = 0, len(x) - 1
    while x[i] < v:
        i += 1
    while x[j] > v:
        j -= 1
    return i, j


def partition(x, v):
    i, j = -1, len(x)
    while True:
        i += 1
        while x[i] < v:
            i += 1
        j -= 1
        while x[j] > v:
            j -= 1
        if i >= j:
            return j
        x[i], x[j] = x[j], x[i]


def broken(x, v):
    c, s = 0, 0
    while True:
        if x[c] == v:
            break
        s += c
        c += 1
    return c, s


def broken_later(x, v):
    c, s = 0, 0
    while c < 100:
        c += 1
        if x[c] > v:
            break
        s += x[c - 1]
    return c, s


def continued(x, v):
    c, s = -1, 0
    while s < v:
        c += 1
        if x[c] < 0:
            continue
        s += x[c]
    return c, s


def broken_for(x, v):
    s = 0
    for i in range(len(x)):
        if x[i + 1] > v:
            break
        s += i
    return s


def returned(x, v):
    c = 0
    while True:
        if x[c] >= v:
            return c
        c += 2


def guarded_branch(x, v):
    c, s = 0, 0
    while c < v:
        if c < len(x):
            s += x[c]
        c += 1
    return s


def guarded_sum(x, v):
    c, s = 0, 0
    while c < v:
        s += x[c] if c < len(x) and x[c] > 0 else 1
        c += 1
    return s


def unguarded_branch(x, v):
    c, s = 0, 0
    while c < v + s * 0:
        if x[c % 3] > 0:
            s += x[c]
        c += 1
    return s


def guarded_by_number(x, v):
    c, s = v, 0
    while c and x[c - 1] > 0:
        s += x[c - 1]
        c -= 1
    return c, s


def guarded_by_not(x, v):
    c = 0
    while not (c >= len(x) or x[c] == v):
        c += 1
    return c


def chained(x, v):
    c = 0
    while 0 <= x[c] < v:
        c += 1
    return c


def negative_places(x, v):
    c = -1
    while x[c] != v:
        c -= 1
    return c


def around_zero(x, v):
    c = 1
    while x[c] != v:
        c -= 1
    return c


def in_two(a, v):
    i, j = 0, 0
    while a[i, j] < v:
        j += 1
        if j == a.shape[1]:
            i, j = i + 1, 0
    return i, j


def along_diagonal(a, v):
    i = 0
    while a[i, i] < v:
        i += 1
    return i


def staircase(a, v):
    i, j = 0, a.shape[1] - 1
    while a[i, j] != v:
        if a[i, j] > v:
            j -= 1
        else:
            i += 1
    return i, j


def row_by_row(a, v):
    i = 0
    while a[i].sum() < v:
        i += 1
    return i


def nested(x, y, v):
    n, i = 0, 0
    while x[i] < v:
        j = 0
        while y[j] < x[i]:
            j += 1
        n += j
        i += 1
    return n


def nested_in_for(x, y):
    n = 0
    for i in range(len(x)):
        j = 0
        while y[j] < x[i]:
            j += 1
        n += j
    return n


def nested_twice(x, y, v):
    n = 0
    for i in range(len(x)):
        for k in range(i):
            j = k
            while y[j] < x[i] + v:
                j += 1
            n += j
    return n


def for_in_while(x, v):
    i, s = 0, 0
    while s < v:
        for k in range(3):
            s += x[i + k]
        i += 1
    return i, s


def one_after_other(x, v):
    i = 0
    while x[i] < v:
        i += 1
    while x[i] > -v:
        i += 1
    return i


def in_branch(x, v):
    c = 0
    if x[0] > 0:
        while x[c] < v:
            c += 1
    else:
        while x[c] > -v:
            c += 1
    return c


def no_turn(x, v):
    c = 0
    while c > v:
        c += x[c + 50]
    return c


def started_beyond(x, v):
    c = x[0]
    while x[c] > v:
        c += 1
    return c


def filled(x, v):
    c = 0
    while x[c] != 0:
        x[c] = v
        c += 1
    return c


def filled_later(x, v):
    c = 0
    while c < x[2] + 100:
        x[0] += 1
        c += 1
        x[1] = x[c] + v
    return c


def filled_before(x, y):
    c, k = 0, 0
    while k >= 0:
        y[c % 2] = c + 10
        k = x[c]
        y[2] = k
        c += 1
    return c


def filled_in_nested(x, y):
    i = 0
    while i < 6:
        y[i % 3] += 1
        j = 0
        while x[j] < i:
            y[2] += 1
            j += 1
        y[0] += j
        i += 1


def filled_in_for(x, y):
    for i in range(6):
        y[i % 3] += 1
        j = 0
        while x[j] < i:
            j += 1
        y[0] += 10 * j


def filled_in_branch(x, y):
    c = 0
    while c < y[3] + 9:
        if x[c] > 1:
            y[1] = x[c]
            y[0] += x[c + 1]
        else:
            y[2] += 1
        c += 1


def insertion(x):
    for i in range(1, len(x)):
        key, j = x[i], i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key


def unguarded_insertion(x):
    for i in range(1, len(x)):
        key, j = x[i], i - 1
        while x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key


def sieve(x):
    p = 2
    while p * p < len(x):
        if x[p] == 0:
            k = p * p
            while k < len(x):
                x[k] = 1
                k += p
        p += 1


def counted_runs(x):
    n, i = 0, 0
    while i < len(x):
        j = i
        while j < len(x) and x[j] == x[i]:
            j += 1
        n += 1
        i = j
    return n


def jumps(x):
    at, n = 0, 0
    while at < len(x) - 1 and n < 50:
        at += x[at]
        n += 1
    return at, n
