# SPDX-License-Identifier: Apache-2.0
"""What launches wait for in a recorded graph, against a driver that writes it down."""

from __future__ import annotations

import random

import pytest

from nfuser.execution.device.cuda import driver, ordering
from nfuser.execution.device.cuda.ordering import Bytes, Footprint, by_data, placed
from tests.device.recording import RecordingDriver

STREAM = 7


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> RecordingDriver:
    found = RecordingDriver()
    monkeypatch.setattr(driver, "library", lambda: found)
    monkeypatch.setattr(ordering, "LANES", 100)
    return found


def launch(
    fake: RecordingDriver,
    reads: str = "",
    writes: str = "",
    *,
    cooperative: bool = False,
) -> None:
    """Launch what reads and writes these letters, 16 bytes each."""
    touched = [
        Bytes(k, 0, 16, is_written)
        for k, is_written in enumerate([False] * len(reads) + [True] * len(writes))
    ]
    addresses = [16 * ord(letter) for letter in reads + writes]
    footprint = Footprint(tuple(touched), cooperative)
    with placed(STREAM, footprint, addresses):
        status = fake.record()
    if status:
        raise driver.failure(status, "launching")


@pytest.mark.parametrize(
    ("first", "second", "is_ordered"),
    [
        (("x", "a"), ("x", "b"), False),
        (("x", "a"), ("a", "b"), True),
        (("x", "a"), ("y", "x"), True),
        (("x", "a"), ("y", "a"), True),
    ],
    ids=["both read", "read after write", "write after read", "write after write"],
)
def test_two_launches(
    fake: RecordingDriver,
    first: tuple[str, str],
    second: tuple[str, str],
    is_ordered: bool,
) -> None:
    with by_data(STREAM):
        launch(fake, *first)
        launch(fake, *second)
    assert fake.order() == [set(), {0} if is_ordered else set()]
    assert fake.last() == ({1} if is_ordered else {0, 1})


@pytest.mark.parametrize(
    ("other", "is_ordered"),
    [((-16, 0), False), ((-16, 1), True), ((15, 20), True), ((16, 20), False)],
)
def test_views_that_overlap_by_a_byte(
    fake: RecordingDriver, other: tuple[int, int], is_ordered: bool
) -> None:
    with by_data(STREAM):
        for low, high, is_written in ((0, 16, True), (*other, False)):
            touched = (Bytes(0, low, high, is_written),)
            with placed(STREAM, Footprint(touched), [4096]):
                fake.record()
    assert fake.order()[1] == ({0} if is_ordered else set())


def test_a_chain_waits_for_its_last_link_only(fake: RecordingDriver) -> None:
    with by_data(STREAM):
        for here, there in ("ab", "bc", "cd", "de"):
            launch(fake, here + "x", there)
    assert [len(found) for found in fake.behind.values()] == [0, 1, 1, 1]
    assert fake.order()[3] == {0, 1, 2}


def test_what_others_record_is_behind_all_and_before_all(fake: RecordingDriver) -> None:
    with by_data(STREAM):
        launch(fake, "x", "a")
        launch(fake, "x", "b")
        fake.record()
        launch(fake, "x", "c")
        launch(fake, "x", "d")
    assert fake.order() == [set(), set(), {0, 1}, {0, 1, 2}, {0, 1, 2}]


def test_what_was_recorded_before_is_before_all(fake: RecordingDriver) -> None:
    fake.record()
    with by_data(STREAM):
        launch(fake, "x", "a")
        launch(fake, "x", "b")
    assert fake.order() == [set(), {0}, {0}]


def test_blocks_that_wait_for_each_other_meet_no_others_of_their_kind(
    fake: RecordingDriver,
) -> None:
    with by_data(STREAM):
        launch(fake, "x", "a", cooperative=True)
        launch(fake, "x", "b")
        launch(fake, "x", "c", cooperative=True)
    assert fake.order() == [set(), set(), {0}]


def test_a_launch_that_fails_loses_no_order(fake: RecordingDriver) -> None:
    with by_data(STREAM):
        launch(fake, "x", "a")
        launch(fake, "x", "b")
        fake.statuses = [1]
        with pytest.raises(AttributeError):  # this driver has no names for errors
            launch(fake, "a", "c")
        assert fake.last() == {0, 1}
        launch(fake, "b", "d")
    assert fake.order()[2] == {1}


def test_where_the_driver_does_not_tell_the_order_is_that_of_calls(
    fake: RecordingDriver,
) -> None:
    with by_data(STREAM):
        launch(fake, "x", "a")
        launch(fake, "x", "b")
        fake.is_known = False
        launch(fake, "x", "c")
        fake.is_known = True
        launch(fake, "x", "d")
        launch(fake, "x", "e")
    assert fake.order() == [set(), set(), {0, 1}, {0, 1, 2}, {0, 1, 2}]


def test_other_streams_and_other_times_are_left_alone(fake: RecordingDriver) -> None:
    with by_data(STREAM + 1):
        launch(fake, "x", "a")
        launch(fake, "x", "b")
    launch(fake, "x", "c")
    assert fake.order() == [set(), {0}, {0, 1}]


def test_independent_launches_share_lanes(
    fake: RecordingDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "LANES", 2)
    with by_data(STREAM):
        for letter in "abcdefgh":
            launch(fake, "x", letter)
    assert [len(before) for before in fake.order()] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert all(len(found) <= 1 for found in fake.behind.values())
    assert len(fake.last()) == 2


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_lanes_keep_what_has_to_be_kept(
    fake: RecordingDriver, monkeypatch: pytest.MonkeyPatch, lanes: int
) -> None:
    monkeypatch.setattr(ordering, "LANES", lanes)
    draw = random.Random(lanes)
    seen: list[tuple[str, str]] = []
    with by_data(STREAM):
        for number in range(60):
            first, second, out = draw.sample("abcdefghijklmnop", 3)
            launch(fake, first + second, out)
            assert len(fake.last()) <= lanes
            before = fake.order()[number]
            for k, (reads, written) in enumerate(seen):
                if written in (first, second, out) or out in reads:
                    assert k in before
            seen.append((first + second, out))


@pytest.mark.parametrize("seed", range(20))
def test_random_launches_are_ordered_by_their_data_and_nothing_else(
    fake: RecordingDriver, seed: int
) -> None:
    draw = random.Random(seed)
    expected: list[set[int]] = []
    seen: list[tuple[set[str], set[str]]] = []
    with by_data(STREAM):
        for number in range(40):
            if draw.random() < 0.05:
                fake.record()
                expected.append(set(range(number)))
                seen.append((set(), set("abcdefgh")))
                continue
            letters = draw.sample("abcdefgh", 3)
            reads, writes = letters[:2], letters[2:]
            launch(fake, "".join(reads), "".join(writes))
            before = {
                k
                for k, (read, written) in enumerate(seen)
                if written & {*reads, *writes} or read & {*writes}
            }
            expected.append(before.union(*(expected[k] for k in before)))
            seen.append(({*reads}, {*writes}))
    assert fake.order() == expected
