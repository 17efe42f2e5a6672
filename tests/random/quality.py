# SPDX-License-Identifier: Apache-2.0
"""Judge a billion numbers of stream 1: ``python -m tests.random.quality [COUNT]``.

Uniform numbers: moments, chi-square and Kolmogorov-Smirnov's distance over 4096 bins,
serial correlation at lags 1 to 8, lengths of gaps between small ones. Normal numbers,
fused: moments, and chi-square over bins. With ``--halves`` the words of 16 bits that
dropout takes, in the order of its elements: chi-square over all their values and over
pairs of neighbours, moments, serial correlation, and for each of three probabilities
how many are dropped and the gaps between them. A p-value below 1e-5 fails. ``--words``
writes raw words to standard output without end, for a battery that reads them, such
as ``dieharder -a -g 200``.
"""

# Numba and SciPy carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from typing import Any

import numba
import numpy as np
from scipy import stats

import nfuser
from nfuser.random.distributions.normal import standard_normal
from tests.random.philox import words

CHUNK = 2**24
LAGS = 8
BINS = 4096
LONGEST = 200
SMALL = 28  # a word whose bits from here on are 0 ends a gap: one in 16
EDGES = np.linspace(-6, 6, 481)
KEY = 0x0123456789ABCDEF
FAILS_BELOW = 1e-5
RATES = 0.1, 0.25, 0.5

Array = Any


