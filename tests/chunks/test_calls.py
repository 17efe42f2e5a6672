# SPDX-License-Identifier: Apache-2.0
"""Fused functions of Dask arrays give lazy Dask arrays, of what NumPy would give."""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, BackendError, MutationError, UnsupportedError

pytest.importorskip("dask.array")
pytestmark = pytest.mark.filterwarnings("ignore:rechunk the argument first")


def dask_array() -> Any:
    return import_module("dask.array")


@nfuser.fuse
def chain(x: Any) -> Any:
    return np.tanh(x * 0.5) + np.exp(-x * x)


@nfuser.fuse
def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@nfuser.fuse
def standardised(x: Any) -> Any:
    return (x - x.mean(0)) / x.std(0)


@nfuser.fuse
def laplace(u: Any) -> Any:
    inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return inner - 4 * u[1:-1, 1:-1]


def data(shape: tuple[int, ...], dtype: str = "f4") -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def test_a_chain_is_one_task_a_chunk_and_compiles_nothing_on_the_client() -> None:
    da = dask_array()
    x = da.from_array(data((100, 100)), chunks=(10, 100))
    y = chain(x)
    assert y.chunks == x.chunks
    assert len(y.dask.layers[y.name]) == 10
    assert chain.cache_info().compiled == 0
    assert y.name.startswith("chain-")


def test_equal_calls_have_equal_names_and_others_have_others() -> None:
    da = dask_array()
    x = da.from_array(data((100, 100)), chunks=(10, 100))
    scaled = nfuser.fuse(lambda x, a: x * a)
    assert chain(x).name == chain(x).name
    assert scaled(x, 2.0).name != scaled(x, 3.0).name
    assert chain(x).name != chain(x.rechunk((50, 50))).name


def test_ragged_chunks_share_one_trace_and_few_kernels() -> None:
    da = dask_array()
    fused = nfuser.fuse(lambda x: np.sin(x) * 2 + 1)
    chunks = tuple(range(45))
    x = data((sum(chunks),))
    y = fused(da.from_array(x, chunks=(chunks,)))
    np.testing.assert_allclose(y.compute(scheduler="sync"), np.sin(x) * 2 + 1, 1e-5)
    (task,) = {id(t.func): t.func for t in _tasks(y, "Block")}.values()
    assert fused.cache_info().traces == 1
    assert task.built.cache.cache_info().compiled <= 6


def _tasks(array: Any, name: str) -> list[Any]:
    tasks = dict(array.dask)
    return [
        t for t in tasks.values() if name in type(getattr(t, "func", None)).__name__
    ]


def test_softmax_over_a_chunked_axis_reads_the_data_twice() -> None:
    da = dask_array()
    x = data((8, 1000)) * 100
    y = softmax(da.from_array(x, chunks=(8, 100)))
    np.testing.assert_allclose(y.compute(), softmax(x), rtol=2e-5, atol=1e-30)
    assert len(_tasks(y, "Block")) == 20


def test_rows_of_minus_infinity_are_as_in_one_piece() -> None:
    da = dask_array()
    x = data((3, 40))
    x[0] = x[1, :10] = -np.inf
    x[2, 5] = np.inf
    with np.errstate(all="ignore"):
        found = softmax(da.from_array(x, chunks=(3, 10))).compute()
    np.testing.assert_allclose(found, softmax(x), rtol=1e-5)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("first", [0.0, 7.0, -1e6, np.inf])
def test_moments_are_taken_about_whatever_comes_first(
    axis: int | None, first: float
) -> None:
    da = dask_array()
    x = (data((60, 50)) + 7).astype("f4")
    x[0, 0] = x[20, 0] = first
    fused = nfuser.fuse(lambda x: (x.mean(axis), x.var(axis)))
    with np.errstate(all="ignore"):
        found = import_module("dask").compute(*fused(da.from_array(x, (20, 25))))
        wide = x.astype("f8")
        wanted = wide.mean(axis), wide.var(axis)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=3e-6)


