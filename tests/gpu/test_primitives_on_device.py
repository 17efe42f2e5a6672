# SPDX-License-Identifier: Apache-2.0
"""Each primitive on the hardware gives what its NumPy meaning gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser.execution.interpret import PointerArgument, run
from nfuser.execution.interpret.primitives import CASTS, ELEMENTWISE
from tests.gpu.launch import run_by_numba, run_on_device
from tests.interpret.kernels import KERNELS

if TYPE_CHECKING:
    from pathlib import Path

Array: TypeAlias = np.ndarray[Any, Any]

pytestmark = pytest.mark.gpu

HEADER = "from numba import cuda\nfrom nfuser.codegen.primitives.cuda import *\n"
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
SHORT = {dtype: name for name, dtype in CASTS.items()}
WIDTH = 256


def both(
    text: str, entry: str, grid: int, block: int, *arguments: Any
) -> tuple[list[Array], list[Array]]:
    """Return the buffers after the device, and after the interpreter, ran ``text``."""
    results: list[list[Array]] = []
    for execute in (run_on_device, run):
        copies = [
            PointerArgument(a.copy()) if hasattr(a, "copy") else a for a in arguments
        ]
        execute(text, entry, (grid, 1, 1), (block, 1, 1), copies)
        results.append([b.storage for b in copies if isinstance(b, PointerArgument)])
    return results[0], results[1]


def kernel(lines: list[str], *kinds: str) -> str:
    """Return a kernel of ``lines`` over parameters a, b, ... and n, an int32."""
    names = [*"abcdef"[: len(kinds)], "n"]
    signature = ", ".join([*(f"CPointer({kind})" for kind in kinds), "int32"])
    head = [
        f'@cuda.jit("void({signature})")',
        f"def kernel({', '.join(names)}):",
        "    i = int32(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)",
        "    if i < n:",
    ]
    return HEADER + "\n".join([*head, *(f"        {line}" for line in lines)]) + "\n"


def apply(
    expressions: list[str], result: str, x: Array, y: Array
) -> tuple[Array, Array]:
    """Evaluate expressions over x, y; return rows by the device, and by NumPy."""
    n = x.size
    lines = ["x = load(a, i)", "y = load(b, i)"]
    suffix = "_bool" if result == "bool" else ""
    for k, expression in enumerate(expressions):
        lines.append(f"store{suffix}(c, int32(i + n * {k}), {expression})")
    storage = "uint8" if result == "bool" else result
    output = np.zeros(n * len(expressions), storage)
    text = kernel(lines, str(x.dtype), str(y.dtype), storage)
    device, numpy = both(text, "kernel", -(-n // WIDTH), WIDTH, x, y, output, n)
    shape = len(expressions), n
    return device[2].reshape(shape), numpy[2].reshape(shape)


def assert_same(names: list[str], pair: tuple[Array, Array], *of: Any) -> None:
    """Assert bits are the same, but for the payload and the sign of NaN."""
    for name, device, numpy in zip(names, *pair, strict=True):
        same = device == numpy
        if device.dtype.kind == "f":
            same &= np.signbit(device) == np.signbit(numpy)
            same |= np.isnan(device) & np.isnan(numpy)
        wrong = np.flatnonzero(~same)[:5]
        found = [(*(o[k] for o in of), device[k], numpy[k]) for k in wrong]
        assert not wrong.size, f"{name}: operands, device, NumPy: {found}"


def edges(dtype: str) -> tuple[Array, Array]:
    """Return all pairs of values at which integers are tricky."""
    limits = np.iinfo(dtype)
    some = {
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        31,
        63,
        100,
        limits.max,
        limits.max - 1,
        limits.max // 2,
    }
    if limits.min:
        some |= {-1, -2, -3, -7, -64, limits.min, limits.min + 1, limits.min // 2}
    values = np.array(sorted(some), dtype)
    one, other = np.meshgrid(values, values)
    return one.ravel().copy(), other.ravel().copy()


def tricky(dtype: str, size: int = 4096) -> Array:
    """Return specials, subnormals, halves, and random values of every magnitude."""
    limits = np.finfo(dtype)
    random = np.random.default_rng(0)
    tiny, huge, least = limits.tiny, limits.max, limits.smallest_subnormal
    special = [0.0, 1.0, 0.5, 1.5, 2.5, 0.1, 3.0, np.pi, np.pi / 2, 10.0, 100.0, 1e4]
    special += [tiny, huge, least, least * 3, limits.eps, 1 + limits.eps, np.inf]
    special += [1 - limits.epsneg, 87.0, 88.9, 104.0, 709.5, 745.2, 1e5, 1e9, 1e22]
    spread = 2.0 ** random.uniform(-30, 30, size // 2)
    around = random.uniform(0, 4, size // 2 - len(special))
    values = np.concatenate([np.array(special), spread, around]).astype(dtype)
    nans = np.array([np.nan, -np.nan], dtype)
    return np.concatenate([values, -values, nans])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_primitives(dtype: str) -> None:
    names = "add subtract multiply floor_divide remainder fmod left_shift right_shift"
    names += " bit_and bit_or bit_xor maximum minimum fmax fmin power gcd"
    x, y = edges(dtype)
    calls = [f"{name}(x, y)" for name in names.split()]
    calls += [f"{name}(x)" for name in ["negative", "absolute", "sign", "invert"]]
    calls += ["select(x < y, x, y)"]
    with np.errstate(all="ignore"):
        pair = apply(calls, dtype, x, y)
    assert_same(calls, pair, x, y)


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS])
def test_casts(source: str) -> None:
    if source in FLOATS:
        x = tricky(source)
    else:
        x, _ = edges(source)
    for name, target in CASTS.items():
        values = x
        if source in FLOATS and target not in (*FLOATS, "bool"):
            limits = np.iinfo(target)
            top = np.nextafter(np.array(limits.max + 1.0, source), 0, dtype=source)
            inside = (x > limits.min - 1.0) & (x <= top)  # NumPy defines no other
            values = x[inside]
        with np.errstate(all="ignore"):
            pair = apply([f"{name}(x)"], target, values, values)
        assert_same([f"{name} of {source}"], pair, values)


def test_casts_of_bool() -> None:
    x = np.array([0, 1, 2, 255] * 64, np.uint8)
    for name, target in CASTS.items():
        pair = apply([f"{name}(load_bool(a, i))", f"{name}(x < y)"], target, x, x)
        assert_same([name, name], pair, x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_float_primitives(dtype: str) -> None:
    x = tricky(dtype)
    y = np.random.default_rng(1).permutation(x)
    calls = [
        f"{f}(x)" for f in ["floor", "ceil", "trunc", "rint", "sqrt", "reciprocal"]
    ]
    calls += [f"{f}(x)" for f in ["negative", "absolute", "sign"]]
    names = "divide copysign nextafter maximum minimum fmax fmin fmod"
    calls += [f"{f}(x, y)" for f in f"{names} add subtract multiply".split()]
    calls += ["select(x < y, x, y)", "floor_divide(x, y)", "remainder(x, y)"]
    device, numpy = apply(calls, dtype, x, y)
    # NumPy leaves the sign of an extremum of two zeros open.
    zeros = (x == 0) & (y == 0)
    for row, call in enumerate(calls):
        if call.startswith(("max", "min", "fmax", "fmin")):
            device[row, zeros] = numpy[row, zeros] = 0
    assert_same(calls, (device, numpy), x, y)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_tests(dtype: str) -> None:
    x = tricky(dtype)
    x = x[~np.isnan(x) | (np.arange(x.size) < x.size - 1)]
    calls = [
        f"{name}(x)" for name in ["isnan", "isinf", "isfinite", "signbit", "to_bool"]
    ]
    calls += ["x < y", "x == y", "x != y", "x >= y"]
    y = np.random.default_rng(1).permutation(x)
    assert_same(calls, apply(calls, "bool", x, y), x, y)


# Largest error in units in the last place, against a wider evaluation: f32, f64.
BOUNDS: dict[str, tuple[float, float]] = {
    "exp": (2, 2),
    "exp2": (2, 2),
    "expm1": (2, 2),
    "log": (2, 2),
    "log2": (2, 2),
    "log10": (2, 2),
    "log1p": (2, 2),
    "rsqrt": (2, 2),
    "cbrt": (2, 2),
    "sin": (2, 2),
    "cos": (2, 2),
    "tan": (3, 2),
    "asin": (2, 2),
    "acos": (2, 2),
    "atan": (2, 2),
    "sinh": (3, 2),
    "cosh": (2, 2),
    "tanh": (2, 2),
    "asinh": (2, 2),
    "acosh": (2, 2),
    "atanh": (3, 2),
    "erf": (2, 2),
    "erfc": (4, 5),
    "erfinv": (5, 8),
    "erfcinv": (6, 10),
}
BOUNDS_OF_TWO: dict[str, tuple[float, float]] = {
    "power": (2, 2),
    "atan2": (2, 2),
    "hypot": (2, 2),
    "logaddexp": (2, 3),
}


def ulps(found: Array, wide: Array, scale: Array) -> Array:
    """Return the errors of ``found`` in units in the last place of ``scale``."""
    with np.errstate(all="ignore"):
        rounded = wide.astype(found.dtype)
    special = ~np.isfinite(rounded) | ~np.isfinite(found)
    both_nan = np.isnan(rounded) & np.isnan(found)
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(scale)).astype(wide.dtype)
        error = np.abs(found.astype(wide.dtype) - wide) / unit
    # A result beyond the largest number may round to it or to infinity.
    equal = both_nan | (found == rounded)
    return np.where(special, np.where(equal, 0, np.inf), error)


def errors_of(name: str, found: Array, *operands: Array) -> Array:
    """Return the errors of the results ``found`` of ``name`` in ulps."""
    wide = widely(name, *operands)
    with np.errstate(all="ignore"):
        scale = wide.astype(found.dtype)
    if name == "logaddexp":  # a sum, which may cancel
        scale = np.maximum(np.abs(scale), np.maximum(*np.abs(operands)))
        scale = np.where(np.isfinite(scale), scale, 1).astype(found.dtype)
    error = ulps(found, wide, scale)
    if name == "hypot":  # libdevice's overflows within an ulp of the largest number
        early = np.isinf(found) & (np.abs(scale) == np.finfo(found.dtype).max)
        error[early] = 1
    return error


def widely(name: str, *operands: Array) -> Array:
    """Evaluate the meaning of ``name`` in the next wider type there is."""
    wider = np.float64 if operands[0].dtype == np.float32 else np.longdouble
    if name.startswith("erf"):  # of the standard library, in double
        return ELEMENTWISE[name].meaning(*(x.astype(np.float64) for x in operands))
    with np.errstate(all="ignore"):
        return ELEMENTWISE[name].meaning(*(x.astype(wider) for x in operands))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("arity", [1, 2])
def test_functions_stay_within_their_error_bounds(dtype: str, arity: int) -> None:
    table = BOUNDS if arity == 1 else BOUNDS_OF_TWO
    x = tricky(dtype)
    y = np.random.default_rng(2).permutation(x)
    arguments = "x, y" if arity == 2 else "x"
    calls = [f"{name}({arguments})" for name in table]
    device, _ = apply(calls, dtype, x, y)
    errors: dict[str, Any] = {}
    for row, (name, bounds) in zip(device, table.items(), strict=True):
        operands = (x, y) if arity == 2 else (x,)
        error = errors_of(name, row, *operands)
        worst = int(np.argmax(error))
        if error[worst] > bounds[dtype == "float64"]:
            errors[name] = error[worst], x[worst], y[worst], row[worst]
    assert not errors


def test_near_tangents_serve_16_bit_floats() -> None:
    x = tricky("float32")
    (device,), _ = apply(["tanh_near(x)"], "float32", x, x)
    wide = np.tanh(x.astype(np.float64))
    error = np.abs(device - wide)
    assert (np.isnan(device) == np.isnan(x)).all()
    number = ~np.isnan(x)
    assert (error <= np.abs(wide) * 2.0**-14)[number].all()
    assert (error <= 2.0**-20)[number].all()
    assert (np.signbit(device) == np.signbit(x))[number].all()


@pytest.mark.parametrize(
    ("suffix", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)]
)
def test_16_bit_floats(suffix: str, dtype: Any) -> None:
    words = np.arange(65536, dtype=np.uint16)
    output, single = np.zeros(65536, np.float32), np.zeros(65536, np.uint16)
    lines = [f"x = load_{suffix}(a, i)", "store(b, i, x)", f"store_{suffix}(c, i, x)"]
    text = kernel(lines, "uint16", "float32", "uint16")
    device, _ = both(text, "kernel", 256, 256, words, output, single, 65536)
    expected = words.view(dtype).astype(np.float32)
    number = ~np.isnan(expected)
    assert (device[1][number] == expected[number]).all()
    assert np.isnan(device[1][~number]).all()
    assert (device[2][number] == words[number]).all()
    bits = np.random.default_rng(3).integers(0, 2**32, 65536, dtype=np.uint32)
    bits[:32768] &= np.uint32(0xFFFF8000)  # ties
    values = bits.view(np.float32)
    rounding = [f"round_{suffix}(x)", f"round_{suffix}(to_f64(x))"]
    assert_same(rounding, apply(rounding, "float32", values, values), values)
    with np.errstate(invalid="ignore"):  # a NaN that signals
        wide = values.astype(np.float64)
    wide = wide * (1 + np.arange(-1, 2)[:, None] * 2.0**-40)
    wide = wide.ravel()
    rounding = ["to_f32_odd(x)", f"round_{suffix}(to_f32_odd(x))"]
    assert_same(rounding, apply(rounding, "float32", wide, wide), wide)


PACKETS = [
    (length, suffix, storage, local)
    for suffix, storage, local, size in [
        *(("", k, k, int(k.lstrip("uintfloa")) // 8) for k in (*INTEGERS, *FLOATS)),
        ("_f16", "uint16", "float32", 2),
        ("_bf16", "uint16", "float32", 2),
        ("_bool", "uint8", "boolean", 1),
    ]
    for length in (2, 4, 8, 16)
    if length * size <= 16
]


@pytest.mark.parametrize(("length", "suffix", "storage", "local"), PACKETS)
def test_packets(length: int, suffix: str, storage: str, local: str) -> None:
    lines = [
        f"r = cuda.local.array({length + 1}, {local})",
        f"load_packet_{length}{suffix}(r, 1, a, int32(i * {length}))",
        f"store_packet_{length}{suffix}(b, int32(i * {length}), r, 1)",
        f"store{suffix}(c, i, r[2])",
    ]
    n = 200 * length
    random = np.random.default_rng(4)
    x = random.integers(0, 100, n).astype(storage)
    if suffix == "_bool":
        x &= 3
    y, z = np.zeros_like(x), np.zeros(200, storage)
    text = kernel(lines, storage, storage, storage)
    device, numpy = both(text, "kernel", 1, 256, x, y, z, 200)
    assert (device[1] == numpy[1]).all()
    assert (device[2] == numpy[2]).all()
    assert (device[1] != 0).any()


@pytest.mark.parametrize(("length", "suffix", "storage", "local"), PACKETS)
def test_packets_by_way_of_shared_memory(
    length: int, suffix: str, storage: str, local: str
) -> None:
    size = np.dtype(storage).itemsize * length
    if size not in (4, 8, 16):
        return
    lines = [
        f"s = cuda.shared.array({256 * length}, {storage})",
        f"r = cuda.local.array({length + 1}, {local})",
        f"copy_packet_{length}(s, int32(i * {length}), a, int32(i * {length}))",
        "await_copies()",
        f"take_packet_{length}{suffix}(r, 1, s, int32(i * {length}))",
        f"store_packet_{length}{suffix}(b, int32(i * {length}), r, 1)",
    ]
    x = np.random.default_rng(4).integers(0, 2, 256 * length).astype(storage)
    text = kernel(lines, storage, storage)
    device, numpy = both(text, "kernel", 1, 256, x, np.zeros_like(x), 256)
    assert (device[1] == numpy[1]).all()
    assert (device[1] != 0).any()


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "bool"])
def test_shuffles(dtype: str) -> None:
    cast = SHORT[dtype]
    storage = "uint8" if dtype == "bool" else dtype
    suffix = "_bool" if dtype == "bool" else ""
    calls = [f"shuffle_xor(v, {d})" for d in (1, 2, 4, 8, 16)]
    calls += ["shuffle_down(v, 3)", "shuffle(v, 7)", "shuffle(v, int32(31 - i))"]
    body = ["i = int32(cuda.threadIdx.x)", f"v = {cast}(load{suffix}(a, i))"]
    body += [f"store{suffix}(b, int32(i + {64 * k}), {c})" for k, c in enumerate(calls)]
    head = f'@cuda.jit("void(CPointer({storage}), CPointer({storage}))")\n'
    text = HEADER + head + "def kernel(a, b):\n"
    text += "".join(f"    {line}\n" for line in body)
    bits = np.random.default_rng(5).integers(0, 2**62, 64)
    x = (bits & 1 if dtype == "bool" else bits).astype(storage)
    device, numpy = both(text, "kernel", 1, 64, x, np.zeros(64 * len(calls), storage))
    assert (device[1] == numpy[1]).all()


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 10, 28, 641, 65537, 2**31 - 1])
def test_index_division(divisor: int) -> None:
    shift = (divisor - 1).bit_length()
    multiplier = int(np.uint32(-(-(1 << (31 + shift)) // divisor)).astype(np.int32))
    random = np.random.default_rng(6).integers(0, 2**31, 4096, dtype=np.int32)
    some = [0, 1, divisor - 1, divisor, 2**31 - 1]
    x = np.concatenate([np.array(some, np.int32), random])
    y = np.full_like(x, divisor)
    calls = [f"fast_divide(x, int32({multiplier}), int32({shift}))"]
    calls += [f"fast_divide(x, uint32({multiplier & 0xFFFFFFFF}), int32({shift}))"]
    device, _ = apply([*calls, "udiv(x, y)", "urem(x, y)"], "int32", x, y)
    quotient = x // divisor
    assert (device == [quotient, quotient, quotient, x % divisor]).all()
    wide = x.astype(np.int64) << 20
    device, _ = apply(["udiv(x, y)", "urem(x, y)"], "int64", wide, y.astype(np.int64))
    assert (device == [wide // divisor, wide % divisor]).all()


def test_index_arithmetic_is_exact_modulo_32_bits() -> None:
    x = np.random.default_rng(6).integers(-(2**31), 2**31, 256).astype(np.int32)
    y = np.arange(256, dtype=np.int32)
    calls = ["int32((y * 2000000000 + 7) - y * 1999999999)", "int32(y * y - 3 * y)"]
    calls += ["int32(to_i64(x) + y - to_i64(x))", "int32(to_u8(y) - 255)"]
    assert_same(calls, apply(calls, "int32", x, y), x, y)


def test_softmax_by_shuffles_and_shared_memory() -> None:
    x = np.random.default_rng(7).standard_normal(64 * 256).astype(np.float32)
    device, numpy = both(KERNELS["softmax"], "softmax", 64, 64, x, x * 0, 256)
    np.testing.assert_allclose(device[1], numpy[1], rtol=1e-6)


def test_numba_launches_the_same_text_to_the_same_bits(tmp_path: Path) -> None:
    x = np.random.default_rng(7).standard_normal(64 * 256).astype(np.float32)
    results = [PointerArgument(x * 0), PointerArgument(x * 0)]
    text, size = KERNELS["softmax"], ((64, 1, 1), (64, 1, 1))
    run_on_device(text, "softmax", *size, [PointerArgument(x), results[0], 256])
    run_by_numba(
        text, "softmax", *size, [PointerArgument(x), results[1], 256], tmp_path
    )
    assert results[0].storage.any()
    assert (results[0].storage == results[1].storage).all()


def test_the_block_that_finishes_last_adds_the_others_up() -> None:
    x = np.random.default_rng(8).standard_normal(100_000).astype(np.float32)
    partial, counter = np.zeros(400, np.float32), np.zeros(1, np.uint32)
    for _ in range(20):
        output = PointerArgument(np.zeros(1, np.float32))
        count = PointerArgument(counter)
        arguments = [
            PointerArgument(x),
            output,
            PointerArgument(partial),
            count,
            x.size,
        ]
        size = (400, 1, 1), (32, 1, 1)
        run_on_device(KERNELS["split_sum"], "split_sum", *size, arguments)
        exact = x.sum(dtype=np.float64)
        np.testing.assert_allclose(output.storage[0], exact, atol=1e-2)
        assert count.storage[0] == 0


def test_blocks_that_wait_for_each_other() -> None:
    x = np.random.default_rng(9).random(32 * 64).astype(np.float32)
    partial, counter = np.zeros(64, np.float32), np.zeros(1, np.uint32)
    buffers = x, x * 0, partial, counter
    device, numpy = both(KERNELS["normalize"], "normalize", 64, 32, *buffers)
    np.testing.assert_allclose(device[1], numpy[1], rtol=1e-5)
    assert device[3][0] == 64


def test_blocks_that_receive_what_others_post() -> None:
    x = np.random.default_rng(9).random(32 * 20)
    device, numpy = both(
        KERNELS["centre"], "centre", 20, 32, x, x * 0, np.zeros(40, np.uint64)
    )
    np.testing.assert_allclose(device[1], numpy[1], atol=1e-15)


def test_blocks_of_a_cluster_post_to_each_other() -> None:
    x = np.random.default_rng(9).random((20 * 50, 128))
    found: list[Array] = []
    for execute in (run_on_device, run):
        y = PointerArgument(np.zeros(x.size))
        given = [PointerArgument(x.ravel()), y, 50]
        execute(KERNELS["clusters"], "clusters", (20, 4, 1), (32, 1, 1), given)
        found.append(y.storage)
    np.testing.assert_allclose(found[0], found[1], atol=1e-15)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_neighbours_of_few_bits_wrap(dtype: str) -> None:
    torch: Any = pytest.importorskip("torch")
    x = np.random.default_rng(0).integers(0, 250, (3, 64)).astype(dtype)

    def work(x: Any) -> Any:
        a, b, c = x[:, 2:], x[:, 1:-1], x[:, :-2]
        return (a + b).astype("f4"), (b - c).astype("f4"), (a + c) < b

    found = nfuser.fuse(work, dialect="numpy")(torch.asarray(x, device="cuda"))
    for one, other in zip(found, work(x), strict=True):
        np.testing.assert_array_equal(one.cpu().numpy(), other)
