# SPDX-License-Identifier: Apache-2.0
"""Random words of neighbours: drawn a block at a time, and the same as one by one."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser import config
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.lower.cpu.tile_draws import tile_draws
from nfuser.compiler.lower.cuda.draw_packets import draw_packets
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Call,
    DrawPacket,
    For,
    IndexValue,
    Kernel,
    Let,
    Memory,
    Number,
    Var,
)
from nfuser.compiler.lower.kernel.text import text
from nfuser.compiler.lower.kernel.verify import verify_kernel
from nfuser.compiler.lower.loops.draws import draws_in
from nfuser.compiler.lower.lowering import lower
from nfuser.compiler.schedule.facts.target import CPU
from nfuser.errors import VerifyError
from nfuser.random import default_rng, of
from tests.random.philox import words
from tests.schedule import run_schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.scalars.scalar import Scalar

KEY, CALL = 0x299F31D0A4093822, 3
Shape = tuple[int, ...]


def _single(x: Any, rng: Any) -> Any:
    return rng.random(size=x.shape, dtype=np.float32)


def _double(x: Any, rng: Any) -> Any:
    return rng.random(size=x.shape)


def _later(x: Any, rng: Any) -> Any:
    return rng.random(size=x.size + 3, dtype=np.float32)[3:].reshape(x.shape)


def _turned(x: Any, rng: Any) -> Any:
    return rng.random(size=x.shape[::-1], dtype=np.float32).T


def _summed(x: Any, rng: Any) -> Any:
    return rng.random(size=x.shape).max(-1)


def _known(function: Callable[..., Any], shape: Shape) -> Any:
    """Return what ``function`` makes of the words of the stream's own definition."""

    class Known:
        def random(self, size: Any, dtype: Any = np.float64) -> Any:
            size = size if isinstance(size, tuple) else (size,)
            if dtype is np.float32:
                found = words(KEY, CALL, 0, size, 32) >> np.uint32(8)
                return found.astype(np.float32) * np.float32(2**-24)
            return (words(KEY, CALL, 0, size, 64) >> np.uint64(11)) * 2.0**-53

    return function(np.zeros(shape, np.float32), Known())


def _drawn(function: Callable[..., Any], shape: Shape, **options: Any) -> Any:
    rng = default_rng(KEY)
    rng.state = {**rng.state, "call": CALL}
    fused = nfuser.fuse(function, **options)
    return np.asarray(fused(np.zeros(shape, np.float32), rng))


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 4100), (70, 63), (8, 256)])
@pytest.mark.parametrize("function", [_single, _double, _later, _turned, _summed])
def test_words_drawn_in_blocks_are_those_of_the_stream(
    function: Callable[..., Any], shape: Shape
) -> None:
    expected = _known(function, shape)
    np.testing.assert_array_equal(_drawn(function, shape), expected)
    np.testing.assert_array_equal(
        _drawn(function, shape, backend="interpret"), expected
    )


@pytest.mark.parametrize(("columns", "begins_a_block"), [(64, True), (63, False)])
def test_a_packet_that_memory_is_moved_in_draws_whole_blocks(
    columns: int, begins_a_block: bool
) -> None:
    @nfuser.fuse(backend="interpret")
    def layer(x: Any, rng: Any) -> Any:
        dropped = np.where(rng.bernoulli(0.1, x.shape), 0, x)
        return dropped / dropped.sum(-1, keepdims=True)

    x = np.ones((4, columns), np.float32)
    (kernel,) = layer.kernels(x, default_rng(KEY))
    drawn = [line for line in kernel.source.splitlines() if "draw_packet_4(" in line]
    are_whole = all("int32(4)) * 4" in line for line in drawn)
    assert (bool(drawn) and are_whole) is begins_a_block
    rng = default_rng(KEY)
    expected = np.where(of(KEY).bernoulli(0.1, x.shape), 0, x)
    expected = expected / expected.sum(-1, keepdims=True)
    np.testing.assert_allclose(layer(x, rng), expected, rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_threads_cannot_be_seen(threads: int) -> None:
    expected = _known(_single, (40, 5003))
    with config.override(num_threads=threads):
        found = _drawn(_single, (40, 5003))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_order_of_an_array_in_memory_cannot_be_seen(order: Any) -> None:
    @nfuser.fuse
    def noisy(x: Any, key: Any) -> Any:
        return x + of(key).random(x.shape)

    x = np.asarray(np.arange(35.0 * 41).reshape(35, 41), order=order)
    plain = x + of(np.uint64(KEY)).random(x.shape)
    np.testing.assert_array_equal(noisy(x, np.uint64(KEY)), plain)


def _source(function: Callable[..., Any], backend: str, *arguments: Any) -> str:
    fused = nfuser.fuse(function, backend=backend)
    kernels = fused.kernels(*arguments, default_rng(7))
    lines = "\n".join(k.source for k in kernels).splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))


