# SPDX-License-Identifier: Apache-2.0
"""The tree that Numba types in less time computes what the text says."""

from __future__ import annotations

import ast
import gc
import re
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.codegen.numba import abridge_cuda
from nfuser.codegen.numba.abridge_cuda import abridge
from nfuser.codegen.numba.compile_cuda import compile_cuda
from nfuser.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = "from numba import cuda\nfrom nfuser.codegen.primitives.cuda import *\n"


def abridged(line: str) -> tuple[str, dict[str, Any]]:
    function = ast.parse(f"def kernel(a, b, c):\n    {line}").body[0]
    assert isinstance(function, ast.FunctionDef)
    namespace: dict[str, Any] = {}
    abridge(function, namespace)
    return ast.unparse(function.body[0]), namespace


@pytest.mark.parametrize(
    ("line", "expected", "value"),
    [
        ("x = float32(0.5)", "x = __abridged_0", np.float32(0.5)),
        ("x = float32(-1e999)", "x = __abridged_0", np.float32(-np.inf)),
        ("x = f(y, uint8(7))", "x = f(y, __abridged_0)", np.uint8(7)),
        ("x = int64(-7)", "x = __abridged_0", np.int64(-7)),
    ],
)
def test_literals_become_typed_constants(line: str, expected: str, value: Any) -> None:
    text, namespace = abridged(line)
    assert text == expected
    assert namespace["__abridged_0"] == value
    assert type(namespace["__abridged_0"]) is type(value)


def test_equal_constants_share_a_name_but_zeros_of_two_signs_do_not() -> None:
    text, namespace = abridged("x = f(float32(0.0), float32(-0.0), float32(0.0))")
    assert text == "x = f(__abridged_0, __abridged_1, __abridged_0)"
    assert np.signbit(namespace["__abridged_1"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x = int32(a * 4 + b - 1)", "x = __abridged_0(a, b)"),
        ("x = int32(a * a + b * a)", "x = __abridged_0(a, b)"),
        ("x = int32(f(a) + f(a))", "x = __abridged_0(f(a), f(a))"),
        ("x = int32(cuda.blockIdx.x * 8 + b)", "x = __abridged_0(cuda.blockIdx.x, b)"),
        ("x = int32(int32(a + 1) * b)", "x = __abridged_1(__abridged_0(a), b)"),
        ("r[a * 4 + b] = c", "r[__abridged_0(a, b)] = c"),
        ("x = r[a]", "x = r[__abridged_0(a)]"),
        ("x = r[3]", "x = r[3]"),
        ("x = int32(a)", "x = int32(a)"),
        ("x = int64(a * b)", "x = int64(a * b)"),
        ("x = int32(300000000000)", "x = int32(300000000000)"),
        ("x = a + b", "x = a + b"),
    ],
)
def test_index_arithmetic_becomes_one_call(line: str, expected: str) -> None:
    assert abridged(line)[0] == expected