@pytest.mark.parametrize("mean", [0, 10_000])
def test_a_sum_beside_moments_of_the_same_elements_is_folded_with_them(
    mean: int,
) -> None:
    x = (data((4000, 30)) + mean).astype("f4")
    fused = nfuser.fuse(lambda x: (x.mean(), x.var(), x.sum()))
    lazy = fused(dask_array().from_array(x, (700, 30)))
    found = import_module("dask").compute(*lazy)
    wide = x.astype("f8")
    wanted = wide.mean(), wide.var(), wide.sum()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    blocks = {t.func.token: t.func for t in _tasks(lazy[1], "Block")}.values()
    (pass_of_data,) = [b for b in blocks if b.fusion.reductions]
    (made,) = pass_of_data.built.cache.concretizations.values()
    assert len(made.rewritten.fusion.reductions) == 2  # distances and their squares


def test_halves_are_not_rounded_between_stages() -> None:
    da = dask_array()
    x = (data((400, 300)) * 3 + 7).astype("f2")
    fused = nfuser.fuse(lambda x: (x.mean(), x.std(), x.mean(0)))
    found = import_module("dask").compute(*fused(da.from_array(x, (70, 90))))
    for a, b in zip(found, fused(x), strict=True):
        assert a.dtype == np.float16
        np.testing.assert_allclose(a, b, rtol=2e-3)


def test_statistics_that_are_read_again_and_several_results_of_one_pass() -> None:
    da = dask_array()
    x = data((1000, 7), "f4") + 1000
    lazy = da.from_array(x, chunks=(64, 4))
    found = standardised(lazy).compute()
    wide = x.astype("f8")
    np.testing.assert_allclose(found, (wide - wide.mean(0)) / wide.std(0), atol=2e-4)
    both = nfuser.fuse(lambda x: (x.mean(), x.var(), x.max(0), x.argmax()))
    mean, var, top, place = both(lazy)
    keys = [t.key for a in (mean, var, top, place) for t in _tasks(a, "Block")]
    assert len({key[0] for key in keys if len(key) == 3}) == 1
    assert place.compute() == x.argmax()
    np.testing.assert_array_equal(top.compute(), x.max(0))
    np.testing.assert_allclose(mean.compute(), wide.mean(), 1e-6)
    np.testing.assert_allclose(var.compute(), wide.var(), 1e-4)


@pytest.mark.parametrize("dtype", ["i4", "f8"])
def test_of_equal_elements_in_several_chunks_the_first_is_found(dtype: str) -> None:
    x = np.array([[2, 7, 1], [7, 1, 7], [7, 7, 1], [1, 2, 7]] * 3).astype(dtype)
    if dtype == "f8":
        x[[4, 7], 1] = np.nan

    def places(x: Any) -> Any:
        return x.argmax(0), x.argmin(1), x.argmax(), x.argmin()

    found = nfuser.fuse(places)(dask_array().from_array(x, chunks=2))
    for place, wanted in zip(found, places(x), strict=True):
        np.testing.assert_array_equal(place.compute(), wanted)


def test_stencils_read_halos_and_not_whole_axes() -> None:
    da = dask_array()
    u = data((200, 300), "f8")
    y = laplace(da.from_array(u, chunks=(50, 60)))
    np.testing.assert_allclose(y.compute(), laplace(u), atol=1e-12)
    assert max(map(max, y.chunks)) <= 60


def test_the_bits_do_not_depend_on_the_scheduler() -> None:
    da = dask_array()
    y = standardised(da.from_array(data((1000, 30)), chunks=(64, 10)))
    one, other = y.compute(scheduler="sync"), y.compute(scheduler="threads")
    assert one.tobytes() == other.tobytes()


def test_each_chunk_draws_what_it_would_draw_in_one_piece() -> None:
    da = dask_array()

    def noisy(x: Any, seed: int) -> Any:
        rng = nfuser.random.default_rng(seed)
        return x + rng.normal(size=x.shape), rng.random(x.shape)

    fused = nfuser.fuse(noisy)
    x = data((60, 50), "f8")
    found = fused(da.from_array(x, chunks=(17, 9)), 7)
    for a, b in zip(found, fused(x, 7), strict=True):
        np.testing.assert_array_equal(a.compute(), b)


