# SPDX-License-Identifier: Apache-2.0
"""Loops and branches of plain Python stay what they are, and do what Python does."""

# What a traced function is given has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import MutationError, NfuserError
from tests.trace.loops import helpers

if TYPE_CHECKING:
    from collections.abc import Callable

U = np.random.default_rng(7).random(9)
V = np.random.default_rng(8).random((6, 5))


def jacobi(a: Any, b: Any, steps: Any) -> None:
    for _ in range(1, steps):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


def paths(path: Any) -> Any:
    for k in range(path.shape[0]):
        path = np.minimum(path, path[:, k, None] + path[None, k])
    return path


def until(x: Any, tolerance: float) -> Any:
    error, count = 1.0, 0
    while error > tolerance and count < 1000:
        before = x
        x = (x + 2 / x) / 2
        error = np.abs(x - before).max()
        count += 1
    return x, count


def broken(x: Any, n: Any) -> Any:
    for i in range(n):
        x = x * 0.5 + i
        if x.max() > 20:
            break
    else:
        x = x - 1
    return x, i  # pyright: ignore[reportPossiblyUnboundVariable]


def returned(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = x + 1
        if x.sum() > 50:
            return x * 2
    return x


def continued(x: Any) -> Any:
    for i in range(200):
        if i % 3 == 0:
            continue
        x = x + np.sin(i * 0.1)
    return x


def branched(x: Any) -> Any:
    if x.sum() > 100:
        return x - 1
    if 0 < x[0] < 1 and not x[1] > 5:
        y = x + 1
        x[2] = 7
    elif x[0] > 1 or x[1] > 2:
        y = x * 2
    else:
        y = x
    return y * (2.0 if y.max() > 1 else 3.0)


def nested(u: Any, p: Any, n: Any, inner: Any) -> Any:
    for _ in range(n):
        old = u.copy()
        p = helpers.relaxed(p, old, inner)
        u[1:-1] = old[1:-1] - 0.1 * (p[2:] - p[:-2])
    return u, p


def through_others(x: Any, n: Any) -> Any:
    model = helpers.Model(0.25)
    twice = lambda y: helpers.grown(helpers.grown(y, n), n)  # noqa: E731
    return model.run(twice(x), n)


def forever(x: Any) -> Any:
    count = 0
    while True:
        x = x * 1.5
        count += 1
        if (x > 30).all():
            break
    return x, count


def downwards(x: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n - 1, -1, -2):
        total = 0.5 * total + x[i]
    for i in reversed(range(n)):
        total = 0.5 * total + x[i] * i
    return total


def by_rows(x: Any, n: Any) -> Any:
    y = np.zeros_like(x)
    first = y[0]
    for _ in range(n - 3):
        y[0, 1:n] = 1.0
        for j in range(1, n):
            y[1:n, j] = x[1:n, j] + 0.5 * y[: n - 1, j - 1]
        for j in range(n - 2, 0, -1):
            y[j, 1:n] = x[j, 1:n] - 0.5 * y[j + 1, 1:n]
    return y + first


def growing(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = np.concatenate([x, x])
    return x


def turned(x: Any, n: Any) -> Any:
    a, b = x + 1, x + 2
    for _ in range(n):
        a, b = b, a + b * 0.5
    return a, b


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "arrays of the caller": (jacobi, (U, U * 2, 12)),
    "no turn": (jacobi, (U, U * 2, 1)),
    "a size": (paths, (np.random.default_rng(9).random((7, 7)),)),
    "while": (until, (U + 1, 1e-9)),
    "break": (broken, (U, 500)),
    "else": (broken, (U, 3)),
    "return": (returned, (U, 100)),
    "no return": (returned, (U, 2)),
    "continue": (continued, (U,)),
    "if": (branched, (U,)),
    "elif": (branched, (U + 1,)),
    "return in an if": (branched, (U + 100,)),
    "a helper's loop inside": (nested, (U, U * 0, 5, 4)),
    "methods and lambdas": (through_others, (U, 6)),
    "while True": (forever, (U + 0.1,)),
    "downwards": (downwards, (U, 9)),
    "rows at the counter's place": (by_rows, (V, 5)),
    "sizes that grow": (growing, (U, 3)),
    "values that change places": (turned, (U, 5)),
}


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("name", CASES)
def test_a_plain_loop_gives_what_python_gives(name: str, backend: str) -> None:
    function, args = CASES[name]
    fused = nfuser.fuse(function, backend=backend)
    for _ in range(1 if backend == "interpret" else 3):
        ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
        found, expected = fused(*ours), function(*theirs)
        np.testing.assert_equal(found, expected)
        np.testing.assert_equal(ours, theirs)
    assert fused.cache_info().traces == 1


def test_a_loop_that_only_adds_to_a_part_copies_nothing() -> None:
    def grown(x: Any, y: Any, n: int) -> None:
        for _ in range(n):
            x[1:] += y

    fused = nfuser.fuse(grown)
    x, y, n = np.arange(6.0), np.ones(5), 70
    kernels = fused.kernels(x, y, n)
    (turn,) = (str(k) for k in kernels)
    assert "_body" in turn
    assert "copy(" not in turn
    fused(x, y, n)
    np.testing.assert_array_equal(x, [0, *np.arange(1.0, 6) + n])


def test_ten_and_a_thousand_steps_have_one_trace_and_the_same_kernels() -> None:
    fused = nfuser.fuse(jacobi)
    few, many = ([U.copy(), U.copy(), n] for n in (10, 1000))
    assert len(fused.kernels(*few)) == len(fused.kernels(*many)) < 10
    fused(*few)
    fused(*many)
    assert fused.cache_info().traces == 1


KEPT: list[Any] = []
TABLE: dict[str, Any] = {}


class Counter:
    """Counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    @property
    def next(self) -> int:
        """One more than before."""
        self.count += 1
        return self.count


COUNTER = Counter()


def appends(x: Any, n: Any) -> Any:
    for i in range(n):
        x = x + 1
        KEPT.append(i)
    return x


def prints(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = x + 1
        print("a turn")  # noqa: T201
    return x


def sets(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = x + 1
        COUNTER.count = COUNTER.count + 1
    return x


def writes(x: Any, n: Any) -> Any:
    for i in range(n):
        x = x + 1
        TABLE["i"] = i
    return x


def caught(x: Any, n: Any) -> Any:
    for i in range(n):
        try:
            KEPT.append(i)
        except Exception:  # noqa: BLE001
            x = x + 0
        x = x + 1
    return x


def by_property(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = x + COUNTER.next
    return x


def in_a_helper(x: Any, n: Any) -> Any:
    for i in range(n):
        x = helpers.noted(x, KEPT, i)
    return x


@pytest.mark.parametrize(
    "function", [appends, prints, sets, writes, caught, by_property, in_a_helper]
)
def test_what_lasts_is_done_in_each_turn_or_refused(
    function: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def effects() -> tuple[int, int, int]:
        found = len(KEPT), COUNTER.count, capsys.readouterr().out.count("a turn")
        KEPT.clear()
        TABLE.clear()
        COUNTER.count = 0
        return found

    effects()
    try:
        np.testing.assert_array_equal(nfuser.fuse(function)(U, 5), function(U, 5) * 1)
        first = effects()
        assert all(k in (0, 10) for k in first)
    except NfuserError:  # of what it also reads, and so after all turns
        assert all(k <= 5 for k in effects())
    with pytest.raises(NfuserError, match=r"nfuser\.unroll|call .* before the loop"):
        nfuser.fuse(function)(U, 1000)
    assert all(k <= 5 for k in effects())


def test_a_list_that_the_counter_indexes_is_unrolled() -> None:
    weights = [0.5, 0.25, 2.0]

    def weighted(x: Any, n: Any) -> Any:
        for i in range(n):
            x = x * weights[i]
        return x

    np.testing.assert_array_equal(nfuser.fuse(weighted)(U, 3), weighted(U, 3))


def test_unroll_writes_every_turn_down() -> None:
    def grown(x: Any) -> Any:
        for k in nfuser.unroll(range(80)):
            x = x + k
        return x

    fused = nfuser.fuse(grown)
    np.testing.assert_array_equal(fused(U), grown(U))
    assert len(fused.kernels(U)) == 1


def test_an_array_that_is_bound_anew_is_not_written_through_another_name() -> None:
    def both(x: Any, n: Any) -> Any:
        y = x
        for _ in range(n):
            x[0] = 1
            x = x + y
        return x

    with pytest.raises(NfuserError, match="another name's array"):
        nfuser.fuse(both)(U.copy(), 1000)


def _written_or_bound(x: Any) -> Any:
    y = x * 2
    if y.sum() > 0:
        y[0] = 0
    else:
        y = y * 3
    return y


def _written_and_changed_over(x: Any) -> Any:
    y, z = x * 2, x * 3
    if x[0] > 0:
        y[0] = 0
        y, z = z, y
    else:
        z[0] = 9
    return y, z


def _argument_written_or_bound(x: Any) -> Any:
    if x.sum() > 0:
        x[0] = 0
    else:
        x = x + 1
    return x


@pytest.mark.parametrize(
    "function",
    [_written_or_bound, _written_and_changed_over, _argument_written_or_bound],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_name_that_one_side_binds_anew_has_what_the_other_wrote(
    function: Callable[..., Any], sign: int
) -> None:
    given, other = U * sign, U * sign
    np.testing.assert_allclose(nfuser.fuse(function)(given), function(other))
    np.testing.assert_allclose(given, other)


def test_source_that_changed_is_not_believed(tmp_path: Any) -> None:
    file = tmp_path / "edited_since.py"
    text = "def f(x, n):\n    for i in range(n):\n        x = x + 1\n    return x\n"
    space: dict[str, Any] = {"__name__": "edited_since"}
    exec(compile(text, str(file), "exec"), space)  # noqa: S102
    file.write_text(text.replace("+ 1", "+ 2"))
    np.testing.assert_array_equal(nfuser.fuse(space["f"])(U, 3), U + 1 + 1 + 1)


def written_after_a_choice(x: Any) -> Any:
    b = x * 2
    r = b if x[0] > 0 else b * 2
    b[0] = 7
    return r


def written_after_a_branch(x: Any) -> Any:
    b = x * 2
    if x[0] > 0:
        r = b[1:]
    else:
        r = b[1:] * 2
    b += 1
    return r * 2


def written_after_a_loop(x: Any) -> Any:
    b = x * 2
    k = b
    for _ in range(200):
        if x[0] > 2:
            b = b + x
    k[0] = 100
    return b


@pytest.mark.parametrize(
    "function", [written_after_a_choice, written_after_a_branch, written_after_a_loop]
)
def test_what_may_be_a_written_array_is_not_read(function: Callable[..., Any]) -> None:
    fused = nfuser.fuse(function)
    with pytest.raises(MutationError, match="write y = y \\+ 1 instead"):
        fused(np.arange(4.0))


def read_before_the_write(x: Any) -> Any:
    y = x if x[0] > 2 else x * 2
    z = y * 3
    x[0] = 9
    return z


def written_on_the_other_side(x: Any) -> Any:
    if x.sum() > 100:
        y = x + 1
        x[2] = 7
    else:
        y = x if x[0] > 1 else x * 2
    return y * 2


@pytest.mark.parametrize("function", [read_before_the_write, written_on_the_other_side])
@pytest.mark.parametrize("scale", [1.0, -1.0, 100.0])
def test_what_was_not_written_then_is_read(
    function: Callable[..., Any], scale: float
) -> None:
    ours, theirs = (np.arange(1.0, 5.0) * scale for _ in range(2))
    np.testing.assert_array_equal(nfuser.fuse(function)(ours), function(theirs))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("start", [np.float64(3.0), np.float32(3), np.int64(3)])
def test_a_number_of_numpy_s_is_bound_anew_in_each_turn(start: Any) -> None:
    def counted(x: Any, n: Any) -> Any:
        s = start
        for _ in range(n):
            s += 2
        return s * x

    def chosen(x: Any, n: Any) -> Any:
        s = start
        for i in range(n):
            if x[i] > 0:
                s -= 1
        return s, x[0]

    x = np.array([1.0, -1.0, 2.0, 3.0], np.float32)
    for function in (counted, chosen):
        for one, other in zip(
            np.atleast_1d(nfuser.fuse(function, backend="interpret")(x, 4)),
            np.atleast_1d(function(x, 4)),
            strict=True,
        ):
            assert one == other


def test_rows_that_a_library_writes_elements_of_are_copied_to_their_place() -> None:
    def placed(u: Any, x: Any) -> Any:
        for k in range(1, u.shape[1]):
            row = x[k] * 1
            row[k, 0] = 1.0
            u[k] = row
        return u

    u, x = np.zeros((8, 5, 8)), np.random.default_rng(0).random((8, 5, 8))
    wanted = placed(u.copy(), x)
    for backend in ("interpret", "cpu"):
        found = nfuser.fuse(placed, backend=backend)(u.copy(), x)
        np.testing.assert_array_equal(found, wanted)
