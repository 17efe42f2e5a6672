# SPDX-License-Identifier: Apache-2.0
"""The interpreter computes what Numba would: dtypes, masks, loops, exchanges."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nfuser.codegen.primitives import cuda as device
from nfuser.execution.interpret import PointerArgument, RunReport, run
from nfuser.execution.interpret.primitives import ELEMENTWISE

HEADER = "from numba import cuda\nfrom nfuser.codegen.primitives.cuda import *\n"
OPENING = (
    "t = int32(cuda.threadIdx.x)\n"
    "i = int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)\n"
)


def execute(
    body: str,
    signature: str,
    *arguments: Any,
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (32, 1, 1),
    seed: int = 0,
    module: str = "",
) -> RunReport:
    names = "abcdefg"[: len(arguments)]
    lines = "".join(f"    {line}\n" for line in (OPENING + body).splitlines())
    head = f'@cuda.jit("void({signature})")\ndef kernel({", ".join(names)}):\n'
    text = HEADER + module + head + lines
    return run(text, "kernel", grid, block, arguments, seed=seed)


def computed(body: str, dtype: str = "int32", size: int = 32, **options: Any) -> Any:
    """Run ``body``, which stores into a and may read n = 5; return a."""
    output = np.zeros(size, dtype)
    signature = f"CPointer({dtype}), int32"
    execute(body, signature, PointerArgument(output, initialized=False), 5, **options)
    return output


T = np.arange(32)


def test_index_arithmetic_is_64_bit_until_it_is_cast() -> None:
    body = "store(a, i, int32((i * 2000000000 + 7) - i * 1999999999))"
    assert (computed(body) == T + 7).all()


def test_float_literals_are_double_until_they_are_cast() -> None:
    single = computed("store(a, i, float32(0.1) * float32(t))", "float32")
    assert (single == np.float32(0.1) * T.astype(np.float32)).all()
    double = computed("store(a, i, 0.1 * float64(t))", "float64")
    assert (double == 0.1 * T).all()
    mixed = computed("store(a, i, float32(0.1 * to_f64(float32(0.1))))", "float32")
    assert mixed[0] == np.float32(0.1 * float(np.float32(0.1)))


def test_branches_merge_by_thread() -> None:
    body = (
        "x = int32(1)\nif t < 8:\n    x = int32(t * 2)\nelse:\n"
        "    if t < 16:\n        x = int32(7)\n    y = int32(x + 1)\n    x = y\n"
        "store(a, i, x)"
    )
    expected = np.where(T < 8, 2 * T, np.where(T < 16, 8, 2))
    assert (computed(body) == expected).all()


def test_a_condition_that_is_the_same_everywhere_takes_one_branch() -> None:
    body = "if b == 5:\n    x = int32(3)\nelse:\n    x = load(a, 1000)\nstore(a, i, x)"
    assert (computed(body) == 3).all()


def test_loops_end_for_each_thread_by_itself() -> None:
    body = (
        "s = int32(0)\nk = int32(0)\nwhile k < t:\n    s = int32(s + k)\n"
        "    k = int32(k + 1)\nstore(a, i, s)"
    )
    assert (computed(body) == T * (T - 1) // 2).all()


def test_a_loop_changes_an_integer_variable_to_64_bits_as_numba_does() -> None:
    body = "k = 0\nwhile k < t:\n    k = int32(k + 1)\nstore(a, i, int32(k))"
    assert (computed(body) == T).all()


def test_static_loops_index_local_arrays() -> None:
    body = (
        "r = cuda.local.array(4, int32)\nfor k in range(4):\n    r[k] = int32(t + k)\n"
        "s = int32(0)\nfor k in range(1, 4, 2):\n    s = int32(s + r[k] * r[k - 1])\n"
        "store(a, i, s)"
    )
    assert (computed(body) == (T + 1) * T + (T + 3) * (T + 2)).all()


def test_a_value_read_from_an_array_stays_when_the_array_changes() -> None:
    body = (
        "r = cuda.local.array(1, int32)\nr[0] = t\nx = r[0]\nr[0] = int32(9)\n"
        "store(a, i, x)"
    )
    assert (computed(body) == T).all()


def test_threads_index_their_local_arrays_each_their_own_way() -> None:
    body = (
        "r = cuda.local.array(4, int32)\nfor k in range(4):\n    r[k] = int32(10 * k)\n"
        "m = urem(t, int32(4))\nr[m] = int32(r[m] + t)\nstore(a, i, r[m])"
    )
    assert (computed(body) == 10 * (T % 4) + T).all()


def test_coordinates_count_x_first() -> None:
    body = (
        "x = int32(cuda.threadIdx.x + cuda.blockDim.x * (cuda.threadIdx.y + "
        "cuda.blockDim.y * cuda.threadIdx.z))\n"
        "g = int32(cuda.blockIdx.x + cuda.gridDim.x * (cuda.blockIdx.y + "
        "cuda.gridDim.y * cuda.blockIdx.z))\n"
        "store(a, int32(g * 24 + x), int32(100 * cuda.blockIdx.y + cuda.threadIdx.z))"
    )
    out = computed(body, size=24 * 30, grid=(2, 3, 5), block=(4, 3, 2))
    blocks, threads = np.divmod(np.arange(24 * 30), 24)
    assert (out == 100 * (blocks // 2 % 3) + threads // 12).all()


def test_shuffles_move_values_within_a_warp() -> None:
    size = np.arange(64)
    for call, expected in (
        ("shuffle_xor(i, 5)", size ^ 5),
        ("shuffle_down(i, 3)", np.where(size % 32 < 29, size + 3, size)),
        ("shuffle(i, 7)", size // 32 * 32 + 7),
        ("shuffle(i, int32(31 - t))", size // 32 * 32 + (31 - size % 32) % 32),
    ):
        out = computed(f"store(a, i, {call})", size=64, block=(64, 1, 1))
        assert (out == expected).all(), call


def test_module_constants_are_known() -> None:
    module = "INFINITY = 1e999\nN = 4\n"
    body = "store(a, int32(i), select(i < N, float32(-INFINITY), float32(N)))"
    out = computed(body, "float32", module=module)
    assert (out == np.where(T < 4, -np.inf, 4)).all()


FORMATS = [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)]


@pytest.mark.parametrize(("suffix", "dtype"), FORMATS)
def test_16_bit_floats_round_to_nearest_even(suffix: str, dtype: Any) -> None:
    values = np.random.default_rng(0).standard_normal(256).astype(np.float32)
    values[:4] = [np.inf, 65519.0, 1.0009766, 1e-8]
    output, back = np.zeros(256, dtype), np.zeros(256, np.float32)
    body = f"store_{suffix}(b, i, load(a, i))\nstore(c, i, round_{suffix}(load(a, i)))"
    word = "CPointer(float32), CPointer(uint16), CPointer(float32)"
    buffers = PointerArgument(values), PointerArgument(output), PointerArgument(back)
    execute(body, word, *buffers, block=(256, 1, 1))
    with np.errstate(over="ignore"):
        expected = values.astype(dtype)
    assert (output == expected).all()
    assert (back == expected.astype(np.float32)).all()
    read = f"store(b, i, load_{suffix}(a, i))"
    kinds = "CPointer(uint16), CPointer(float32)"
    execute(
        read, kinds, PointerArgument(output), PointerArgument(back), block=(256, 1, 1)
    )
    assert (back == expected.astype(np.float32)).all()


@pytest.mark.parametrize("length", [2, 4, 8])
@pytest.mark.parametrize(("suffix", "dtype"), [*FORMATS, ("bool", np.bool_)])
def test_packets_move_and_convert(suffix: str, dtype: Any, length: int) -> None:
    values = np.random.default_rng(1).integers(0, 2, 32 * length).astype(dtype)
    output = np.zeros_like(values)
    local = "boolean" if suffix == "bool" else "float32"
    storage = "uint8" if suffix == "bool" else "uint16"
    body = (
        f"r = cuda.local.array({length}, {local})\nif t < 30:\n"
        f"    load_packet_{length}_{suffix}(r, 0, a, int32(i * {length}))\n"
        f"    store_packet_{length}_{suffix}(b, int32(i * {length}), r, 0)"
    )
    kinds = f"CPointer({storage}), CPointer({storage})"
    report = execute(
        body, kinds, PointerArgument(values), PointerArgument(output, initialized=False)
    )
    done = 30 * length
    assert (output[:done] == values[:done]).all()
    assert not output[done:].any()
    assert report.accesses["a"].packet_reads == 30
    assert report.accesses["a"].elements_read == done
    assert report.accesses["b"].packet_writes == 30


@pytest.mark.parametrize("length", [2, 4, 8])
@pytest.mark.parametrize(("suffix", "dtype"), FORMATS)
@pytest.mark.parametrize("past", [0, 1, 7])
def test_packets_come_out_of_two(
    suffix: str, dtype: Any, length: int, past: int
) -> None:
    room = 32 * length + 8
    values = np.random.default_rng(1).standard_normal(room).astype(dtype)
    output = np.zeros(32 * length, dtype)
    body = (
        f"r = cuda.local.array({length}, float32)\nif t < 30:\n"
        f"    j = int32(i * {length} + {past})\n"
        f"    load_packet_across_{length}_{suffix}(r, 0, a, j)\n"
        f"    store_packet_{length}_{suffix}(b, int32(i * {length}), r, 0)"
    )
    kinds = "CPointer(uint16), CPointer(uint16)"
    report = execute(body, kinds, PointerArgument(values), PointerArgument(output))
    done = 30 * length
    assert (output[:done] == values[past : past + done]).all()
    assert not output[done:].any()
    assert report.accesses["a"].packet_reads == 60


def test_the_report_tells_repeated_from_distinct_reads() -> None:
    source, output = np.arange(4, dtype=np.int32), np.zeros(64, np.int32)
    body = "store(b, i, load(a, udiv(t, int32(8))))"
    kinds = "CPointer(int32), CPointer(int32)"
    report = execute(
        body, kinds, PointerArgument(source), PointerArgument(output), grid=(2, 1, 1)
    )
    assert (output == np.arange(64) % 32 // 8).all()
    assert report.accesses["a"].elements_read == 64
    assert report.accesses["a"].distinct_elements_read == 4
    assert report.accesses["b"].elements_written == 64


def test_every_device_primitive_has_a_meaning_here() -> None:
    handled = {"select", "shuffle", "shuffle_down", "shuffle_xor"}
    handled |= {"ticket", "reset", "wait", "post", "receive", "load_volatile"}
    handled |= {"await_copies"} | {
        f"cluster_{x}" for x in ("barrier", "post", "receive")
    }
    dtypes = {"boolean", "float32", "float64"}
    dtypes |= {f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)}
    memory = {
        name
        for name in device.__all__
        if name.partition("_")[0] in ("load", "store", "copy", "take", "draw")
        and name != "load_volatile"
    }
    assert set(device.__all__) == set(ELEMENTWISE) | handled | dtypes | memory


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_primitives_wrap_as_numpy(dtype: str) -> None:
    limits = np.iinfo(dtype)
    edge = np.array([0, 1, 2, 3, 7, limits.max, limits.min, limits.max - 1], dtype)
    one, other = (grid.ravel().copy() for grid in np.meshgrid(edge, edge))
    names = "add subtract multiply floor_divide remainder fmod left_shift right_shift"
    for name in [*names.split(), "maximum", "bit_xor", "gcd"]:
        output = np.zeros(64, dtype)
        kinds = ", ".join([f"CPointer({dtype})"] * 3)
        body = f"store(c, i, {name}(load(a, i), load(b, i)))"
        buffers = PointerArgument(one), PointerArgument(other), PointerArgument(output)
        execute(body, kinds, *buffers, block=(64, 1, 1))
        function = getattr(np, {"bit_xor": "bitwise_xor"}.get(name, name))
        with np.errstate(all="ignore"):
            assert (output == function(one, other)).all(), name
        if name in ("floor_divide", "remainder", "fmod"):
            assert not output[other == 0].any()


def test_integer_powers_truncate_where_numpy_refuses() -> None:
    power = ELEMENTWISE["power"].meaning
    base = np.array([2, 1, -1, -1, 0, 3], np.int32)
    exponent = np.array([-1, -5, -2, -3, -1, 4], np.int32)
    assert power(base, exponent).tolist() == [0, 1, 1, -1, 0, 81]
    assert power(base, exponent).dtype == np.int32


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 10, 28, 641, 65537, 2**31 - 1])
def test_prepared_division_is_exact(divisor: int) -> None:
    shift = (divisor - 1).bit_length()
    multiplier = -(-(1 << (31 + shift)) // divisor)
    signed = multiplier - 2**32 if multiplier >= 2**31 else multiplier
    some = [0, 1, divisor - 1, divisor, 2 * divisor - 1, 123456789, 2**31 - 1]
    n = np.array([min(x, 2**31 - 1) for x in some], np.int32)
    output = np.zeros_like(n)
    for dtype, factor in (("uint32", multiplier), ("int32", signed)):
        body = "if i < 7:\n    store(b, i, fast_divide(load(a, i), c, d))"
        kinds = f"CPointer(int32), CPointer(int32), {dtype}, int32"
        execute(body, kinds, PointerArgument(n), PointerArgument(output), factor, shift)
        assert (output == n // divisor).all()


@pytest.mark.parametrize("name", ["erf", "erfc", "erfinv", "erfcinv"])
def test_functions_of_python_floats_warn_of_nothing(name: str) -> None:
    numbers = np.array([np.nan, -np.inf, np.inf, -3.0, 0.0, 1e300, 5e-324, 2.0])
    with np.errstate(all="raise"):
        ELEMENTWISE[name].meaning(numbers)
