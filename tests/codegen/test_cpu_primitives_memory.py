# SPDX-License-Identifier: Apache-2.0
"""Loads, stores, 16-bit floats, stack arrays and reductions on the CPU."""

# Numba, mpmath and SciPy carry few types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from llvmlite.binding import llvm_version_info

from nfuser.codegen.primitives import cpu
from nfuser.codegen.primitives.cpu import memory as cpu_memory
from nfuser.codegen.primitives.cpu.half import converts_halves
from tests.cpu_harness import Array, apply, compile_kernel

ALL_HALVES = np.arange(1 << 16, dtype=np.uint16)
HALF_TYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def as_float(patterns: Array, kind: str) -> Array:
    with np.errstate(all="ignore"):
        return patterns.view(HALF_TYPES[kind]).astype(np.float32)


def rounded(numbers: Array, kind: str) -> Array:
    with np.errstate(all="ignore"):
        return numbers.astype(HALF_TYPES[kind])


def hard_singles(kind: str) -> Array:
    """Return every 16-bit float, the midpoints after each, and their neighbours."""
    numbers = as_float(ALL_HALVES, kind)
    finite = np.unique(numbers[np.isfinite(numbers)])
    middle = (finite[:-1].astype(np.float64) + finite[1:]) / 2
    middles = middle.astype(np.float32)
    near = [np.nextafter(middles, np.float32(side)) for side in (-np.inf, np.inf)]
    edges = np.array([65519.99, 65520, 65536, 3.4e38, np.inf, np.nan, 1e-45])
    return np.concatenate([numbers, middles, *near, edges.astype(np.float32)])


@pytest.fixture(params=["processor", "integers"])
def conversions(request: pytest.FixtureRequest, monkeypatch: Any) -> str:
    """Convert float16 by the processor, and then as on one that cannot."""
    if request.param == "integers":
        monkeypatch.setattr(cpu_memory, "converts_halves", lambda: False)
    return request.param


@pytest.mark.usefixtures("conversions")
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_every_half_is_loaded(kind: str) -> None:
    read, store = getattr(cpu, f"load_{kind}"), cpu.store

    def kernel(n, x, out):
        for i in range(n):
            store(out, i, read(x, i))

    out = np.empty(ALL_HALVES.size, np.float32)
    compile_kernel(kernel, "uint16", "float32")(out.size, ALL_HALVES, out)
    np.testing.assert_array_equal(out, as_float(ALL_HALVES, kind))


@pytest.mark.usefixtures("conversions")
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_halves_are_stored_rounded_to_even(kind: str) -> None:
    write, load = getattr(cpu, f"store_{kind}"), cpu.load

    def kernel(n, x, out):
        for i in range(n):
            write(out, i, load(x, i))

    numbers = hard_singles(kind)
    out = np.empty(numbers.size, np.uint16)
    loop = compile_kernel(kernel, "float32", "uint16")
    loop(out.size, numbers, out)
    wanted = rounded(numbers, kind)
    number = ~np.isnan(numbers)
    np.testing.assert_array_equal(out[number], wanted.view(np.uint16)[number])
    assert np.isnan(as_float(out[~number], kind)).all()
    assert re.search(r"store <\d+ x i16>|store <\d+ x half>", loop.text)


def test_conversion_in_integers_is_compiled_as_asked(conversions: str) -> None:
    read, store = cpu.load_f16, cpu.store

    def kernel(n, x, out):
        for i in range(n):
            store(out, i, read(x, i))

    text = compile_kernel(kernel, "uint16", "float32").text
    expected = conversions == "processor" and converts_halves()
    assert ("half" in text) == expected


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_rounding_stays_in_single(kind: str) -> None:
    numbers = hard_singles(kind)
    wanted = rounded(numbers, kind).astype(np.float32)
    np.testing.assert_array_equal(apply(f"round_{kind}", numbers), wanted)


def test_bools_are_any_byte_but_zero() -> None:
    read, write = cpu.load_bool, cpu.store_bool

    def kernel(n, x, out):
        for i in range(n):
            write(out, i, read(x, i))

    x = np.array([0, 1, 2, 255], np.uint8)
    out = np.empty_like(x)
    compile_kernel(kernel, "uint8", "uint8")(4, x, out)
    assert out.tolist() == [0, 1, 1, 1]


