# SPDX-License-Identifier: Apache-2.0
"""What float, int, bool and item take out of arrays are numbers of Python's."""

# What a traced function is given has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportUnknownLambdaType=false
# pyright: reportUnnecessaryIsInstance=false, reportUnusedFunction=false

from __future__ import annotations

import copy
import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import NfuserError

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.array([0.5, -2.75, 7.0, 3.25], np.float32)
Y = np.array([1.5, -2.25, 3.5, 0.25])
N = np.array([250, 3, 7, 255], np.uint8)
M = np.array([3, -2, 7, 9])


def taken(x, y, n, m):
    return (
        *(float(x[1]), int(x[1]), bool(x[0]), float(n[0]), int(n.sum()), int(n[3])),
        *(x.sum().item(), n[0].item(), (x > 1).any().item(), n.item(1), x[0].tolist()),
        *(int(x.argmax()), x[:1].item(), x.reshape(2, -1).item(1, 0)),
        *(float(int(n[0])), int(float(y[0])), int(bool(n[0])), float(x[0] > 0)),
        *(int(m[0] + 2**60), int(m.astype(np.uint64)[0]), float(m[1]), int(x[0] > 0)),
        *(round(y[2]), round(float(y[1])), math.floor(y[0]), math.ceil(x[1])),
        *(round(int(n[0])), round(bool(x[0])), math.trunc(float(y[1]))),
    )


def weak(x, y, n, m):
    v, k, b = float(y.sum()), int(m[0]), bool(x[0] > 0)
    return (
        *(x * v, n + int(n[1] % 3), m * k, x + k, y * k, n * v, np.float32(2) * v),
        *(x[0] * v, x[0] + k, m[0] * v, v * n[0], x * (b * 2), b * y, x * v.real),
        *(x.astype(np.float16) * v, np.array([1, 2]) * v, np.where(x > 0, x, v)),
        *(np.clip(x, 0, v * v), np.minimum(x, v), np.full_like(x, v)),
    )