@pytest.mark.parametrize(("function", "bits"), [(_single, 32), (_double, 64)])
def test_a_loop_of_a_cpu_draws_whole_blocks_to_a_tile(
    function: Callable[..., Any], bits: int
) -> None:
    code = _source(function, "cpu", np.zeros((64, 1024), np.float32))
    assert f" draw_block_{bits}(" in code
    assert " philox" not in code


@pytest.mark.parametrize(
    ("dtype", "width"), [(np.float32, 4), (np.float64, 2), (np.float16, 8)]
)
def test_a_thread_of_a_gpu_draws_the_words_of_a_packet_at_once(
    dtype: Any, width: int
) -> None:
    def dropped(x: Any, rng: Any) -> Any:
        return nfuser.nn.dropout(x, 0.25, rng=rng)

    code = _source(dropped, "interpret", np.zeros((64, 1024), dtype))
    assert f" draw_packet_{width}(" in code
    assert " philox" not in code


def _kernel(function: Callable[..., Any], kind: str) -> Kernel:
    call = run_schedule.Call(function, np.zeros((8, 256), np.float32))
    target = CPU if kind == "cpu" else run_schedule.CUDA
    facts = run_schedule.Facts(call.facts.sizes, call.facts.layouts, target)
    heuristic = call.scheduler.heuristic(call.fusion, facts)
    return lower(call.scheduler.apply(call.fusion, heuristic, target))


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_kernels_that_draw(kind: str, golden: Callable[[str], None]) -> None:
    kernel = _kernel(lambda x: x + of(7).random(x.shape, np.float32), kind)
    verify_kernel(kernel)
    golden(text(kernel))


def _loop(place: Callable[[Scalar], Scalar]) -> For:
    index = scalar_symbols.loop_index(0, 4)
    at, word = Var(DType.U64), Var(DType.U64)
    value = IndexValue(place(index), DType.I64)
    zero = Number(0, DType.U64)
    draw = Call("philox32", (at, zero, zero), DType.U64)
    lets = Let(at, Call("to_u64", (value,), DType.U64)), Let(word, draw)
    return For(index, sc.const(4), lets)


def test_only_neighbours_are_drawn_together() -> None:
    assert len(draws_in(_loop(lambda i: i + 7))) == 1
    assert not draws_in(_loop(lambda i: i * 2))
    assert not draws_in(_loop(lambda i: i // 2))


def test_a_kernel_that_draws_nothing_is_left_as_it_is() -> None:
    kernel = _kernel(lambda x: x + 1, "cuda")
    assert draw_packets(kernel) is kernel
    assert tile_draws(kernel) is kernel


def test_a_cpu_draws_nothing_but_whole_blocks() -> None:
    kernel = _kernel(lambda x: x + of(7).random(x.shape, np.float32), "cpu")
    verify_kernel(kernel)
    array, zero = Array(DType.U32, 8, Memory.LOCAL), Number(0, DType.U64)
    for first, width in ((4, 4), (2, 4), (4, 2)):
        place = Call("to_u64", (IndexValue(sc.const(first), DType.I64),), DType.U64)
        draw = DrawPacket(array, sc.const(0), place, zero, zero, width)
        drawing = replace(kernel, arrays=(array,), body=(draw,))
        if first % 4 == 0 and width == 4:
            verify_kernel(drawing)
            continue
        with pytest.raises(VerifyError, match="no block"):
            verify_kernel(drawing)