STACKS = ["f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


@pytest.mark.parametrize("name", STACKS)
def test_stack_arrays_hold_their_elements(name: str) -> None:
    stack, load, store = getattr(cpu, f"stack_{name}"), cpu.load, cpu.store

    def kernel(n, x, out):
        for i in range(n // 8):
            held = stack(8)
            for k in range(8):
                store(held, k, load(x, i * 8 + k))
            for k in range(8):
                store(out, i * 8 + k, load(held, 7 - k))

    kind = {"f": "float", "i": "int", "u": "uint"}[name[0]] + name[1:]
    x = np.arange(96).astype(kind)
    out = np.empty_like(x)
    compile_kernel(kernel, kind, kind)(96, x, out)
    np.testing.assert_array_equal(out, x.reshape(-1, 8)[:, ::-1].ravel())


def test_stack_arrays_do_not_grow_in_loops() -> None:
    stack, load, store = cpu.stack_f64, cpu.load, cpu.store

    def kernel(n, out):
        for i in range(n):
            held = stack(128)
            store(held, i % 128, 1.0)
            store(out, i % 128, load(held, i % 128))

    out = np.empty(128)
    # A kilobyte each time round would pass every usual limit on the stack.
    compile_kernel(kernel, "float64")(1 << 17, out)
    assert (out == 1).all()


REDUCTIONS = {
    "sum_reassoc": (np.sum, 0.0),
    "product_reassoc": (np.prod, 1.0),
    "maximum": (np.max, -np.inf),
    "minimum": (np.min, np.inf),
}


def reduction(name: str, dtype: str) -> Any:
    combine, load, store = getattr(cpu, name), cpu.load, cpu.store
    constant = getattr(cpu, "f32" if dtype == "float32" else "f64")
    first = REDUCTIONS[name][1]

    def kernel(n, x, out):
        total = constant(first)
        for i in range(n):
            total = combine(total, load(x, i))
        store(out, 0, total)

    return compile_kernel(kernel, dtype, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", list(REDUCTIONS))
def test_reductions_are_right_and_vectorised(name: str, dtype: str) -> None:
    loop = reduction(name, dtype)
    numbers = np.random.default_rng(3).uniform(0.9, 1.1, 1003).astype(dtype)
    out = np.empty(1, dtype)
    loop(numbers.size, numbers, out)
    wanted = REDUCTIONS[name][0](numbers.astype(np.longdouble))
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(out[0], wanted, rtol=tolerance)
    element = {"float32": "float", "float64": "double"}[dtype]
    assert re.search(rf"phi <\d+ x {element}>", loop.text)


@pytest.mark.skipif(llvm_version_info < (22, 0, 0), reason="its intrinsic is new")
@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_extremes_of_numbers_are_found_in_vectors(name: str) -> None:
    combine, wanted = getattr(cpu, name), getattr(np, name)

    def kernel(n, x, out):
        found = cpu.f32(1e999 - 1e999)
        for i in range(n):
            found = combine(found, cpu.load(x, i))
        cpu.store(out, 0, found)

    loop = compile_kernel(kernel, "float32", "float32")
    numbers = np.random.default_rng(3).normal(size=1003).astype(np.float32)
    numbers[::3] = np.nan
    out = np.empty(1, np.float32)
    loop(numbers.size, numbers, out)
    assert out[0] == wanted.reduce(numbers)
    loop(1, numbers, out)
    assert np.isnan(out[0])
    assert re.search(r"phi <\d+ x float>", loop.text)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("position", [0, 1, 500, 1001, 1002])
def test_extremes_propagate_nan(name: str, position: int) -> None:
    numbers = np.random.default_rng(3).uniform(0.9, 1.1, 1003).astype(np.float32)
    numbers[position] = np.nan
    out = np.empty(1, np.float32)
    reduction(name, "float32")(numbers.size, numbers, out)
    assert np.isnan(out[0])


def test_plain_sums_are_not_reordered() -> None:
    load, store = cpu.load, cpu.store

    def kernel(n, x, out):
        total = 0.0
        for i in range(n):
            total = total + load(x, i)
        store(out, 0, total)

    text = compile_kernel(kernel, "float64", "float64").text
    assert not re.search(r"phi <\d+ x double>", text)
