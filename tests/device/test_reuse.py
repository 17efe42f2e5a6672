# SPDX-License-Identifier: Apache-2.0
# What holds an array is anything.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import gc
import os
import pickle
import threading
import tracemalloc
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.dtypes import DType
from nfuser.execution.device import reuse
from nfuser.execution.device.reuse import POOL, ReusePool, reusing_allocator, size_class
from tests.interrupts import interrupted

ROOM = 1 << 24
SHAPE = (512, 1024)


@pytest.fixture
def pool() -> ReusePool:
    return ReusePool(ROOM)


def address(array: Any) -> int:
    return array.ctypes.data


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1 << 20, (1 << 20) + 1, 3 << 20, 10**9])
def test_a_size_class_is_at_most_an_eighth_larger(size: int) -> None:
    assert size <= size_class(size) <= max(size * 9 / 8, 8)
    assert size_class(size_class(size)) == size_class(size)


def test_memory_is_lent_again_when_nobody_holds_it(pool: ReusePool) -> None:
    make = reusing_allocator(SHAPE, DType.F32, pool)
    first = make()
    at = address(first)
    del first
    assert address(make()) == at


HOLDERS: list[Any] = [
    lambda y: y[3:, ::2].T,
    lambda y: y.reshape(-1),
    memoryview,
    lambda y: np.frombuffer(y, np.uint8),
    lambda y: np.asarray(y.base),
    lambda y: y.ravel().view(np.int32),
    lambda y: iter(y),
    lambda y: np.broadcast_to(y, (2, *y.shape)),
    lambda y: y.__array_interface__ and y.T.flat,
    lambda y: np.from_dlpack(y),
]


@pytest.mark.parametrize("hold", HOLDERS)
def test_whatever_shares_memory_keeps_it(hold: Any, pool: ReusePool) -> None:
    make = reusing_allocator(SHAPE, DType.F32, pool)
    array = make()
    array[:] = 3
    at, held = address(array), hold(array)
    del array
    gc.collect()
    others = [make() for _ in range(3)]
    assert at not in map(address, others)
    for other in others:
        other[:] = 4
    del held
    gc.collect()
    assert address(make()) == at


def test_torch_keeps_it(pool: ReusePool) -> None:
    torch = pytest.importorskip("torch")
    make = reusing_allocator(SHAPE, DType.F32, pool)
    array = make()
    at, held = address(array), torch.from_numpy(array)[1:]
    del array
    assert address(make()) != at
    del held
    assert at in {address(make()) for _ in range(2)}


def test_arrays_are_aligned_writable_and_dense(pool: ReusePool) -> None:
    array = reusing_allocator((77, 1001), DType.I16, pool)()
    assert address(array) % 64 == 0
    assert array.flags.c_contiguous
    array.flags.writeable = False
    array.flags.writeable = True
    assert array.shape == (77, 1001)
    assert array.dtype == np.int16


def test_stores_are_not_taken_for_what_is_loaded_next(pool: ReusePool) -> None:
    # Two arrays of a whole number of pages that an allocator lays one after the other:
    # the second begins no few bytes later in its page than the first. Nor does one of
    # two that a loop fills in turn.
    blocks = [pool.take(1 << 20) for _ in range(5)]
    places = [block.address - block.memory.ctypes.data for block in blocks]
    assert all(1024 <= ahead % 4096 <= 3072 for ahead in places)
    assert min(abs(a - b) for a, b in combinations(places, 2)) >= 256
    for block in blocks:
        end = block.memory.ctypes.data + block.memory.nbytes
        assert block.address + block.size <= end


def test_pickles_and_copies_own_their_data(pool: ReusePool) -> None:
    array = reusing_allocator(SHAPE, DType.F64, pool)()
    array[:] = np.arange(1024)
    for copy in (pickle.loads(pickle.dumps(array)), array.copy()):
        assert not np.shares_memory(copy, array)
        np.testing.assert_array_equal(copy, array)


