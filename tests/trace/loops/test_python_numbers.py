# SPDX-License-Identifier: Apache-2.0
"""Python's max, min, any and all take what is listed of elements of arrays."""

# What a traced function is given has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.array([0.5, -2.75, 7.0, 3.25], np.float32)
N = np.array([250, 3, 7, 255], np.uint8)


def extremes(x: Any, n: Any) -> Any:
    some = [x, x[::-1] * 2, x * x]
    counts = {v: (n > v).sum() for v in (3, 100, 7)}
    return (
        *(max(a.max() for a in some), min([a.min() for a in some]), max(x), min(n)),
        *(max(counts, key=counts.__getitem__), min((2, 1, 3), key=lambda k: x[k])),
        *(max(range(len(x)), key=lambda k: x[k]), max(x, key=abs), min(n, default=3)),
        *(max([1, 2], default=0), max([], default=7), max(3, len(x)), len(min("yx"))),
    )


def truths(x: Any, n: Any) -> Any:
    rows = [any(a > b for b in n) for a in n]
    return (
        *(any(v > 6 for v in x), all(v > -2 for v in x), any([True, x[0] > 1])),
        *(all(v > -3 for v in x), any([]), any(x < -2), all((n[0] > 3, n[1] < 5))),
        *(any(0 < v < 1 or w > 250 for v, w in zip(x, n, strict=True)), *rows),
        *(not any(v > 6 for v in x), 1 if all(not v < 0 for v in x) else 2),
        all(any(a > b for b in x) for a in x),
    )


def halved(x: Any, n: Any) -> Any:
    count = 0
    while any(v > 1 for v in x) and count < 1000:
        x = x * 0.5
        count += 1
    for k in range(len(n)):
        if all(n[k] != x[j] for j in range(4)):
            n[k] = max(n[j] for j in range(4))
    return x, count, n


@pytest.mark.parametrize("function", [extremes, truths, halved])
@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_what_is_listed_is_compared_as_by_python(
    function: Callable[..., Any], backend: str
) -> None:
    fused = nfuser.fuse(function, backend=backend)
    for x, n in ((X, N), (X[::-1].copy(), N), (-X, N[::-1].copy())):
        found, wanted = fused(x, n.copy()), function(x, n.copy())
        for a, b in zip(found, wanted, strict=True):
            assert type(a) is type(b)
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_array_equal(a, b)


def test_what_python_might_not_come_to_has_no_effect() -> None:
    seen: list[int] = []

    def noted(k: int) -> bool:
        seen.append(k)
        return k > 5

    def first(x: Any) -> Any:
        return any([noted(7), x[0] > 0]), all(v > -9 for v in x)

    def later(x: Any) -> Any:
        return any(noted(k) if k else x[0] > 0 for k in range(2))

    assert nfuser.fuse(first)(X) == (True, True)
    seen.clear()
    with pytest.raises(nfuser.NfuserError, match=r"append"):
        nfuser.fuse(later)(X)
    assert not seen


def written(x: Any, k: int) -> Any:
    x[k] = 9
    return x[k] > 100


def writing(x: Any) -> Any:
    return any(written(x, k) for k in range(4))


def naming(x: Any) -> Any:
    return any((last := v) > 3 for v in x), last


def asked_again(x: Any) -> Any:
    each = iter([x[0], x[1], x[2]])
    return any(v > 0 for v in each), len(list(each))


def by_name(x: Any) -> Any:
    found = (v > 0 for v in x)
    return any(found), len(list(found))


def generated(x: Any) -> Any:
    seen: list[int] = []

    def each() -> Any:
        for k in range(4):
            seen.append(k)
            yield x[k] > 0

    return any(each()), len(seen)


def rows(x: Any) -> Any:
    return max([x, x + 1], key=lambda row: row.sum())


@pytest.mark.parametrize(
    "function", [writing, naming, asked_again, by_name, generated, rows]
)
def test_an_end_that_is_not_known_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match=r"write any|write np\.argmax|use where"):
        nfuser.fuse(function)(X.copy())