def computed(x, y, n, m):
    v, w, k = float(x[0]), float(y[1]), int(n[0])
    return (
        *(v / w, v // w, v % w, divmod(v, w), k / 7, k // 7, k % 7, divmod(-k, 7)),
        *(k // -7, v / k, k / w, 7 // v, v / len(x), len(x) - k, len(x) // int(n[1])),
        *(v**2, v**-1, v**0, k**2, k**3, -(v**2), 0.9 ** int(n[1]), pow(k, 2)),
        *(k >> 1, int(m[1]) >> 70, k & 6, k | 1, k ^ 5, ~k, abs(w), -k, +v, not v),
        *(v == k, v < k, 0 <= k <= 255, (v, k) == (v, k), v > 0 and k > 3, v or 1.0),
    )


def truths(x, y, n, m):
    v, w, b = float(x[0]), float(y[0]), bool(x[0] > 0)
    return (
        *((v > 0) + (w > 0), (v > 0) * 3, -(v > 0), sum([v > 0, w > 0, True])),
        *((v > 0) & (w > 0), (v > 0) | 1, (v > 0) == 1, (v > 0) - (w > 0), (v > 0) / 2),
        *(b + 1, b + b, not b, int(b), float(b), 1 if b else 2),
    )


def of_classes(x, y, n, m):
    v, k, b = float(x.sum()), int(n[0]), bool(x[0] > 0)
    return (
        *(isinstance(v, float), isinstance(k, int), isinstance(b, bool)),
        *(isinstance(b, int), isinstance(v, np.ndarray), isinstance(k, float)),
        *(isinstance(k, numbers.Integral), isinstance(v, numbers.Real)),
        *(type(v) is float, type(k) in (int, float), type(b) is bool, type(v)(3)),
        *(v.imag, k.imag, v.conjugate(), copy.copy(v) * x, copy.deepcopy(k)),
    )


def listed(x, y, n, m):
    v, k, b = float(x[0]), int(n[0]), bool(x[0])
    return (
        *(np.array([v, 1]), np.array([k, 2]), np.array([b, True]), np.array([k, v])),
        *(np.array([v, x[0]]), np.asarray(v), np.array([[v, v], [k, k]]), np.array(k)),
        *(np.array([b, 2]), np.array([v], np.float32), np.array([v, v], dtype=int)),
        *([v, (k, {"b": b})], [float(a) for a in y], np.sqrt(abs(v)), np.add(k, 1)),
    )


def extremes(x, y, n, m):
    return (
        *(max(float(x[0]), float(x[1])), min(int(n[0]), int(n[1]), 5)),
        *(max(float(y[0]), 0.0), max([float(v) for v in x]), min(map(abs, y))),
        max((int(v) for v in n), key=lambda k: -k),
    )


def ordinary(x, y, n, m):
    return (
        *(int("ff", base=16) * x, int("12"), 0, float("1.5"), 0.0, False),
        *(int("7", 8), bool([]), int(3.7), int(b"12"), float(len(x)), float(True)),
    )


def iterated(x, y, n, m):
    u, err, count, seen = np.zeros(20), 1.0, 0, []
    u[0] = float(y[2])
    while err > 1e-3 and count < 1000:
        v = u.copy()
        v[1:-1] = 0.5 * (u[:-2] + u[2:])
        err = float(np.abs(v - u).max())
        u = v
        count += 1
    for _ in range(5):
        y = y * 0.5
        seen.append(float(np.abs(y).max()))
    return u, err, count, np.array(seen), seen[-1]


def conjugate_gradients(x, y, n, m):
    a = np.diag(y * y + 1) + 0.1
    z, r, p, count = y * 0, y, y, 0
    before = float(r @ r)
    while before > 1e-12 and count < 100:
        ap = a @ p
        step = before / float(p @ ap)
        z, r = z + step * p, r - step * ap
        after = float(r @ r)
        p, before, count = r + (after / before) * p, after, count + 1
    return z.round(6), count


def counted(x, y, n, m):
    low, high = float(y.min()), float(y.max())
    bins, total, best, at = np.zeros(8, int), 0, float(y[0]), 0
    for v in y:
        bins[min(int((v - low) / ((high - low) / 8)), 7)] += 1
    for k in range(len(m)):
        total += int(m[k]) + int(n[k])
        if y[k] > best:
            best, at = float(y[k]), k
    digits, rest = 0, int(n[0])
    while rest > 0:
        digits, rest = digits + rest % 10, rest // 10
    for k in range(int(np.ceil(abs(y).max()))):
        total += k
    return bins, total, best, at, digits


def stored(x, y, n, m):
    x[0], n[1], m[0] = float(y[0]), int(n[0]) // 2, float(y[0])
    i, j = int(x.argmax()), int(x.argmin())
    x[i], x[j] = float(x[j]), float(x[i])
    y += float(x[0])
    y[int(y.argmax())] = int(m[1])
    return x[i], x[-i - 1]


SAME = [
    *(taken, weak, computed, truths, of_classes, listed, extremes, ordinary),
    *(iterated, conjugate_gradients, counted, stored),
]


def _flat(found: Any) -> list[Any]:
    if isinstance(found, dict):
        return _flat(list(found.values()))
    if isinstance(found, (list, tuple)):
        return [type(found), *(x for part in found for x in _flat(part))]
    return [found]


@pytest.mark.parametrize("function", SAME, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_they_are_what_python_makes_of_them(
    function: Callable[..., Any], backend: str
) -> None:
    fused = nfuser.fuse(function, backend=backend)
    more = [np.r_[a[1:], a[:1], a[:2]] for a in (X, Y, N, M)]
    for given in ((X, Y, N, M), (-X, Y + 1, N, abs(M)), (more[0], more[1] - 3, N, M)):
        ours, theirs = ([a.copy() for a in given] for _ in range(2))
        found, wanted = _flat(fused(*ours)), _flat(function(*theirs))
        for a, b in zip([*found, *ours], [*wanted, *theirs], strict=True):
            assert type(a) is type(b)
            if not isinstance(a, type):
                assert np.asarray(a).dtype == np.asarray(b).dtype
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


RAISING = {
    "no number": (lambda y: int(y[0] * np.nan), ValueError),
    "an infinite one": (lambda y: int(np.inf * y[0]), OverflowError),
    "rounded": (lambda y: round(float(y[0] * np.nan)), ValueError),
    "a quotient": (lambda y: 1 / float(y[0] * 0), ZeroDivisionError),
    "a whole quotient": (lambda y: int(y[0]) // int(y[0] * 0), ZeroDivisionError),
    "a remainder": (lambda y: float(y[0]) % float(y[1] * 0), ZeroDivisionError),
    "an inverse": (lambda y: float(y[0] * 0) ** -1, ZeroDivisionError),
    "a square": (lambda y: (float(y[0]) * 1e200) ** 2, OverflowError),
    "a narrow dtype": (lambda y: N + (int(y[0]) + 300), OverflowError),
}


@pytest.mark.parametrize("name", RAISING)
def test_a_call_raises_where_python_does(name: str) -> None:
    function, error = RAISING[name]
    with pytest.raises(error):
        function(Y)
    with pytest.raises(error):
        nfuser.fuse(function)(Y)


def whole(y: Any, more: int) -> Any:
    return y[0].astype(int) + more


BEYOND = {
    "a large float": lambda y: int(y[0] * 1e300),
    "a sum": lambda y: (
        int(M[0] + y.astype(int)[0] + 2**62) + int(y.astype(int)[0] + 2**62)
    ),
    "a product": lambda y: (
        int(y.astype(int)[0] + 2**40) * int(y.astype(int)[0] + 2**40)
    ),
    "a power": lambda y: int(y.astype(int)[0] + 2**40) ** 2,
    "a comparison": lambda y: int(y.astype(int)[0] + 2**53) < float(y[0]),
}


@pytest.mark.parametrize("name", BEYOND)
def test_integers_of_more_than_64_bits_raise(name: str) -> None:
    with pytest.raises(OverflowError):
        nfuser.fuse(BEYOND[name])(Y)


def test_no_turn_adds_up_to_more_than_64_bits() -> None:
    def total(m: Any) -> Any:
        found = 0
        for k in range(len(m)):
            found += int(m[k])
        return found

    fused = nfuser.fuse(total)
    assert fused(M) == total(M)
    assert fused(M[:0]) == 0
    with pytest.raises(OverflowError):
        fused(np.full(100, 2**61))


REFUSED = {
    "text": (lambda y: len(f"{float(y[0])}"), "make text of what the call returns"),
    "a format": (lambda y: len(f"{int(y[0]):3d}"), "make text of what the call"),
    "str": (lambda y: len(str(float(y[0]))), "make text of what the call returns"),
    "repr": (lambda y: len(repr([float(y[0])])), "make text of what the call"),
    "a list": (lambda y: [1.0] * int(y[0]), "for a list that is computed with"),
    "an item": (lambda y: [1.0, 2.0][int(y[0])], "an index asks for the value"),
    "a size": (lambda y: np.zeros(int(y[0])), "pass what is to be a size"),
    "a slice": (lambda y: y[: int(y[0])], "pass the number as an argument"),
    "decimals": (lambda y: round(float(y[0]), 2), r"write np.round\(x, digits\)"),
    "math": (lambda y: math.sqrt(float(y[0])), r"write np.sqrt\(x\)"),
    "a key": (lambda y: {int(y[0]): 1}, "a traced array has no hash"),
    "an integer or a float": (lambda y: max(0, float(y[0])), "write np.maximum"),
    "a root": (lambda y: float(y[0]) ** 0.5, r"or np.power\(x, y\)"),
    "a power of two": (lambda y: 2 ** int(y[0]), r"or np.power\(x, y\)"),
    "a negative power": (lambda y: int(y[0]) ** -1, r"or np.power\(x, y\)"),
    "a shift": (lambda y: int(y[0]) << 2, "write np.left_shift"),
    "a method": (lambda y: float(y[0]).is_integer(), "asks for the value"),
    "a complex number": (lambda y: float(y[0] * 1j), r"leave float\(\) out"),
    "several": (lambda y: float(y), r"leave float\(\) out"),
    "called elsewhere": (lambda y: list(map(float, y)), r"leave float\(\) out"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_hangs_on_the_number_is_refused(name: str) -> None:
    function, message = REFUSED[name]
    with pytest.raises(NfuserError, match=message):
        nfuser.fuse(function)(Y)


def test_who_catches_what_a_first_trace_asks_has_the_number() -> None:
    def caught(y: Any) -> Any:
        try:
            return float(y[0])
        except TypeError:
            return -1.0

    assert nfuser.fuse(caught)(Y) == 1.5


def test_they_are_known_where_they_hang_on_numbers_alone() -> None:
    def sized(x: Any, s: Any) -> Any:
        return x[int(s * 2) :], np.zeros(int(s * 3)), float(len(x)) * s, f"{s}" == "1.0"

    fused = nfuser.fuse(sized)
    for s in (0.7, 1.0):
        for a, b in zip(fused(X, s), sized(X, s), strict=True):
            np.testing.assert_array_equal(a, b)


def test_derivatives_and_rows_go_through_them() -> None:
    slope = nfuser.fuse(nfuser.grad(lambda y: float((y * y).sum()) * int(y[2])))
    np.testing.assert_allclose(slope(Y), 2 * Y * 3)
    rows = nfuser.fuse(nfuser.vmap(lambda y: y / float(y.sum()) + 1 / float(y[0])))
    square = np.stack([Y, Y + 1])
    wanted = square / square.sum(1)[:, None] + 1 / square[:, :1]
    np.testing.assert_allclose(rows(square), wanted)
    with pytest.raises(ZeroDivisionError):
        rows(np.stack([Y, Y - Y[0]]))
