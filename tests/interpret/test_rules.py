# SPDX-License-Identifier: Apache-2.0
"""Each rule of the interpreter, broken by a small kernel and kept by its neighbour."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nfuser.execution.interpret import InterpreterError, PointerArgument, RunReport, run

HEADER = "from numba import cuda\nfrom nfuser.codegen.primitives.cuda import *\n"
OPENING = (
    "t = int32(cuda.threadIdx.x)\n"
    "i = int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)\n"
)


def execute(
    body: str,
    signature: str,
    *arguments: Any,
    grid: int = 1,
    block: int = 32,
    seed: int = 0,
) -> RunReport:
    names = "abcdefg"[: len(arguments)]
    lines = "".join(f"    {line}\n" for line in (OPENING + body).splitlines())
    text = f'{HEADER}@cuda.jit("void({signature})")\ndef kernel({", ".join(names)}):\n'
    return run(
        text + lines,
        "kernel",
        (grid, 1, 1),
        (block, 1, 1),
        arguments,
        seed=seed,
    )


def floats(size: int) -> PointerArgument:
    return PointerArgument(np.arange(size, dtype=np.float32))


def empty(size: int) -> PointerArgument:
    return PointerArgument(np.zeros(size, np.float32), initialized=False)


F = "CPointer(float32)"
FF = f"{F}, {F}"


def refuses(message: str) -> Any:
    return pytest.raises(InterpreterError, match=message)


def test_a_read_past_the_end_names_the_line_the_element_and_the_thread() -> None:
    with refuses(
        r"(?s)line 7: x = load\(a, i\).*out-of-bounds read of a\[20\], which has 20 "
        r"elements, in block \(0, 0, 0\) thread \(20, 0, 0\)"
    ):
        execute("x = load(a, i)\nstore(b, i, x)", FF, floats(20), empty(32))


def test_a_write_past_the_end_is_found() -> None:
    with refuses(r"out-of-bounds write of b\[31\]"):
        execute("store(b, i, load(a, i))", FF, floats(32), empty(31))


def test_a_negative_element_is_found_unless_the_pointer_has_room_below() -> None:
    body = "store(b, i, load(a, int32(i - 4)))"
    with refuses(r"out-of-bounds read of a\[-4\]"):
        execute(body, FF, floats(32), empty(32))
    output = empty(32)
    execute(body, FF, PointerArgument(np.arange(36, dtype=np.float32), 4), output)
    assert output.storage[0] == 0
    assert output.storage[31] == 31


def test_guarded_threads_do_not_read() -> None:
    output = empty(20)
    report = execute("if i < 20:\n    store(b, i, load(a, i))", FF, floats(20), output)
    assert (output.storage == np.arange(20)).all()
    assert report.accesses["a"].elements_read == 20


def test_a_packet_that_straddles_the_end_is_found() -> None:
    body = "r = cuda.local.array(4, float32)\nload_packet_4(r, 0, a, int32(i * 4))"
    with refuses(r"out-of-bounds read of a\[124:128\]"):
        execute(body, FF, floats(126), empty(1))


def test_two_packets_that_straddle_the_end_are_found() -> None:
    body = "r = cuda.local.array(4, float32)\n"
    body += "load_packet_across_4(r, 0, a, int32(i * 4 + 1))"
    execute(body, FF, floats(132), empty(1))
    with refuses(r"out-of-bounds read of a\[128:132\]"):
        execute(body, FF, floats(130), empty(1))


@pytest.mark.parametrize(("offset", "address"), [(1, 256), (0, 4), (2, 260)])
def test_a_misaligned_packet_is_found(offset: int, address: int) -> None:
    body = "r = cuda.local.array(4, float32)\nload_packet_4(r, 0, a, int32(i * 4))"
    source = PointerArgument(np.zeros(256, np.float32), offset, address)
    with refuses(r"misaligned packet: read of 16 bytes at a\[0\]"):
        execute(body, FF, source, empty(1))
    execute(body, FF, PointerArgument(np.zeros(256, np.float32), 1, 12), empty(1))


COPIED = (
    "s = cuda.shared.array(128, float32)\nr = cuda.local.array(4, float32)\n"
    "copy_packet_4(s, int32(t * 4), a, int32(i * 4))\n"
)
TAKEN = "take_packet_4(r, 0, s, int32(t * 4))\nstore_packet_4(b, int32(i * 4), r, 0)"


def test_a_copy_is_seen_once_it_was_awaited() -> None:
    output = empty(128)
    execute(f"{COPIED}await_copies()\n{TAKEN}", FF, floats(128), output)
    assert (output.storage == np.arange(128)).all()
    with refuses("read of shared s.*which nothing wrote"):
        execute(f"{COPIED}{TAKEN}", FF, floats(128), empty(128))


def test_what_another_thread_copied_takes_a_barrier() -> None:
    taken = TAKEN.replace("int32(t * 4)", "int32(124 - t * 4)")
    with refuses("race: read of shared s"):
        execute(f"{COPIED}await_copies()\n{taken}", FF, floats(128), empty(128))
    body = f"{COPIED}await_copies()\ncuda.syncthreads()\n{taken}"
    execute(body, FF, floats(128), empty(128))


def test_a_copy_past_the_end_is_found() -> None:
    with refuses(r"out-of-bounds copy of a\[124:128\]"):
        execute(COPIED, FF, floats(126), empty(1))


def test_a_misaligned_packet_store_is_found() -> None:
    body = (
        "r = cuda.local.array(2, float32)\nr[0] = float32(1.0)\nr[1] = float32(2.0)\n"
        "store_packet_2(b, int32(i * 3), r, 0)"
    )
    with refuses(r"misaligned packet: write of 8 bytes at b\[3\]"):
        execute(body, FF, floats(1), empty(128))


def test_reading_what_nothing_wrote_is_found() -> None:
    with refuses(r"read of b\[0\], which nothing wrote"):
        execute("store(b, i, load(b, i))", FF, floats(1), empty(32))
    body = "store(b, i, float32(1.0))\nstore(a, i, load_volatile(b, i))"
    execute(body, FF, floats(32), empty(32))


def test_a_local_array_is_written_before_it_is_read() -> None:
    declared = "r = cuda.local.array(4, float32)\n"
    with refuses(r"r\[2\] was not assigned in block \(0, 0, 0\) thread \(0, 0, 0\)"):
        execute(declared + "store(b, i, r[2])", FF, floats(1), empty(32))
    half = "if t < 16:\n    r[2] = float32(1.0)\n"
    with refuses(r"r\[2\] was not assigned in .* thread \(16, 0, 0\)"):
        execute(declared + half + "store(b, i, r[2])", FF, floats(1), empty(32))
    guarded = "if t < 16:\n    store(b, i, r[2])"
    execute(declared + half + guarded, FF, floats(1), empty(32))


def test_a_shared_array_is_written_before_it_is_read() -> None:
    body = (
        "s = cuda.shared.array(32, float32)\nif t < 31:\n    s[t] = float32(0.0)\n"
        "cuda.syncthreads()\nstore(b, i, s[int32(31 - t)])"
    )
    with refuses(r"read of shared s\[31\], which nothing wrote, in .*thread \(0,"):
        execute(body, FF, floats(1), empty(32))


def test_a_variable_is_assigned_before_it_is_read() -> None:
    body = "if t < 16:\n    x = load(a, i)\nif t < {}:\n    store(b, i, x)"
    with refuses(r"x was not assigned in .* thread \(16, 0, 0\)"):
        execute(body.format(17), FF, floats(32), empty(32))
    execute(body.format(16), FF, floats(32), empty(32))


EXCHANGE = (
    "s = cuda.shared.array({n}, float32)\ns[t] = load(a, i)\n{between}\n"
    "store(b, i, s[int32({n} - 1 - t)])"
)


@pytest.mark.parametrize("block", [64, 256])
def test_a_missing_barrier_is_a_race(block: int) -> None:
    arguments = (FF, floats(2 * block), empty(2 * block))
    for between in ("", "cuda.syncwarp()"):
        with refuses(r"race: read of shared s\[\d+\], written by block"):
            body = EXCHANGE.format(n=block, between=between)
            execute(body, *arguments, grid=2, block=block)
    body = EXCHANGE.format(n=block, between="cuda.syncthreads()")
    execute(body, *arguments, grid=2, block=block)


def test_a_warp_barrier_orders_one_warp() -> None:
    body = EXCHANGE.format(n=32, between="cuda.syncwarp()")
    execute(body, FF, floats(32), empty(32))


def test_overwriting_what_others_still_read_is_a_race() -> None:
    body = (
        "s = cuda.shared.array(64, float32)\ns[t] = load(a, i)\ncuda.syncthreads()\n"
        "x = s[int32(63 - t)]\n{}s[t] = x\ncuda.syncthreads()\nstore(b, i, s[t])"
    )
    with refuses(r"race: write of shared s\[0\], read by .*thread \(63, 0, 0\)"):
        execute(body.format(""), FF, floats(64), empty(64), block=64)
    good = body.format("cuda.syncthreads()\n")
    execute(good, FF, floats(64), empty(64), block=64)


def test_two_threads_that_write_one_element_are_a_race() -> None:
    with refuses(r"race: write of b\[0\]"):
        execute("store(b, 0, load(a, i))", FF, floats(32), empty(32))
    shared = "s = cuda.shared.array(1, float32)\ns[0] = load(a, i)"
    with refuses(r"race: write of shared s\[0\]"):
        execute(shared, FF, floats(32), empty(32))


def test_blocks_race_whatever_their_order() -> None:
    body = "if t == 0:\n    store(b, 0, load(a, i))"
    for seed in range(4):
        with refuses(r"race: write of b\[0\], written by block"):
            execute(body, FF, floats(128), empty(1), grid=4, seed=seed)


def test_a_barrier_does_not_order_blocks() -> None:
    body = (
        "store(b, i, load(a, i))\ncuda.syncthreads()\n"
        "x = load_volatile(b, int32(127 - i))\nstore(a, i, x)"
    )
    with refuses(r"race: read of b\[\d+\], written by block"):
        execute(body, FF, floats(128), empty(128), grid=4)


def test_buffers_over_one_storage_share_its_races() -> None:
    storage = np.arange(64, dtype=np.float32)
    body = "store(b, i, load(a, int32(i + 1)))"
    with refuses(r"race"):
        execute(body, FF, PointerArgument(storage), PointerArgument(storage), block=32)
    execute(
        "store(b, i, load(a, i))",
        FF,
        PointerArgument(storage),
        PointerArgument(storage),
    )


def test_an_invariant_load_of_written_memory_is_refused() -> None:
    body = "store(b, i, float32(1.0))\nstore(a, i, load(b, i))"
    with refuses(r"load of b\[0\], which this kernel wrote: use load_volatile"):
        execute(body, FF, floats(32), empty(32))


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("cuda.syncthreads()", "divergent syncthreads: 40 of 64 threads of a block"),
        ("x = shuffle_xor(x, 1)", "divergent shuffle_xor: 8 of 32 threads of a warp"),
        ("x = shuffle_down(x, 1)", "divergent shuffle_down: 8 of 32"),
        ("x = shuffle(x, 0)", "divergent shuffle: 8 of 32"),
        ("cuda.syncwarp()", "divergent syncwarp: 8 of 32"),
    ],
)
def test_a_divergent_exchange_is_found(call: str, what: str) -> None:
    body = f"x = load(a, i)\nif t < {{}}:\n    {call}\nstore(b, i, x)"
    with refuses(what + r".*thread \(40, 0, 0\) does not"):
        execute(body.format(40), FF, floats(64), empty(64), block=64)
    whole = 64 if "threads" in call else 32
    execute(body.format(whole), FF, floats(64), empty(64), block=64)


def test_a_barrier_in_a_loop_of_different_lengths_is_divergent() -> None:
    body = "k = t\nwhile k < 40:\n    cuda.syncthreads()\n    k = int32(k + 32)"
    with refuses("divergent syncthreads"):
        execute(body, FF, floats(1), empty(1))
    by_block = body.replace("k = t", "k = int32(cuda.blockIdx.x)")
    execute(by_block, FF, floats(1), empty(1), grid=16)


def test_shuffles_need_whole_warps() -> None:
    with refuses("blocks of 48"):
        body = "store(b, i, shuffle_xor(load(a, i), 1))"
        execute(body, FF, floats(48), empty(48), block=48)


def test_an_index_that_overflows_is_found() -> None:
    body = "k = int32(c * (i + 1))\nif k < 0:\n    store(b, 0, load(a, 0))"
    with refuses(r"index overflow: 2200000000 does not fit int32"):
        execute(body, FF + ", int32", floats(1), empty(1), 100_000_000)
    execute(body, FF + ", int32", floats(1), empty(1), 67_000_000)


def test_a_thread_that_is_masked_out_may_overflow() -> None:
    body = "if i < 4:\n    k = int32(c * i)\n    if k < 0:\n        store(b, 0, x)"
    body = f"x = load(a, 0)\n{body}"
    execute(body, FF + ", int32", floats(1), empty(1), 500_000_000)


def test_array_indices_are_checked() -> None:
    declared = "r = cuda.local.array(4, float32)\nr[0] = float32(0.0)\n"
    for index, message in (
        ("int32(t - 1)", r"negative array index r\[-1\]"),
        ("t", r"out-of-bounds r\[31\] of 4 elements"),
        ("4", r"out-of-bounds r\[4\]"),
    ):
        with refuses(message):
            body = f"{declared}r[{index}] = float32(1.0)"
            execute(body, FF, floats(1), empty(1))
    shared = "s = cuda.shared.array(4, float32)\ns[int32(t - 1)] = float32(1.0)"
    with refuses(r"negative array index: shared s\[-1\]"):
        execute(shared, FF, floats(1), empty(1))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("store(b, i, i)", "store does not take int32 for float32"),
        ("store(b, i, exp(i))", "exp does not take"),
        ("store(b, i, maximum(load(a, i), 1.0))", "float32, float64"),
        ("store(b, i, load(a, i) * 2)", "float32 \\* int64 has no exact meaning"),
        ("store(b, i, load(i, i))", "i is not a pointer"),
        ("store(b, i, a[i])", "a is not an array"),
        ("store(b, i, load_f16(a, i))", "the format is over uint16"),
        ("store(b, i, mystery(i))", "mystery is not a primitive"),
        ("x = y", "y is not assigned"),
        ("for k in range(i):\n    x = k", "over a range of constants"),
        ("if i:\n    x = i", "a condition is a bool"),
        ("with i:\n    x = i", "outside the kernel language"),
        ("x = [i]", "outside the kernel language"),
        ("x = load(a, load(a, i))", "an index is an integer"),
        ("x = udiv(i, 32)", "udiv does not take \\(int32, int64\\)"),
        ("x = i\nif t < 3:\n    x = load(a, i)\nstore(b, i, x)", "x is int32 on one"),
    ],
)
def test_source_outside_the_language_is_refused(line: str, reason: str) -> None:
    with refuses(reason):
        execute(line, FF, floats(32), empty(32))


def test_arguments_are_checked() -> None:
    with refuses("a points to float32, not float64"):
        execute("x = i", F, PointerArgument(np.zeros(4)))
    with refuses("a = 3000000000 does not fit int32"):
        execute("x = a", "int32", 3_000_000_000)
    with refuses("takes 1 arguments, not 2"):
        run(
            f'{HEADER}@cuda.jit("void(int32)")\ndef kernel(a):\n    x = a\n',
            "kernel",
            (1, 1, 1),
            (32, 1, 1),
            [1, 2],
        )
    with refuses("cannot be launched"):
        execute("x = a", "int32", 1, block=2048)


def test_a_block_is_within_the_launch_bounds() -> None:
    text = '@cuda.jit("void(int32)", launch_bounds=64)\ndef kernel(a):\n    x = a\n'
    run(text, "kernel", (1, 1, 1), (8, 8, 1), [1])
    with refuses("cannot be launched"):
        run(text, "kernel", (1, 1, 1), (8, 9, 1), [1])