def test_resize_refuses_as_it_does_for_views(pool: ReusePool) -> None:
    array = reusing_allocator(SHAPE, DType.F32, pool)()
    with pytest.raises(ValueError, match="own"):
        array.resize(3, refcheck=False)


def test_what_waits_is_bounded(pool: ReusePool) -> None:
    make = reusing_allocator(SHAPE, DType.F32, pool)
    held = [make() for _ in range(20)]
    assert pool.waiting_bytes == 0
    del held
    assert pool.waiting_bytes == ROOM
    pool.clear()
    assert pool.waiting_bytes == 0


def test_other_sizes_push_out_the_longest_unused(pool: ReusePool) -> None:
    reusing_allocator((ROOM // 4,), DType.F32, pool)()
    reusing_allocator((ROOM // 8,), DType.F32, pool)()
    assert pool.waiting_bytes == ROOM // 2


def test_threads_never_share_memory(pool: ReusePool) -> None:
    make = reusing_allocator((1 << 12,), DType.I64, pool)
    failed: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            array = make()
            array[:] = number
            if not (array == number).all():
                failed.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_loan_that_comes_back_within_a_request_does_no_harm(
    pool: ReusePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_block, make = reuse._new_block, reusing_allocator(SHAPE, DType.F32, pool)  # pyright: ignore[reportPrivateUsage]

    def busy(size: int) -> reuse.ReusedBlock:
        monkeypatch.setattr(reuse, "_new_block", new_block)
        make()  # as the collector may do it
        return new_block(size)

    monkeypatch.setattr(reuse, "_new_block", busy)
    array = make()
    assert pool.waiting_bytes == array.nbytes


def test_what_is_far_too_large_does_not_wait() -> None:
    small = ReusePool(1 << 20)
    reusing_allocator((1 << 24,), DType.I8, small)()
    make = reusing_allocator((1 << 16,), DType.I8, small)
    for _ in range(3):
        make()
    assert small.waiting_bytes <= 1 << 20


@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_between_two_statements_leaves_a_pool_that_works() -> None:
    number, is_reached = 0, True
    while is_reached:
        pool = ReusePool(1 << 20)
        pair = [reusing_allocator((n << 15,), DType.I8, pool) for n in (9, 10)]
        del (held := [make() for make in pair * 3])[:]
        is_reached = interrupted("reuse.py", number, lambda: held.append(pair[0]()))  # noqa: B023
        number += 1
        again = [pair[1]() for _ in range(4)]
        assert len({x.ctypes.data for x in again}) == 4
        pool.clear()
        assert pool.waiting_bytes == 0
    assert number > 4


def test_a_child_writes_to_memory_of_its_own() -> None:
    @nfuser.fuse
    def double(x: Any) -> Any:
        return x + x

    x = np.ones((512, 1024), np.float32)
    kept = double(x)
    double(x)  # waits in the pool
    child = os.fork()
    if child == 0:
        with_lock = double(x * 3)
        os._exit(0 if (with_lock == 6).all() and (kept == 2).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (double(x * 5) == 10).all()
    assert (kept == 2).all()


def test_results_of_calls_stay_what_they_were() -> None:
    @nfuser.fuse
    def scale(x: Any, by: float) -> Any:
        return x * by

    x = np.ones((256, 2048), np.float32)
    kept = [(k, scale(x, k)[k:]) for k in range(6)]
    for k in range(20, 30):
        scale(x, k)
    for k, part in kept:
        assert (part == k).all()


def test_a_chain_takes_its_output_and_little_more() -> None:
    @nfuser.fuse
    def chain(x: Any) -> Any:
        return np.tanh(np.exp(-x * x) + x) * 0.5 + np.sqrt(abs(x))

    x = np.ones((1024, 1024))
    chain(x)
    POOL.clear()
    tracemalloc.start()
    try:
        y = chain(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < y.nbytes + (1 << 20)