@numba.njit(cache=False)
def make(found: Array, key: int, call: int, first: int) -> None:
    """Fill with the 32-bit words of blocks from ``first`` on."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    for block in range(found.size // 4):
        at = np.uint64(first + block)
        c0, c1 = at & low, at >> half
        c2, c3 = np.uint64(call) & low, np.uint64(call) >> half
        k0, k1 = np.uint64(key) & low, np.uint64(key) >> half
        for _ in range(10):
            left, right = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
            c0, c1 = (right >> half) ^ c1 ^ k0, right & low
            c2, c3 = (left >> half) ^ c3 ^ k1, left & low
            k0 = (k0 + np.uint64(0x9E3779B9)) & low
            k1 = (k1 + np.uint64(0xBB67AE85)) & low
        found[4 * block] = c0
        found[4 * block + 1] = c1
        found[4 * block + 2] = c2
        found[4 * block + 3] = c3


@numba.njit(cache=False)
def count(found: Array, bins: Array, gaps: Array, gap: int) -> int:
    """Count words by their leading bits, and gaps by length; return the open gap."""
    for word in found:
        bins[word >> 20] += 1
        if word >> SMALL:
            gap += 1
        else:
            gaps[min(gap, LONGEST)] += 1
            gap = 0
    return gap


def sums(u: Array) -> Array:
    """Return sums of powers 1 to 4 of centred numbers, then those of products."""
    powers = [np.mean(u**k, dtype=np.float64) for k in range(1, 5)]
    lagged = [np.mean(u[:-k] * u[k:], dtype=np.float64) for k in range(1, LAGS + 1)]
    return np.array([*powers, *lagged])


def p_of_mean(mean: float, law_mean: Any, law_deviation: Any, n: int) -> float:
    """Return how likely a mean is as far off, or further."""
    return float(2 * stats.norm.sf(abs(mean - law_mean) / law_deviation * np.sqrt(n)))


@nfuser.fuse
def as_normal(word: Array) -> Array:
    """Return the normal numbers of 32-bit words."""
    return standard_normal(lambda bits, slot=0: word, np.float32)


@nfuser.fuse
def centred(word: Array) -> Array:
    """Return 32-bit words as numbers from -1/2 to 1/2."""
    return (word.astype(np.float64) + 0.5) * 2.0**-32 - 0.5


def judge(total: int) -> dict[str, float]:
    """Return a p-value for each question asked of ``total`` numbers."""
    chunks = max(1, total // CHUNK)
    n = chunks * CHUNK
    bins, gaps = np.zeros(BINS, np.int64), np.zeros(LONGEST + 1, np.int64)
    cells = np.zeros(EDGES.size - 1, np.int64)
    found, gap = np.empty(CHUNK, np.uint32), 0
    uniform_sums, normal_powers = np.zeros(4 + LAGS), np.zeros(4)
    for number in range(chunks):
        make(found, KEY, 1, number * CHUNK // 4)
        gap = count(found, bins, gaps, gap)
        uniform_sums += sums(centred(found))
        z = as_normal(found).astype(np.float64)
        normal_powers += [np.mean(z**k) for k in range(1, 5)]
        cells += np.histogram(z, EDGES)[0]
    even = n / BINS
    steps = np.cumsum(bins) / n - np.arange(1, BINS + 1) / BINS
    lengths = stats.geom.pmf(np.arange(1, LONGEST + 1), 1 / 16)
    expected = np.append(lengths, 1 - lengths.sum()) * gaps.sum()
    shares = np.diff(stats.norm.cdf(EDGES))
    shares = shares / shares.sum() * cells.sum()
    often = shares > 20
    rest = [cells[~often].sum(), shares[~often].sum()]
    answers = {
        "uniform: chi-square": float(
            stats.chi2.sf(((bins - even) ** 2).sum() / even, BINS - 1)
        ),
        "uniform: Kolmogorov-Smirnov": float(
            stats.kstwobign.sf(np.abs(steps).max() * np.sqrt(n))
        ),
        "uniform: gaps": float(stats.chisquare(gaps, expected).pvalue),
        "normal: chi-square": float(
            stats.chisquare(
                np.append(cells[often], rest[0]), np.append(shares[often], rest[1])
            ).pvalue
        ),
    }
    for k in range(1, 5):
        mean, square = _central(k), _central(2 * k)
        answers[f"uniform: moment {k}"] = p_of_mean(
            uniform_sums[k - 1] / chunks, mean, np.sqrt(square - mean**2), n
        )
        mean, square = stats.norm.moment(k), stats.norm.moment(2 * k)
        answers[f"normal: moment {k}"] = p_of_mean(
            normal_powers[k - 1] / chunks, mean, np.sqrt(square - mean**2), n
        )
    for k in range(1, LAGS + 1):
        answers[f"uniform: correlation at lag {k}"] = p_of_mean(
            uniform_sums[3 + k] / chunks, 0.0, 1 / 12, n
        )
    return answers


@numba.njit(cache=False)
def count_drops(halves: Array, bound: int, gaps: Array, gap: int) -> int:
    """Count gaps between words below a bound by length; return the open one."""
    for half in halves:
        if half >= bound:
            gap += 1
        else:
            gaps[min(gap, gaps.size - 1)] += 1
            gap = 0
    return gap


@numba.njit(cache=False)
def count_halves(halves: Array, bins: Array, pairs: Array, lagged: Array) -> None:
    """Count values and pairs of leading bytes; add exact products of neighbours."""
    for k in range(halves.size):
        bins[halves[k]] += 1
    for k in range(halves.size - LAGS):
        pairs[k & 1, halves[k] >> 8, halves[k + 1] >> 8] += 1
        here = 2 * np.int64(halves[k]) - 65535
        for lag in range(LAGS):
            lagged[lag] += here * (2 * np.int64(halves[k + lag + 1]) - 65535)


def judge_halves(total: int) -> dict[str, float]:
    """Return a p-value for each question asked of ``total`` words of 16 bits."""
    chunks = max(1, total // (2 * CHUNK))
    n = 2 * CHUNK * chunks
    bins, pairs = np.zeros(65536, np.int64), np.zeros((2, 256, 256), np.int64)
    lagged, found = np.zeros(LAGS, np.int64), np.empty(CHUNK, np.uint32)
    gaps = {p: np.zeros(round(20 / p), np.int64) for p in RATES}
    open_gaps = dict.fromkeys(RATES, 0)
    for number in range(chunks):
        make(found, KEY, 3, number * CHUNK // 4)
        halves = found.view(np.uint16)  # the low half comes first
        count_halves(halves, bins, pairs, lagged)
        for p in RATES:
            bound = round(p * 65536)
            open_gaps[p] = count_drops(halves, bound, gaps[p], open_gaps[p])
    answers = {
        "halves: chi-square": float(stats.chisquare(bins).pvalue),
        "halves: pairs of one word": float(stats.chisquare(pairs[0].ravel()).pvalue),
        "halves: pairs of two words": float(stats.chisquare(pairs[1].ravel()).pvalue),
    }
    values = (2.0 * np.arange(65536) - 65535) / 65536
    for k in range(1, 5):
        mean, square = np.mean(values**k), np.mean(values ** (2 * k))
        answers[f"halves: moment {k}"] = p_of_mean(
            float(np.dot(bins, values**k)) / n, mean, np.sqrt(square - mean**2), n
        )
    counted = n - LAGS * chunks
    for k in range(LAGS):
        answers[f"halves: correlation at lag {k + 1}"] = p_of_mean(
            lagged[k] / 65536**2 / counted, 0.0, np.mean(values**2), counted
        )
    for p in RATES:
        often, seen = round(p * 65536) / 65536, gaps[p]
        answers[f"halves: dropped with {p}"] = p_of_mean(
            seen.sum() / n, often, np.sqrt(often * (1 - often)), n
        )
        lengths = stats.geom.pmf(np.arange(1, seen.size), often)
        expected = np.append(lengths, 1 - lengths.sum()) * seen.sum()
        kept = expected > 20
        answers[f"halves: gaps with {p}"] = float(
            stats.chisquare(
                np.append(seen[kept], seen[~kept].sum()),
                np.append(expected[kept], expected[~kept].sum()),
            ).pvalue
        )
    return answers


def _central(power: int) -> float:
    """Return a central moment of the uniform distribution."""
    return 0.0 if power % 2 else 0.5**power / (power + 1)


def stream() -> None:
    """Write raw words until the reader closes."""
    found = np.empty(2**18, np.uint32)
    for number in range(2**40):
        make(found, KEY, 2, number * found.size // 4)
        sys.stdout.buffer.write(found.tobytes())


def main(arguments: list[str]) -> int:
    """Print each question's p-value; return how many failed."""
    sample = np.empty(4096, np.uint32)
    make(sample, KEY, 1, 0)
    assert (sample == words(KEY, 1, 0, (4096,), 32)).all()
    assert (sample.view(np.uint16) == words(KEY, 1, 0, (8192,), 16)).all()
    if "--words" in arguments:
        stream()
    numbers = [int(float(x)) for x in arguments if not x.startswith("-")]
    judged = judge_halves if "--halves" in arguments else judge
    answers = judged(numbers[0] if numbers else 10**9)
    for question, p in answers.items():
        verdict = "fails" if p < FAILS_BELOW else "passes"
        sys.stdout.write(f"{question:36} p = {p:8.6f} {verdict}\n")
    return sum(p < FAILS_BELOW for p in answers.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