def test_chunks_that_came_unaligned_over_a_network_are_read() -> None:
    da = dask_array()
    x = data((40, 6), "f8")

    def unaligned(block: Any) -> Any:
        raw = np.zeros(block.nbytes + 1, np.uint8)[1:]
        found = raw.view("f8").reshape(block.shape)
        found[...] = block
        return found

    lazy = da.from_array(x, chunks=(7, 6)).map_blocks(unaligned, dtype="f8")
    np.testing.assert_array_equal(chain(lazy).compute(), chain(x))


def test_a_part_of_a_result_computes_the_part_alone() -> None:
    da = dask_array()
    y = chain(da.from_array(data((1000, 10)), chunks=(10, 10)))[:10]
    dask: Any = import_module("dask")
    (best,) = dask.optimize(y)
    assert len(dict(best.dask)) <= 4


def test_keywords_trees_methods_and_arrays_beside() -> None:
    da = dask_array()
    x = data((40, 6))
    lazy = da.from_array(x, chunks=(7, 6))

    class Model:
        def __init__(self) -> None:
            self.weight = np.arange(6, dtype="f4")

        @nfuser.fuse
        def __call__(self, batch: dict[str, Any], *, bias: Any) -> dict[str, Any]:
            return {"y": [batch["x"] * self.weight + bias]}

    model = Model()
    found = model({"x": lazy}, bias=np.ones(6, "f4"))["y"][0]
    np.testing.assert_allclose(found.compute(), x * model.weight + 1, 1e-6)


def test_sizes_may_be_unknown_where_they_mean_nothing() -> None:
    da = dask_array()
    x = data((100,), "f8")
    lazy = da.from_array(x, chunks=9)
    some = lazy[lazy > 0.2]
    both = nfuser.fuse(lambda x: (np.tanh(x) * 2, (x * x).sum()))
    y, total = both(some)
    assert np.isnan(y.shape[0])
    kept = x[x > 0.2]
    np.testing.assert_allclose(y.compute(), np.tanh(kept) * 2, 1e-12)
    np.testing.assert_allclose(total.compute(), (kept * kept).sum(), 1e-12)


@pytest.mark.parametrize("how", ["add", "maximum", "multiply"])
def test_what_is_scattered_by_chunks_of_an_index_is_joined(how: str) -> None:
    da = dask_array()
    x = data((300, 5), "f8")
    verb: Any = getattr(np, how)

    def scattered(x: Any) -> Any:
        places = (np.abs(x[:, 0]) * 2).astype(np.int64) % 7
        found = np.full((7, 5), 1.5)
        verb.at(found, places, np.abs(x) * 0.25 + 1)
        return found

    y = nfuser.fuse(scattered)(da.from_array(x, chunks=(37, 5)))
    np.testing.assert_allclose(y.compute(), scattered(x), 1e-12)
    assert len(_tasks(y, "Block")) == 10


@pytest.mark.parametrize("chunks", [(37, 5), (100, 2)])
def test_histograms_count_each_chunk_once(chunks: tuple[int, int]) -> None:
    da = dask_array()
    x = data((300, 5), "f8")
    counts = nfuser.fuse(lambda x: np.histogram(x, 9, range=(-2, 2)))
    made: Any = counts(da.from_array(x, chunks=chunks))
    found, edges = made
    wanted, ends = np.histogram(x, 9, range=(-2, 2))
    np.testing.assert_array_equal(found.compute(), wanted)
    np.testing.assert_array_equal(edges.compute(), ends)


def test_explain_says_tasks_bytes_and_reasons_and_draws_nothing() -> None:
    da = dask_array()
    x = da.from_array(data((1000, 40)), chunks=(100, 40))
    told: Any = standardised.explain(x)
    kinds = [step.kind for step in told.steps]
    assert kinds == ["pass", "tree", "pass"]
    assert told.tasks == 23
    assert "parts of moments" in str(told)
    warned = nfuser.fuse(lambda x: np.sort(x, 0), rechunk="warn")
    assert "sort reads all of axis 0 at once" in str(warned.explain(x))
    rng = nfuser.random.default_rng(5)
    noisy = nfuser.fuse(lambda x, rng: x + rng.random(x.shape))
    first = nfuser.random.default_rng(5).random(3)
    noisy.explain(x, rng)
    np.testing.assert_array_equal(rng.random(3), first)