def _tree(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        return random.choice(["a", "b", "c", str(random.randrange(1, 99))])
    left, right = (_tree(random, depth - 1) for _ in range(2))
    text = f"({left} {random.choice('+-*')} {right})"
    return f"int32({text})" if random.random() < 0.2 else text


def _in_python(text: str, dtype: str) -> Callable[..., Any]:
    """Return what stands for a primitive: its text, evaluated."""
    code = compile(text, dtype, "eval")
    return lambda *given: eval(code, {f"x{k}": x for k, x in enumerate(given)})


@pytest.mark.parametrize("seed", range(40))
def test_index_arithmetic_means_what_it_did(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abridge_cuda, "index_primitive", _in_python)
    random = Random(seed)
    text = f"def kernel(a, b, c): return int32({_tree(random, 4)})"
    inputs = [{k: random.randrange(-99, 99) for k in "abc"} for _ in range(5)]
    found: list[list[int]] = []
    for is_abridged in (False, True):
        (function,), namespace = ast.parse(text).body, {"int32": int, "uint32": int}
        assert isinstance(function, ast.FunctionDef)
        if is_abridged:
            abridge(function, namespace)
        (answer,) = function.body
        assert isinstance(answer, ast.Return)
        assert answer.value is not None
        code = compile(ast.Expression(answer.value), "kernel", "eval")
        found.append([eval(code, {**namespace, **given}) for given in inputs])
    assert found[0] == found[1]


def test_places_are_unsigned_and_indices_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds: dict[str, str] = {}
    monkeypatch.setattr(abridge_cuda, "index_primitive", kinds.__setitem__)
    abridged("r[a * 4 + b] = int32(b * c)")
    abridged("x = r[a]")
    assert kinds == {"((x0 * 4) + x1)": "uint32", "(x0 * x1)": "int32", "x0": "uint32"}


def test_an_array_of_known_length_becomes_a_pointer() -> None:
    lines = [
        "r = cuda.local.array(4, float32)",
        "r[a] = r[2] + t[b]",
        "s = cuda.shared.array(0, float32)",
        "s[3] = r[a * 2]",
    ]
    function = ast.parse("def kernel(a, b, t):\n " + "\n ".join(lines)).body[0]
    assert isinstance(function, ast.FunctionDef)
    abridge(function, {})
    assert [ast.unparse(statement) for statement in function.body] == [
        "r = __abridged_0()",
        "__abridged_3(r, __abridged_2(a), __abridged_1(r, 2) + t[__abridged_2(b)])",
        "s = cuda.shared.array(0, float32)",
        "s[3] = __abridged_1(r, __abridged_4(a))",
    ]


@pytest.mark.parametrize(("kind", "size"), [("float32", 4), ("int16", 2)])
def test_an_element_is_taken_from_where_it_was_put(kind: str, size: int) -> None:
    for space, load in (("local", "global"), ("shared", "shared")):
        text = f"""{HEADER}def kernel(p, q):
    r = cuda.{space}.array(3, {kind})
    for i in range(3):
        r[i] = load(p, i)
    cuda.syncthreads()
    store(q, 0, r[1])
"""
        signature = f"void(CPointer({kind}), CPointer({kind}))"
        ptx = compile_cuda(text, "kernel", signature).ptx
        places = re.findall(rf"ld\.{load}\S*\s+\S+ \[[^+]*\+?(\d*)\]", ptx)
        assert places == [str(size)], ptx


@pytest.mark.parametrize("line", ["r[0] += load(p, 0)", "load_packet_4(p, 0, p, 0)"])
def test_what_arrays_cannot_do_is_refused(line: str) -> None:
    body = f"r = cuda.local.array(4, float32)\n    {line}\n    store(p, 0, r[0])"
    with pytest.raises(CompileError):
        compile_cuda(
            f"{HEADER}def kernel(p):\n    {body}\n",
            "kernel",
            "void(CPointer(float32))",
        )


def test_truths_are_kept_in_arrays() -> None:
    text = f"""{HEADER}def kernel(p, q):
    r = cuda.local.array(2, boolean)
    r[0] = load_bool(p, 0)
    r[1] = load_bool(p, 1)
    store_bool(q, 0, r[0] & ~r[1])
"""
    ptx = compile_cuda(text, "kernel", "void(CPointer(uint8), CPointer(uint8))").ptx
    assert len(re.findall(r"setp\.\w+\.[bsu]16", ptx)) == 2, ptx


def test_what_is_put_into_an_array_gets_its_type() -> None:
    text = f"""{HEADER}def kernel(p, q):
    r = cuda.local.array(1, float32)
    r[0] = load(p, 0)
    store(q, 0, r[0])\n"""
    ptx = compile_cuda(text, "kernel", "void(CPointer(int64), CPointer(float32))").ptx
    assert "cvt.rn.f32.s64" in ptx


def _ptx(body: str, signature: str = "CPointer(int32), int32, int32") -> str:
    text = f"{HEADER}def kernel(a, b, c):\n    {body}\n"
    return compile_cuda(text, "kernel", f"void({signature})").ptx


def test_index_arithmetic_is_32_bits_wide() -> None:
    ptx = _ptx("store(a, int32(b * 12 + c * b - 7), b)")
    assert "mad.lo.s32" in ptx
    assert "mul.lo.s64" not in ptx


@pytest.mark.parametrize(
    ("kind", "read"),
    [("int8", "s8"), ("uint8", "u8"), ("int64", "u32"), ("uint32", "u32")],
)
def test_leaves_of_every_integer_type_are_widened_or_cut(kind: str, read: str) -> None:
    body = "store(a, int32(b + c * 2), int32(c - b))"
    ptx = _ptx(body, f"CPointer(int32), {kind}, int32")
    assert re.search(rf"ld\.param\.{read}\s+%r\d+, \[kernel_param_1\]", ptx), ptx


def test_a_float_is_no_index() -> None:
    with pytest.raises(CompileError, match="float32"):
        _ptx("store(a, int32(b + c), int32(1))", "CPointer(int32), float32, int32")


def test_the_collector_is_left_as_it_was() -> None:
    _ptx("store(a, 0, b)")
    assert gc.isenabled()
    gc.disable()
    try:
        _ptx("store(a, 1, b)")
        assert not gc.isenabled()
    finally:
        gc.enable()
