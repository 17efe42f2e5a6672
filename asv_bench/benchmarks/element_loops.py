# SPDX-License-Identifier: Apache-2.0
"""Textbook loops over single elements, as Python runs them: its time over ours.

``python asv_bench/benchmarks/element_loops.py [PREFIX ...]`` prints a row for each,
with ``numba.njit`` of the same function beside it.
"""

from __future__ import annotations

import argparse
import sys
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def histogram(x: Any) -> Any:
    counts = np.zeros(50, np.int64)
    for i in range(len(x)):
        counts[x[i]] += 1
    return counts


def inverse(p: Any) -> Any:
    found = np.zeros(len(p), np.int64)
    for i in range(len(p)):
        found[p[i]] = i
    return found


def roots(parent: Any) -> Any:
    """Paths to a root are halved on the way there."""
    p = parent.copy()
    for i in range(len(p)):
        r = i
        while p[r] != r:
            p[r] = p[p[r]]
            r = p[r]
    return p


def heap(x: Any) -> Any:
    h = x.copy()
    for k in range(1, len(h)):
        i = k
        while i > 0 and h[i] > h[(i - 1) // 2]:
            t = h[i]
            h[i] = h[(i - 1) // 2]
            h[(i - 1) // 2] = t
            i = (i - 1) // 2
    return h


def partition(x: Any) -> Any:
    a = x.copy()
    high = len(a) - 1
    pivot, i = a[high], -1
    for j in range(high):
        if a[j] <= pivot:
            i += 1
            t = a[i]
            a[i] = a[j]
            a[j] = t
    t = a[i + 1]
    a[i + 1] = a[high]
    a[high] = t
    return a


def breadth_first(links: Any) -> Any:
    n = len(links)
    distance, queue = np.full(n, -1), np.zeros(n, np.int64)
    distance[0] = 0
    head, tail = 0, 1
    while head < tail:
        u = queue[head]
        head += 1
        for j in range(links.shape[1]):
            w = links[u, j]
            if distance[w] < 0:
                distance[w] = distance[u] + 1
                queue[tail] = w
                tail += 1
    return distance


def merge(a: Any, b: Any) -> Any:
    found = np.zeros(len(a) + len(b))
    i, j = 0, 0
    for k in range(len(found)):
        if j >= len(b) or (i < len(a) and a[i] <= b[j]):
            found[k] = a[i]
            i += 1
        else:
            found[k] = b[j]
            j += 1
    return found


def counting_sort(x: Any) -> Any:
    begin = np.zeros(51, np.int64)
    for i in range(len(x)):
        begin[x[i] + 1] += 1
    for v in range(50):
        begin[v + 1] += begin[v]
    found = np.zeros(len(x), np.int64)
    for i in range(len(x)):
        v = x[i]
        found[begin[v]] = v
        begin[v] += 1
    return found


def insertion_sort(x: Any) -> Any:
    a = x.copy()
    for i in range(1, len(a)):
        v, j = a[i], i - 1
        while j >= 0 and a[j] > v:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = v
    return a


def sieve(n: int) -> Any:
    is_prime = np.ones(n, np.bool_)
    is_prime[:2] = False
    i = 2
    while i * i < n:
        if is_prime[i]:
            j = i * i
            while j < n:
                is_prime[j] = False
                j += i
        i += 1
    return is_prime


def edit_distance(a: Any, b: Any) -> Any:
    d = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in range(len(a) + 1):
        d[i, 0] = i
    for j in range(len(b) + 1):
        d[0, j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[len(a), len(b)]


def largest_sum(x: Any) -> Any:
    """Of any elements beside each other."""
    best, here = x[0], x[0]
    for i in range(1, len(x)):
        here = max(x[i], here + x[i])
        best = max(best, here)
    return best


def knapsack(weights: Any, values: Any, room: int) -> Any:
    best = np.zeros(room + 1)
    for i in range(len(weights)):
        for r in range(room, -1, -1):
            if weights[i] <= r:
                best[r] = max(best[r], best[r - weights[i]] + values[i])
    return best


def searches(x: Any, wanted: Any) -> Any:
    """The place of each by halves."""
    found = np.zeros(len(wanted), np.int64)
    for k in range(len(wanted)):
        low, high = 0, len(x)
        while low < high:
            middle = (low + high) // 2
            if x[middle] < wanted[k]:
                low = middle + 1
            else:
                high = middle
        found[k] = low
    return found


def run_lengths(x: Any) -> Any:
    values, lengths = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64)
    count = 0
    for i in range(len(x)):
        if i == 0 or x[i] != x[i - 1]:
            values[count] = x[i]
            count += 1
        lengths[count - 1] += 1
    return values, lengths, count


def collatz(n: int) -> Any:
    steps = np.zeros(n, np.int64)
    for i in range(1, n):
        k, count = i, 0
        while k != 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            count += 1
        steps[i] = count
    return steps


def pattern_places(text: Any, pattern: Any) -> Any:
    """By Knuth, Morris and Pratt: whether one ends at each place."""
    m = len(pattern)
    border = np.zeros(m, np.int64)
    k = 0
    for i in range(1, m):
        while k > 0 and pattern[k] != pattern[i]:
            k = border[k - 1]
        if pattern[k] == pattern[i]:
            k += 1
        border[i] = k
    ends = np.zeros(len(text), np.bool_)
    k = 0
    for i in range(len(text)):
        while k > 0 and (k == m or pattern[k] != text[i]):
            k = border[k - 1]
        if pattern[k] == text[i]:
            k += 1
        ends[i] = k == m
    return ends


def window_maxima(x: Any, width: int) -> Any:
    """By a queue of candidates."""
    queue, found = np.zeros(len(x), np.int64), np.zeros(len(x))
    head, tail = 0, 0
    for i in range(len(x)):
        while tail > head and x[queue[tail - 1]] <= x[i]:
            tail -= 1
        queue[tail] = i
        tail += 1
        if queue[head] <= i - width:
            head += 1
        found[i] = x[queue[head]]
    return found


def ising(spins: Any, places: Any, chances: Any) -> Any:
    s, n = spins.copy(), len(spins)
    for k in range(len(places)):
        i, j = places[k, 0], places[k, 1]
        around = s[(i + 1) % n, j] + s[i - 1, j] + s[i, (j + 1) % n] + s[i, j - 1]
        if chances[k] < np.exp(-0.8 * s[i, j] * around):
            s[i, j] = -s[i, j]
    return s


def shortest_paths(weights: Any) -> Any:
    """From the first place to each, by Dijkstra without a heap."""
    n = len(weights)
    distance, done = np.full(n, np.inf), np.zeros(n, np.bool_)
    distance[0] = 0
    for _ in range(n):
        u, least = -1, np.inf
        for v in range(n):
            if not done[v] and distance[v] < least:
                u, least = v, distance[v]
        done[u] = True
        for v in range(n):
            distance[v] = min(distance[v], least + weights[u, v])
    return distance


def cholesky(a: Any) -> Any:
    n = len(a)
    factor = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= factor[i, k] * factor[j, k]
            factor[i, j] = np.sqrt(s) if i == j else s / factor[j, j]
    return factor


def newton_roots(x: Any) -> Any:
    found = np.zeros(len(x))
    for i in range(len(x)):
        r = x[i] + 1.0
        while abs(r * r - x[i]) > 1e-12 * x[i]:
            r = 0.5 * (r + x[i] / r)
        found[i] = r
    return found


def _inputs() -> dict[Callable[..., Any], tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    x, few = rng.normal(size=2000), rng.integers(0, 50, 2000)
    letters = rng.integers(0, 4, (2, 120))
    noise = rng.normal(size=(60, 60))
    return {
        histogram: (few,),
        inverse: (rng.permutation(2000),),
        roots: (np.arange(2000) // 2,),
        heap: (x,),
        partition: (x,),
        breadth_first: (rng.integers(0, 400, (400, 3)),),
        merge: (np.sort(x), np.sort(x[::-1])),
        counting_sort: (few,),
        insertion_sort: (x[:200],),
        sieve: (500,),
        edit_distance: (letters[0], letters[1]),
        largest_sum: (x,),
        knapsack: (rng.integers(1, 40, 40), rng.random(40), 300),
        searches: (np.sort(x), x[:500]),
        run_lengths: (np.sort(few),),
        collatz: (500,),
        pattern_places: (letters.ravel(), np.array([0, 1, 0, 1])),
        window_maxima: (x, 32),
        ising: (
            rng.choice([-1.0, 1.0], (32, 32)),
            rng.integers(0, 32, (2000, 2)),
            rng.random(2000),
        ),
        shortest_paths: (rng.random((60, 60)),),
        cholesky: (noise @ noise.T + 60 * np.eye(60),),
        newton_roots: (x * x,),
    }


INPUTS = _inputs()
NAMES = tuple(function.__name__ for function in INPUTS)


def _named(name: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    function = next(f for f in INPUTS if f.__name__ == name)
    return function, INPUTS[function]


def _checked(fused: Callable[..., Any], name: str) -> None:
    """Compare a call with Python's own."""
    function, given = _named(name)
    found, wanted = fused(*given), function(*given)
    both = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    for one, other in zip(*both, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def _seconds(call: Callable[..., Any], given: tuple[Any, ...]) -> float:
    """Return the median of some calls."""
    call(*given)
    times: list[float] = []
    for _ in range(7):
        begin = perf_counter()
        call(*given)
        times.append(perf_counter() - begin)
    return median(times)


class ElementLoops:
    """The time of plain Python over ours."""

    params = NAMES
    param_names = ("program",)
    timeout = 300.0

    def track_ratio(self, name: str) -> float:
        function, given = _named(name)
        fused = nfuser.fuse(function)
        _checked(fused, name)
        fused(*given)
        return _seconds(function, given) / _seconds(fused, given)


def _rows(names: tuple[str, ...]) -> Iterator[str]:
    from numba import njit

    for name in names:
        function, given = _named(name)
        fused: Any = nfuser.fuse(function)
        begin = perf_counter()
        _checked(fused, name)
        first = perf_counter() - begin
        fused(*given)
        ours = _seconds(fused, given)
        python, numba = (_seconds(f, given) for f in (function, njit(function)))
        yield (
            f"{name} | {first:.2f} | {ours * 1e3:.3f} | {python * 1e3:.3f}"
            f" | {numba * 1e3:.3f} | {python / ours:.0f}"
        )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefixes", nargs="*", default=("",))
    given = tuple(parser.parse_args().prefixes)
    head = "program | first call s | ms | Python ms | Numba ms | Python over ours"
    sys.stdout.write(f"{head}\n")
    for row in _rows(tuple(n for n in NAMES if n.startswith(given))):
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