def test_what_a_worker_built_for_a_stage_outlives_its_task() -> None:
    da = dask_array()
    y = chain(da.from_array(data((20, 6)), chunks=(7, 6)))
    sent = pickle.dumps(_tasks(y, "Block")[0].func)
    caches = {id(pickle.loads(sent).built) for _ in range(3)}
    assert len(caches) == 1


def test_empty_chunks_are_turned_and_joined_as_others_are() -> None:
    da = dask_array()
    x = data((6, 7))
    lazy = da.from_array(x, chunks=((2, 0, 4), (0, 6, 0, 1)))
    turned = nfuser.fuse(lambda x: np.flip(x, 1) * 2)
    np.testing.assert_array_equal(turned(lazy).compute(), turned(x))
    nothing = da.from_array(x[:0], chunks=(3, 4))
    np.testing.assert_array_equal(turned(nothing).compute(), turned(x[:0]))


def test_a_task_crosses_to_another_process_and_says_if_it_cannot_be_read() -> None:
    da = dask_array()
    y = chain(da.from_array(data((20, 6)), chunks=(7, 6)))
    block = _tasks(y, "Block")[0].func
    other = pickle.loads(pickle.dumps(block))
    assert other.token == block.token
    make, (_, parts) = block.__reduce__()
    foreign = make("another", b"what nobody here can read")
    with pytest.raises(BackendError, match="install the same nfuser"):
        foreign(data((7, 6)))
    assert pickle.loads(pickle.dumps(make("another", parts))).version == "another"


def test_what_cannot_be_done_is_refused_with_what_to_write() -> None:
    da = dask_array()
    x = da.from_array(data((4000, 16)), chunks=(50, 16))

    def assigned(x: Any) -> Any:
        x[0] = 1
        return x

    with pytest.raises(MutationError, match=r"x\.copy\(\) first"):
        nfuser.fuse(assigned)(x)
    with pytest.raises(ArgumentError, match="compute_chunk_sizes"):
        nfuser.fuse(lambda x: x.mean())(x[:, 0][x[:, 0] > 0])
    with pytest.raises(ArgumentError, match=r"found .*different numbers"):
        nfuser.fuse(lambda x, y: x + y)(
            x[:, 0][x[:, 0] > 0], x.rechunk((40, 16))[:, 0][x[:, 0] > 0]
        )
    with pytest.raises(
        ArgumentError, match=r'rechunk="warn".*sort reads all of axis 0'
    ):
        nfuser.fuse(lambda x: np.sort(x, 0))(x)
    with pytest.raises(UnsupportedError, match="map_blocks"):
        chain(x.map_blocks(lambda b: np.ma.masked_less(b, 0), meta=np.ma.ones((0, 0))))


def test_parts_that_are_only_handed_on_lie_in_memory_as_they_say() -> None:
    x = data((13, 15))
    lazy = dask_array().from_array(x, chunks=((9, 4), (4, 9, 1, 1)))
    found = nfuser.fuse(lambda x: x[:, 1:][::2])(lazy)
    np.testing.assert_array_equal(found.compute(), x[::2, 1:])


class OfAnotherKind:
    """Stands for a chunk of a library that NumPy cannot read."""

    shape, dtype, ndim = (5,), np.dtype("f4"), 1


@pytest.mark.parametrize("kind", ["masked", "another"])
def test_chunks_of_several_kinds_are_refused_where_they_are_met(kind: str) -> None:
    def mixed(block: Any, block_id: Any = None) -> Any:
        if block_id == (0,):
            return block
        return np.ma.masked_less(block, 0) if kind == "masked" else OfAnotherKind()

    x = dask_array().from_array(data((10,)), chunks=5)
    y = chain(x.map_blocks(mixed, meta=np.empty(0, "f4")))
    with pytest.raises(UnsupportedError, match=r"found .*(MaskedArray|OfAnotherKind)"):
        y.compute(scheduler="sync")
