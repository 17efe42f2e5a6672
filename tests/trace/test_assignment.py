# SPDX-License-Identifier: Apache-2.0
"""Assignment to arrays and parts of them means what it means to NumPy."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, MutationError, ShapeError
from tests.fuzz import assign_programs, write_programs
from tests.fuzz.write_steps import generate


def agree(function: Any, *arrays: Any, backend: str | None = None) -> Any:
    """Hold a function against NumPy: what it returns, and what its arguments hold."""
    fused = nfuser.fuse(function, backend=backend)
    for _ in range(2):  # the second call takes another way
        theirs, mine = [x.copy() for x in arrays], [x.copy() for x in arrays]
        wanted, found = function(*theirs), fused(*mine)
        for one, other in zip((wanted, *theirs), (found, *mine), strict=True):
            if one is not None:
                np.testing.assert_allclose(other, one, rtol=1e-12)
                assert np.asarray(other).dtype == np.asarray(one).dtype
    return fused


X = np.arange(20.0).reshape(4, 5) + 1


def test_parts_of_an_array_made_inside_are_assigned() -> None:
    def borders(x: Any) -> Any:
        y = np.zeros_like(x)
        y[1:-1, 1:-1] = x[1:-1, 1:-1] * 2
        y[0] = x[-1]
        y[:, -1] = 7
        return y + 1

    agree(borders, X)


def test_an_argument_is_written_and_comes_back_as_itself() -> None:
    def step(a: Any, b: Any) -> Any:
        a[1:] += b[1:]
        return a

    fused = agree(step, X, X + 3)
    a = X.copy()
    assert fused(a, X) is a


def test_what_reads_other_elements_reads_them_before() -> None:
    def relax(a: Any) -> None:
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])

    def shifted(a: Any) -> None:
        a[1:] += a[:-1]

    def turned(a: Any) -> None:
        a[:, ::-1] = a

    for function in (relax, shifted, turned):
        agree(function, X)


@pytest.mark.parametrize("size", [31, 32, 33, 255, 257, 1025, 4097])
def test_sums_of_neighbours_are_right_across_the_borders_of_blocks(size: int) -> None:
    def shifted(data: Any) -> None:
        data[1:] += data[:-1]

    agree(shifted, np.arange(float(size)))
    if size < 1000:
        agree(shifted, np.arange(float(size)), backend="interpret")


def test_two_sweeps_write_where_they_belong_and_copy_nothing() -> None:
    def jacobi(a: Any, b: Any) -> None:
        for _ in range(3):
            b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
            a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3

    fused = agree(jacobi, X[0].copy(), X[1].copy())
    assert len(fused.kernels(X[0].copy(), X[1].copy())) == 6
    assert fused.cache_info().compiled <= 3


def test_updates_one_after_another_are_one_kernel() -> None:
    def update(a: Any, b: Any) -> None:
        a += b
        a *= 2
        a[...] = a - b

    fused = agree(update, X, X + 1)
    assert len(fused.kernels(X.copy(), X)) == 1


def test_what_is_assigned_to_a_view_is_assigned_to_the_array() -> None:
    def through(a: Any) -> Any:
        columns = a.T
        columns[1] = 5
        odd = a[1::2]
        odd[:, ::2] *= -1
        first = a[0]
        first += columns[0][0]
        return columns * 1

    agree(through, X)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_arrays_are_exchanged_by_one_statement(backend: str) -> None:
    def exchanged(a: Any, b: Any) -> Any:
        a[:], b[:] = b.copy(), a.copy()
        a[1:], b[:-1] = b[1:] * 2, a[:-1] + 1
        return a - b

    def around(a: Any, b: Any, c: Any) -> Any:
        for i in range(3):
            a[:], b[:], c[:] = b * 2, c + i, a[::-1] - 1
        return a + b * c

    agree(exchanged, X, X[::-1] * 3, backend=backend)
    agree(around, X, X * 2, X[:, ::-1] + 1, backend=backend)


def test_an_array_turned_round_twice_is_updated_where_it_is() -> None:
    def twice(a: Any) -> Any:
        v = a[::-1][::-1]
        v += 1
        v *= 2
        own = a[:2] * 2
        again = own[:, ::-1][:, ::-1]
        again -= 1
        again += a[1]
        return own * 2

    agree(twice, X)


def test_what_is_rolled_as_one_row_is_an_array_of_its_own() -> None:
    def rolled(a: Any) -> Any:
        made = np.roll(a, 2)
        made[0] = 5
        a[1] = made[1] * 2
        made += 1
        return made

    agree(rolled, X)


def test_the_parts_of_complex_arrays_are_assigned() -> None:
    def parts(z: Any) -> Any:
        z.real[1:] = 3
        z.imag[0] = z.real[-1]
        z[:, 0] *= 1j
        return z

    agree(parts, X * (1 + 2j))


def test_an_element_that_was_read_stays_what_it_was() -> None:
    def swap(a: Any) -> Any:
        a[0], a[-1] = a[-1], a[0]
        first, last = a[1], a.T[2]
        a -= first
        kept = [x for x in a[:2]]  # noqa: C416 (it goes over the array)
        a[...] = 0
        return a * last + kept[1]

    def reverse(a: Any) -> Any:
        for k in range(len(a) // 2):
            a[k], a[-1 - k] = a[-1 - k], a[k]
        seen, there = a[0], a[..., 0]
        a[0] = 7
        return seen + there * 100

    for function in (swap, reverse):
        for dtype in (float, np.float32, np.int64, complex):
            agree(function, np.arange(1, 7).astype(dtype))


def test_a_mask_chooses_what_is_assigned() -> None:
    def masked(a: Any, b: Any) -> Any:
        a[a > 5] = 0
        a[b[:, 0] > 6] = b[0]
        y = np.ones_like(a)
        y[a == 0] = 2.5
        return y

    agree(masked, X, X)


def test_values_are_cast_as_numpy_casts_them() -> None:
    def cast(a: Any, b: Any) -> None:
        a[0] = b[0] + 0.75
        a[1] = True
        a[2:] += 2

    agree(cast, np.arange(20).reshape(4, 5), X)
    with pytest.raises(TypeError, match="same_kind"):
        agree(lambda a: a.__iadd__(0.5), np.arange(4))


def test_axes_of_length_one_stretch_and_extra_ones_are_dropped() -> None:
    def stretch(a: Any, b: Any) -> None:
        a[1:] = b[:1]
        a[0] = b[:1] * 2
        a[:, 1:3] = b[:, :1]

    agree(stretch, X, X + 1)
    with pytest.raises(ShapeError, match=r"from shape \(3,\) into shape \(5,\)"):
        nfuser.fuse(lambda a, b: a.__setitem__(0, b))(X.copy(), np.ones(3))


def test_arrays_that_plain_numpy_makes_inside_are_assigned_to() -> None:
    def inside(x: Any) -> Any:
        n, m = x.shape
        y = np.empty((n, m))
        y[1:] = x[1:]
        y[0] = 0
        r = np.zeros((2, 2))
        r[0, 0] = np.sqrt(np.dot(x[0], x[0]))
        s = np.array([1.0, 2.0, 3.0])
        s[1] = x.sum()
        return y, r, s

    fused = nfuser.fuse(inside)
    for shape in ((4, 5), (3, 7)):
        x = np.ones(shape)
        for one, other in zip(inside(x), fused(x), strict=True):
            np.testing.assert_allclose(other, one)
    assert fused.cache_info().traces == 1


def test_lengths_may_differ_from_call_to_call() -> None:
    def step(a: Any) -> None:
        a[1:-1] = a[2:] - a[:-2]

    fused = nfuser.fuse(step)
    for size in (5, 9, 3, 2, 1, 0, 1000):
        mine, theirs = np.arange(float(size)) ** 2, np.arange(float(size)) ** 2
        fused(mine)
        step(theirs)
        np.testing.assert_array_equal(mine, theirs)
    assert fused.cache_info().traces <= 4


def test_strides_of_an_argument_stay_what_they_were() -> None:
    def update(a: Any) -> Any:
        a[1:] *= 2
        return a

    for view in (np.s_[::2, ::-1], np.s_[:, 1:3], np.s_[::-1]):
        mine, theirs = X.copy(), X.copy()
        assert np.shares_memory(nfuser.fuse(update)(mine[view]), mine)
        update(theirs[view])
        np.testing.assert_array_equal(mine, theirs)


def test_what_no_kernel_can_write_is_copied_back() -> None:
    swapped = np.arange(6).astype(">f8")
    raw = np.frombuffer(bytearray(49), np.uint8)[1:].view(np.float64)
    for array in (swapped, raw):
        wanted = array.copy()
        wanted[1:] += 2
        fused = nfuser.fuse(lambda a: (a.__setitem__(np.s_[1:], a[1:] + 2), a)[1])
        assert fused(array) is array
        np.testing.assert_array_equal(array, wanted)


def test_arrays_that_cannot_be_written_are_refused_before_anything_is() -> None:
    def both(a: Any, b: Any) -> None:
        a[0] = 1
        b[0] = 1

    fused = nfuser.fuse(both)
    a, b = np.zeros(3), np.zeros(3)
    b.flags.writeable = False
    with pytest.raises(MutationError, match="read-only"):
        fused(a, b)
    with pytest.raises(ArgumentError, match="share memory"):
        fused(a, a)
    with pytest.raises(MutationError, match="place each"):
        fused(a, np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (0,)))
    assert not a.any()


def test_what_is_assigned_its_own_elements_has_to_be_writable() -> None:
    def part(a: Any) -> Any:
        a[:, :1] = a[:, :1]
        return a.sum()

    def whole(a: Any) -> None:
        a[...] = a

    read_only = np.ones((2, 3))
    read_only.flags.writeable = False
    for function in (part, whole):
        fused = nfuser.fuse(function)
        for a in (read_only, np.broadcast_to(np.arange(3.0), (2, 3))):
            with pytest.raises(MutationError, match="read-only"):
                fused(a)
        agree(function, X)


def test_out_and_operators_write_arguments_and_arrays_made_inside() -> None:
    def update(x: Any) -> Any:
        y = np.zeros((4, 5))
        y += x > 1
        np.exp(x, out=x, where=x < 3)
        np.add(y, x, out=y)
        z = x.T
        z += 1
        return y

    agree(update, X)


def test_calls_that_write_are_served_natively_and_still_refused_where_arrays_meet() -> (
    None
):
    def scale(a: Any, b: Any) -> Any:
        a[1:] = b[1:] * 2
        return a

    fused = nfuser.fuse(scale)
    a, b = np.zeros(9), np.arange(9.0)
    for _ in range(6):
        b += 1
        assert fused(a, b) is a
        np.testing.assert_array_equal(a, scale(np.zeros(9), b))
    assert fused.native_calls >= 3
    memory = np.zeros(16)
    with pytest.raises(ArgumentError, match="share memory"):
        fused(memory[:9], memory[2:11])
    b.flags.writeable = False
    fused(a, b)
    a.flags.writeable = False
    apart = np.lib.stride_tricks.as_strided(np.zeros(1), (9,), (0,))
    for refused in (a, apart):
        for _ in range(4):
            was = refused.copy()
            with pytest.raises(MutationError, match=r"read-only|place each"):
                fused(refused, b)
            np.testing.assert_array_equal(refused, was)


@pytest.mark.parametrize("count", [6, 80])
def test_elements_that_are_looped_over_are_read_turn_by_turn(count: int) -> None:
    def turned(x: Any) -> Any:
        s = 0.0
        for i, v in enumerate(x):
            s = s * 0.5 + v
            x[-1 - i] = s - i
        return s

    agree(turned, np.arange(float(count)))


def test_numbers_take_no_items() -> None:
    with pytest.raises(MutationError, match="number"):
        nfuser.fuse(lambda a: a.sum().__setitem__((), 1))(X)


def test_views_without_memory_of_their_own_are_refused() -> None:
    for view in (lambda a: np.broadcast_to(a, (3, 4, 5)), lambda a: a.reshape(-1)):

        def assign(a: Any, view: Any = view) -> None:
            view(a)[0] = 1

        with pytest.raises(MutationError, match="array"):
            nfuser.fuse(assign)(X.copy())


def test_rows_that_are_not_overwritten_are_read_without_a_buffer() -> None:
    def bordered(p: Any) -> None:
        p[:, -1] = p[:, -2]
        p[0] = p[1] * 2
        p[::2, 0] = p[::2, 1]

    def turned(p: Any) -> None:  # each reads what it overwrites
        p[:, -1] = p[::-1, -1]
        p[1] = p[1, ::-1]

    for function, kernels in ((bordered, 3), (turned, 4)):
        for backend in (None, "interpret"):
            fused = agree(function, X, backend=backend)
            assert len(fused.kernels(X.copy())) == kernels


def test_an_element_is_updated_again_where_other_statements_may_fail() -> None:
    def counted(a: Any, b: Any, places: Any) -> Any:
        total = np.zeros(4)
        for _ in range(70):
            np.add.at(total, places, 1)
            a[0, -1] += 0.5
            b -= 0.5
            a[0, -1] *= 0.5
        return total

    agree(counted, X, X[0], np.array([0, 3]))


def test_a_write_between_a_copy_and_what_is_computed_of_it_runs_between() -> None:
    def turned(a: Any, b: Any) -> Any:
        old = b
        for _ in range(3):
            old = b.copy()
            b[::-1] = a + a
            b[...] = old * 0.5 - 1
            b *= 0.5
        return old

    agree(turned, X[0], X[1])


@pytest.mark.parametrize("backend", [None, "interpret"])
def test_random_programs_agree_with_numpy(backend: str | None) -> None:
    for seed in range(12):
        text, _ = assign_programs.generate(seed)
        assign_programs.compare(text, seed, backend, shapes=3)


@pytest.mark.filterwarnings("ignore:.*compiled in:RuntimeWarning")  # of ones
@pytest.mark.parametrize("backend", [None, "interpret"])
def test_random_programs_that_loop_and_write_elsewhere_agree(
    backend: str | None,
) -> None:
    tally = write_programs.Tally()
    for seed in range(8):
        text, _, rank = generate(seed)
        write_programs.compare(text, seed, rank, backend, tally, shapes=2)
    assert tally.agreed > 10


def test_a_thousand_assignments_of_one_array_are_one() -> None:
    lines = ["def body(x):", *(f"    x[...] = {k}.0" for k in range(1_100))]
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)  # noqa: S102
    agree(names["body"], X)


def test_a_diagonal_is_seen_changed_and_not_written() -> None:
    def seen(a: Any) -> Any:
        diagonal = a.diagonal()
        a += 1
        return diagonal * 1, np.diag(a, 1) * 1

    found = nfuser.fuse(seen)(X.copy())
    for one, other in zip(found, seen(X.copy()), strict=True):
        np.testing.assert_array_equal(one, other)

    def written(a: Any) -> None:
        a.diagonal()[0] = 1

    with pytest.raises(ValueError, match=r"."):
        nfuser.fuse(written)(X.copy())


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_an_empty_part_of_an_inserted_axis_takes_nothing(backend: str) -> None:
    def program(a: Any) -> Any:
        part = a[..., None][..., 1:]
        part[...] = part[::-1]
        a[:, None, :][:, 0:0] += 1
        a[1] = 7
        return a

    x = np.arange(12.0).reshape(4, 3)
    wanted = program(x.copy())
    np.testing.assert_array_equal(nfuser.fuse(program, backend=backend)(x), wanted)
