# SPDX-License-Identifier: Apache-2.0
"""Every CUDA primitive compiles for every dtype it takes, to the instructions meant."""

from __future__ import annotations

import re

import pytest

from nfuser.codegen.numba.compile_cuda import CudaBinary, compile_cuda
from nfuser.codegen.primitives import cuda as primitives
from nfuser.compiler.ir.point_op import POINT_OPS, Gives, Takes
from nfuser.errors import CompileError

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = INTEGERS + FLOATS


def operations(arity: int, *takes: Takes, gives: Gives = "same") -> list[str]:
    """Return the names of all rows of one kind; those of near results stand apart."""
    rows = (op for op in POINT_OPS.values() if not op.name.endswith("_near"))
    return [
        op.name
        for op in rows
        if op.arity == arity and op.takes in takes and op.gives == gives
    ]


FLOAT_UNARY = operations(1, "float")
NUMBER_UNARY = operations(1, "number")
FLOAT_TESTS = operations(1, "float", gives="bool")
NUMBER_BINARY = operations(2, "number", "real")
FLOAT_BINARY = operations(2, "float")
NEAR = [name for name in POINT_OPS if name.endswith("_near")]
INTEGER_BINARY = operations(2, "integer", "bits")
CASTS = [
    "to_bool",
    "to_i8",
    "to_i16",
    "to_i32",
    "to_i64",
    "to_u8",
    "to_u16",
    "to_u32",
    "to_u64",
    "to_f32",
    "to_f64",
]
RANDOM_WORDS = ["philox16", "philox32", "philox64"]
DRAWN_PACKETS = (2, 4, 8, 16)
ROUNDINGS = ["round_f16", "round_bf16"]
SHUFFLES = ["shuffle", "shuffle_down", "shuffle_xor"]

HEADER = "from numba import cuda\nfrom nfuser.codegen.primitives.cuda import *\n"


def build(
    lines: list[str], *parameters: str, cc: tuple[int, int] = (9, 0)
) -> CudaBinary:
    """Compile a kernel of ``lines`` with parameters a, b, ... of the named types."""
    names = "abcdefgh"[: len(parameters)]
    body = "".join(f"    {line}\n" for line in lines)
    head = f"def kernel({', '.join(names)}):\n    i = int32(cuda.threadIdx.x)\n"
    signature = f"void({', '.join(parameters)})"
    return compile_cuda(HEADER + head + body, "kernel", signature, cc, 256)


def pointer(kind: str) -> str:
    return f"CPointer({kind})"


def stored(kind: str, expressions: list[str]) -> list[str]:
    """Store each expression over x = a[i], y = b[i] in an output of type ``kind``."""
    lines = ["x = load(a, i)", "y = load(b, i)"]
    for k, expression in enumerate(expressions):
        lines.append(f"store(c, int32(i + {1000 * k}), {expression})")
    return lines


@pytest.mark.parametrize("kind", NUMBERS)
def test_elementwise_primitives_compile_without_spills(kind: str) -> None:
    unary, binary = list(NUMBER_UNARY), list(NUMBER_BINARY)
    if kind in FLOATS:
        unary += FLOAT_UNARY
        binary += FLOAT_BINARY
    else:
        unary.append("invert")
        binary += INTEGER_BINARY
    expressions = [f"{name}(x)" for name in unary]
    expressions += [f"{name}(x, y)" for name in binary]
    expressions.append("select(to_bool(x), x, y)")
    p = pointer(kind)
    assert build(stored(kind, expressions), p, p, p).spills == 0


def test_near_functions_of_f32_call_nothing() -> None:
    calls = [f"{name}(x)" for name in NEAR if name != "divide_near"]
    lines = stored("float32", ["divide_near(x, y)", *calls])
    p = pointer("float32")
    ptx = build(lines, p, p, p).ptx
    assert "div.full.f32" in ptx
    assert "rcp.approx.f32" in ptx
    assert "ex2.approx.ftz.f32" in ptx
    assert "sqrt.approx.f32" in ptx
    assert "call" not in ptx


@pytest.mark.parametrize("source", [*NUMBERS, "boolean"])
def test_casts_and_shuffles_compile_without_spills(source: str) -> None:
    names = {"boolean": "bool", "float32": "f32", "float64": "f64"}
    short = names.get(source, source.replace("uint", "u").replace("int", "i"))
    lines = [f"x = to_{short}(load(a, i))"]
    lines += [
        f"store(b, int32(i + {1000 * k}), to_f64({name}(x)))"
        for k, name in enumerate(CASTS)
    ]
    lines += [
        f"store(b, int32(i + {100000 + 1000 * k}), to_f64({name}(x, 4)))"
        for k, name in enumerate(SHUFFLES)
    ]
    binary = build(lines, pointer("float64"), pointer("float64"))
    assert binary.spills == 0
    words = 2 if source in ("int64", "uint64", "float64") else 1
    assert binary.ptx.count("shfl.sync") == words * len(SHUFFLES)


@pytest.mark.parametrize("kind", FLOATS)
def test_float_tests_and_roundings_compile(kind: str) -> None:
    lines = ["x = load(a, i)"]
    lines += [
        f"store_bool(b, int32(i + {1000 * k}), {name}(x))"
        for k, name in enumerate(FLOAT_TESTS)
    ]
    lines += [
        f"store(c, int32(i + {1000 * k}), {name}(x))"
        for k, name in enumerate(ROUNDINGS)
    ]
    if kind == "float64":
        lines += ["store(c, int32(i + 9000), to_f32_odd(x))"]
    lines += ["store_f16(d, i, x)", "store_bf16(e, i, x)"]
    word = pointer("uint16")
    kinds = (pointer(kind), pointer("uint8"), pointer("float32"), word, word)
    assert build(lines, *kinds).spills == 0


@pytest.mark.parametrize("cc", [(8, 0), (9, 0), (12, 0)])
def test_one_instruction_does_what_one_instruction_can(cc: tuple[int, int]) -> None:
    names = ["maximum", "minimum", "rint", "floor", "ceil", "trunc", "sqrt", "divide"]
    arity = {"maximum": 2, "minimum": 2, "divide": 2}
    calls = [f"{n}({', '.join('xy'[: arity.get(n, 1)])})" for n in names]
    p = pointer("float32")
    ptx = build(stored("float32", calls), p, p, p, cc=cc).ptx
    for instruction in (
        "max.NaN.f32",
        "min.NaN.f32",
        "cvt.rni.f32.f32",
        "cvt.rmi.f32.f32",
        "cvt.rpi.f32.f32",
        "cvt.rzi.f32.f32",
        "sqrt.rn.f32",
        "div.rn.f32",
    ):
        assert instruction in ptx
    assert ".approx" not in ptx


def test_index_division_is_one_instruction_without_a_zero_test() -> None:
    lines = [
        "store(c, i, udiv(b, d))",
        "store(c, int32(i + 1000), urem(b, d))",
        "store(c, int32(i + 2000), fast_divide(b, d, e))",
    ]
    ptx = build(lines, "int32", "int32", pointer("int32"), "int32", "int32").ptx
    assert "div.u32" in ptx
    assert "rem.u32" in ptx or "mul.lo" in ptx
    assert "mul.hi.u32" in ptx
    assert "setp" not in ptx


PACKETS = [
    (length, suffix, storage, local)
    for suffix, storage, local, size in [
        *(("", kind, kind, int(kind.lstrip("uintfloa")) // 8) for kind in NUMBERS),
        ("_f16", "uint16", "float32", 2),
        ("_bf16", "uint16", "float32", 2),
        ("_bool", "uint8", "boolean", 1),
    ]
    for length in (2, 4, 8, 16)
    if length * size <= 16
]


@pytest.mark.parametrize(("length", "suffix", "storage", "local"), PACKETS)
def test_a_packet_is_one_access(
    length: int, suffix: str, storage: str, local: str
) -> None:
    lines = [
        f"r0 = cuda.local.array({length}, {local})",
        f"load_packet_{length}{suffix}(r0, 0, a, int32(i * {length}))",
        f"store_packet_{length}{suffix}(b, int32(i * {length}), r0, 0)",
    ]
    binary = build(lines, pointer(storage), pointer(storage))
    accesses = [
        line.split()[0]
        for line in binary.ptx.splitlines()
        if line.lstrip().startswith(("ld.global", "st.global"))
    ]
    size = length * (1 if storage.endswith("8") else int(storage[-2:]) // 8)
    assert len(accesses) == 2, accesses
    assert accesses[0].startswith("ld.global.nc")
    assert binary.local_bytes == 0
    for access in accesses:
        parts = access.split(".")
        vector = int(parts[-2][1:]) if parts[-2].startswith("v") else 1
        assert vector * int(parts[-1][1:]) // 8 == size, access


@pytest.mark.parametrize(("length", "suffix", "storage", "local"), PACKETS)
def test_a_packet_is_copied_and_taken_in_one_access_each(
    length: int, suffix: str, storage: str, local: str
) -> None:
    size = length * (1 if storage.endswith("8") else int(storage[-2:]) // 8)
    if size not in (4, 8, 16):
        return
    lines = [
        f"s = cuda.shared.array(0, {storage})",
        f"r0 = cuda.local.array({length}, {local})",
        f"copy_packet_{length}(s, int32(i * {length}), a, int32(i * {length}))",
        "await_copies()",
        f"take_packet_{length}{suffix}(r0, 0, s, int32(i * {length}))",
        f"store_packet_{length}{suffix}(b, int32(i * {length}), r0, 0)",
    ]
    binary = build(lines, pointer(storage), pointer(storage))
    assert binary.ptx.count("cp.async.c") == 1
    assert f"], {size};" in binary.ptx
    assert "cp.async.wait_all" in binary.ptx
    assert binary.ptx.count("ld.shared") == 1
    assert binary.local_bytes == 0


def test_volatile_loads_and_tickets_are_ordered_at_device_scope() -> None:
    lines = [
        "t = ticket(a, 0)",
        "store(c, i, load_volatile(b, i))",
        "store(c, int32(i + 64), load_volatile(b, i))",
        "if t == int32(cuda.gridDim.x) - 1:",
        "    reset(a, 0)",
    ]
    p = pointer("float32")
    ptx = build(lines, pointer("uint32"), p, p).ptx
    assert "atom.add.acq_rel.gpu.global.u32" in ptx
    assert ptx.count("ld.relaxed.gpu.global.f32") == 2
    assert "ld.global.nc" not in ptx


def test_a_wait_spins_on_an_acquire() -> None:
    lines = ["wait(a, 0, int32(cuda.gridDim.x))", "store(b, i, load_volatile(b, i))"]
    ptx = build(lines, pointer("uint32"), pointer("float32")).ptx
    assert ptx.count("ld.acquire.gpu.global.u32") == 1
    assert ptx.index("ld.acquire") < ptx.index("ld.relaxed")


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_box_takes_a_word_or_two(kind: str) -> None:
    lines = [
        "post(a, i, load(b, i))",
        f"store(c, i, receive(a, int32(i + 1), {kind}(0)))",
    ]
    p = pointer(kind)
    ptx = build(lines, pointer("uint64"), p, p).ptx
    words = 2 if kind.endswith("64") else 1
    assert ptx.count("st.relaxed.gpu.global.u64") == words
    assert ptx.count("ld.relaxed.gpu.global.u64") == words


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_box_in_another_block_takes_a_word_or_two_of_a_turn(kind: str) -> None:
    lines = [
        "boxes = cuda.shared.array(64, uint64)",
        "cluster_barrier()",
        "cluster_post(boxes, i, 1, load(b, i), c)",
        f"store(b, i, cluster_receive(boxes, i, {kind}(0), c))",
    ]
    p = pointer(kind)
    ptx = build(lines, p, p, "int32").ptx
    words = 2 if kind.endswith("64") else 1
    assert ptx.count("mapa.shared::cluster") == words
    assert ptx.count("st.relaxed.cluster.shared::cluster.u64") == words
    assert ptx.count("ld.relaxed.cluster.shared::cta.u64") == words
    assert ptx.index("barrier.cluster.wait") < ptx.index("mapa")


@pytest.mark.parametrize("kind", NUMBERS)
def test_volatile_loads_take_every_number(kind: str) -> None:
    p = pointer(kind)
    ptx = build(["store(b, i, load_volatile(a, i))"], p, p).ptx
    assert "ld.relaxed.gpu.global" in ptx


def test_shared_arrays_are_indexed_without_wraparound() -> None:
    lines = [
        "s0 = cuda.shared.array(256, float32)",
        "s0[i] = load(a, i)",
        "cuda.syncthreads()",
        "store(b, i, s0[int32(i + c)])",
    ]
    binary = build(lines, pointer("float32"), pointer("float32"), "int32")
    assert binary.shared_bytes == 1024
    assert "selp" not in binary.ptx
    assert "shr" not in binary.ptx


def test_the_text_alone_decides_the_ptx() -> None:
    lines = ["s0 = cuda.shared.array(4, float32)", "s0[i] = load(a, i)"]
    lines.append("store(b, i, s0[int32(i - i)])")
    p = pointer("float32")
    first, second = build(lines, p, p), build(lines, p, p)
    assert first.ptx == second.ptx
    assert first.cubin == second.cubin
    assert first.entry == "kernel"
    assert ".entry kernel(" in first.ptx


def test_no_comparison_is_left_to_an_assembler_that_forgets_nan() -> None:
    lines = ["x = load(a, i)", "store(b, i, float32(x * x >= float32(-1.0)))"]
    ptx = build(lines, pointer("float32"), pointer("float32")).ptx
    assert "setp.ltu.f32" in ptx
    assert not re.search(r"setp\.(lt|le|gt|ge)\.f32", ptx)


def test_the_decorator_is_stripped_and_its_bounds_kept() -> None:
    text = HEADER + (
        '@cuda.jit("void(CPointer(float32))", launch_bounds=96)\n'
        "def fill(T0):\n    store(T0, int32(cuda.threadIdx.x), float32(1.0))\n"
    )
    binary = compile_cuda(text, "fill", "void(CPointer(float32))")
    assert ".maxntid 96" in binary.ptx


def test_a_register_limit_reaches_the_linker() -> None:
    p = pointer("float64")
    calls = [f"{name}(x)" for name in ("sin", "exp", "log", "tanh")]
    free = build(stored("float64", calls), p, p, p)
    text = HEADER + "def kernel(a, b, c):\n    i = int32(cuda.threadIdx.x)\n"
    text += "".join(f"    {line}\n" for line in stored("float64", calls))
    limited = compile_cuda(text, "kernel", f"void({p}, {p}, {p})", max_registers=24)
    assert free.registers > 24
    assert limited.registers <= 24


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("store(a, i, exp(i))", "int32"),
        ("store(a, i, maximum(load(a, i), i))", "int32"),
        ("store_f16(a, i, load(a, i))", "float32"),
        ("store(a, i, load_f16(a, i))", "float32"),
    ],
)
def test_a_wrong_dtype_does_not_compile(line: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        build([line], pointer("float32"))


@pytest.mark.parametrize("name", RANDOM_WORDS)
def test_random_words_take_two_products_of_halves_a_round(name: str) -> None:
    words = pointer("uint64")
    line = f"store(c, i, {name}(load(a, i), load(b, i), load(b, i)))"
    ptx = build([line], words, words, words).ptx
    assert "call" not in ptx
    assert 20 <= ptx.count("mul.") <= 21  # one more for the address


@pytest.mark.parametrize(("kind", "suffix"), [("float32", "f32"), ("float64", "f64")])
def test_a_product_and_a_sum_are_one_instruction(kind: str, suffix: str) -> None:
    p = pointer(kind)
    ptx = build(stored(kind, ["multiply_add(x, y, x)"]), p, p, p).ptx
    assert ptx.count(f"fma.rn.{suffix}") == 1
    assert f"add.{suffix}" not in ptx
    assert f"add.rn.{suffix}" not in ptx


@pytest.mark.parametrize(("kind", "count"), [("uint32", 4), ("uint64", 2)])
@pytest.mark.parametrize("width", DRAWN_PACKETS)
def test_a_packet_of_words_that_begins_a_block_makes_each_block_once(
    kind: str, count: int, width: int
) -> None:
    lines = [f"words = cuda.local.array({width}, {kind})"]
    given = f"to_u64(int64(i) * {width * count}), load(b, 0), load(b, 1)"
    lines.append(f"draw_packet_{width}(words, 0, {given})")
    lines += [f"store(a, int32(i + {k}), words[{k}])" for k in range(width)]
    found = build(lines, pointer(kind), pointer("uint64"))
    assert found.spills == 0
    blocks = -(-width // count)
    rest = width + 4  # products of indices, and words of 64 bits put together
    assert 20 * blocks - 3 <= found.ptx.count("mul.") < 20 * blocks + rest


def test_every_public_primitive_is_named_in_a_test() -> None:
    dtypes = {*NUMBERS, "boolean"}
    grouped = {
        *FLOAT_UNARY,
        *NUMBER_UNARY,
        *FLOAT_TESTS,
        *NUMBER_BINARY,
        *FLOAT_BINARY,
        *INTEGER_BINARY,
        *CASTS,
        *ROUNDINGS,
        "to_f32_odd",
        *SHUFFLES,
        *NEAR,
    }
    packets = (
        {
            f"{d}_packet_{n}{s}"
            for n, s, _, _ in PACKETS
            for d in ("load", "store", "take")
        }
        | {f"load_packet_across_{n}{s}" for n, s, _, _ in PACKETS}
        | {f"copy_packet_{n}" for n in (2, 4, 8, 16)}
    )
    memory = {
        f"{d}{s}" for d in ("load", "store") for s in ("", "_f16", "_bf16", "_bool")
    }
    single = {
        "invert",
        "select",
        "udiv",
        "urem",
        "fast_divide",
        "load_volatile",
        "ticket",
        "reset",
        "wait",
        "post",
        "receive",
        "cluster_barrier",
        "cluster_post",
        "cluster_receive",
        "await_copies",
        "multiply_add",
        *RANDOM_WORDS,
        *(f"draw_packet_{width}" for width in DRAWN_PACKETS),
    }
    assert set(primitives.__all__) == dtypes | grouped | packets | memory | single


BYTES = """\
from numba import cuda

from nfuser.codegen.primitives.cuda import (
    add,
    int8,
    load,
    load_packet_{n},
    store,
    to_f32,
)


@cuda.jit("void(CPointer(float32), CPointer(int8), int32)")
def bytes(out, x, j):
    local0 = cuda.local.array({n}, int8)
    load_packet_{n}(local0, 0, x, j)
    for k in range({n}):
        store(out, k, to_f32(add(local0[k], load(x, j + k - 1))))
"""


@pytest.mark.parametrize("length", [4, 8, 16])
def test_bytes_that_are_read_twice_are_added_in_eight_bits(length: int) -> None:
    signature = "void(CPointer(float32), CPointer(int8), int32)"
    ptx = compile_cuda(BYTES.format(n=length), "bytes", signature).ptx
    sums = re.findall(r"add\.s16\s+(%rs\d+)", ptx)
    assert len(sums) == length
    for number in sums:
        assert re.search(rf"cvt\.(s16|rn\.f32)\.s8\s+%\w+, {number};", ptx)
