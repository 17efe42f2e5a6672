# SPDX-License-Identifier: Apache-2.0
"""Every operation of fd.ops against NumPy, and nvFuser's names against the table."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import special

import nfuser.compiler.ops as ops
from nfuser import DataType, FusionDefinition
from nfuser.errors import UnsupportedError
from nfuser.frontend.definition.operations.ops import BINARY, TABLE, UNARY
from nfuser.frontend.definition.refused import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable


def _f32(numbers: list[float]) -> Any:
    return np.asarray(numbers, np.float32)


def _i32(numbers: list[int]) -> Any:
    return np.asarray(numbers, np.int32)


# The names of nvFuser's direct Python bindings.
_NAMES = """
abs acos acosh asin asinh atan atanh ceil cos cosh exp exp2 expm1 erf erfc erfinv
erfcinv floor frac lgamma log log10 log1p log2 neg logical_not bitwise_not relu
rand_like randn_like reciprocal round rsqrt set segment_set sign sigmoid signbit silu
sin sinh sqrt tan tanh trunc isfinite isinf isnan isneginf isposinf isreal real imag
add atan2 div truediv fmod mul nextafter pow remainder sub minimum maximum mod eq ge gt
le lt ne logical_and logical_or bitwise_and bitwise_or bitwise_xor bitwise_left_shift
bitwise_right_shift logical_right_shift gcd complex
lerp where clamp threshold addcmul max min prod sum var var_mean welford
cumsum cumprod cummin cummax cast triu matmul linear grouped_mm
cutlass_nvfp4_grouped_mm scaled_mm broadcast broadcast_in_dim reshape permute expand
squeeze slice size shape stride_order index_select select scatter gather pad
take_along_axis cat embedding_fwd preprocess_grouped_matmul_input_sf iota full topk
argsort sdpfa_fwd sdpfa_bwd nv_block_quantize nv_grouped_block_quantize normal uniform
"""
NVFUSER = _NAMES.split()

MEANING: dict[str, Callable[..., Any]] = {
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "div": lambda x, y: np.trunc(np.true_divide(x, y)).astype(x.dtype),
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": special.erfinv,
    "erfcinv": special.erfcinv,
    "lgamma": special.gammaln,
    "mod": np.fmod,
    "relu": lambda x: np.maximum(x, 0),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "set": lambda x: x,
    "segment_set": lambda x: x,
    "sigmoid": special.expit,
    "silu": lambda x: x * special.expit(x),
    "softplus": lambda x: np.logaddexp(x, 0),
    "truediv": np.true_divide,
    "truth": lambda x: x.astype(bool),
    "round": np.rint,
    "neg": np.negative,
    "sub": np.subtract,
    "mul": np.multiply,
    "bitwise_not": np.invert,
    "complex": lambda x, y: x + 1j * y,
    **{
        short: getattr(np, long)
        for short, long in [("eq", "equal"), ("ne", "not_equal")]
    },
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
}
BITS = {name for name in TABLE if name.startswith("bitwise")} | {"gcd", "lcm", "ldexp"}
FLOATS = np.random.default_rng(0).uniform(0.05, 0.95, (2, 3, 4))
WHOLE = np.random.default_rng(1).integers(1, 9, (2, 3, 4))
KINDS: dict[str, tuple[Any, Any]] = {
    "f32": (FLOATS.astype(np.float32), FLOATS[::-1].astype(np.float32)),
    "f64": (FLOATS, FLOATS[:, ::-1]),
    "i32": (WHOLE.astype(np.int32) - 5, WHOLE[::-1].astype(np.int32)),
}


def _meaning(name: str) -> Callable[..., Any]:
    return MEANING.get(name) or getattr(np, name)


def _run(names: list[str], arrays: list[Any], backend: str) -> dict[str, Any]:
    with FusionDefinition(backend=backend) as fd:
        inputs = [fd.from_numpy(x) for x in arrays]
        for name in names:
            fd.add_output(getattr(fd.ops, name)(*inputs))
    return dict(zip(names, fd.execute(arrays), strict=True))


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("arity", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_an_elementwise_operation_is_numpys(
    kind: str, arity: int, backend: str
) -> None:
    whole = kind == "i32"
    table = [*UNARY] if arity == 1 else [*BINARY, "div"]
    skipped = set() if whole else BITS | {"div"}
    if whole:  # 16-bit floats and domains: the tests of nfuser.compiler.ops have them
        skipped |= {"heaviside", "complex", "copysign"} | {
            name for name in UNARY if name not in ("abs", "neg", "sign", "set", "relu")
        }
    names = [name for name in table if name not in skipped]
    assert len(names) > 4
    arrays = [*KINDS[kind][:arity]]
    found = _run(names, arrays, backend)
    for name in names:
        with np.errstate(all="ignore"):
            want = np.asarray(_meaning(name)(*arrays))
        got = found[name]
        assert got.shape == want.shape, name
        if not name.startswith("erf"):
            assert got.dtype == want.dtype, name
        scale = 2e-6 if got.dtype in (np.float32, np.complex64) else 1e-13
        np.testing.assert_allclose(got, want, scale, scale, err_msg=name)


def _of(build: Callable[..., Any], *arrays: Any) -> list[Any]:
    with FusionDefinition() as fd:
        made = build(fd, *(fd.from_numpy(x) for x in arrays))
        for output in made if isinstance(made, list | tuple) else [made]:
            fd.add_output(output)
    return fd.execute(list(arrays))


X = FLOATS.astype(np.float32) * 4 - 2
Y = X[::-1].copy()
INTS = _i32([-7, 7, -2147483648, 5])
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "acosh": (
        lambda fd, x: fd.ops.acosh(fd.ops.add(x, 4)),
        lambda x: np.arccosh(x + 4),
    ),
    "addcmul": (
        lambda fd, x: fd.ops.addcmul(x, x, 2.0, value=0.5),
        lambda x: x + 0.5 * x * 2,
    ),
    "cast": (lambda fd, x: fd.ops.cast(x, DataType.Int), lambda x: x.astype(int)),
    "clamp": (lambda fd, x: fd.ops.clamp(x, -1, 0.5), lambda x: np.clip(x, -1, 0.5)),
    "frac": (lambda fd, x: fd.ops.frac(x), lambda x: x - np.trunc(x)),
    "isreal": (
        lambda fd, x: fd.ops.isreal(fd.ops.complex(x, fd.ops.floor(x))),
        lambda x: np.floor(x) == 0,
    ),
    "lerp": (
        lambda fd, x: fd.ops.lerp(x, 3.0, fd.ops.abs(x)),
        lambda x: x + np.abs(x) * (3 - x),
    ),
    "linear": (
        lambda fd, x: fd.ops.linear(x, fd.ops.sum(x, 0), fd.ops.sum(x)),
        lambda x: x @ x.sum(0).T + x.sum(),
    ),
    "linear without bias": (
        lambda fd, x: fd.ops.linear(x, fd.ops.sum(x, [0, 1])),
        lambda x: x @ x.sum((0, 1)),
    ),
    "matmul": (
        lambda fd, x: fd.ops.matmul(x, fd.ops.permute(x, [0, 2, 1])),
        lambda x: x @ x.transpose(0, 2, 1),
    ),
    "pow": (lambda fd, x: fd.ops.pow(fd.ops.abs(x), 1.7), lambda x: np.abs(x) ** 1.7),
    "threshold": (
        lambda fd, x: fd.ops.threshold(x, 0.5, 20),
        lambda x: np.where(x <= 0.5, np.float32(20), x),
    ),
    "where": (
        lambda fd, x: fd.ops.where(fd.ops.gt(x, 0), x, -1.0),
        lambda x: np.where(x > 0, x, np.float32(-1)),
    ),
    "sum": (
        lambda fd, x: fd.ops.sum(x, [0, -1], keepdim=True, dtype=DataType.Double),
        lambda x: x.sum((0, 2), keepdims=True, dtype=float),
    ),
    "sum of all": (
        lambda fd, x: fd.ops.sum(x, DataType.Double),
        lambda x: x.sum(dtype=float),
    ),
    "prod": (lambda fd, x: fd.ops.prod(x, dim=1), lambda x: x.prod(1)),
    "max": (
        lambda fd, x: fd.ops.max(x, 1, dtype=DataType.Double),
        lambda x: x.max(1).astype(float),
    ),
    "min": (lambda fd, x: fd.ops.min(x), lambda x: x.min()),
    "var": (
        lambda fd, x: fd.ops.var(x, [2], correction=0, keepdim=True),
        lambda x: x.var(2, keepdims=True),
    ),
    "var_mean": (
        lambda fd, x: fd.ops.var_mean(x, 1),
        lambda x: (x.var(1, ddof=1), x.mean(1)),
    ),
    "broadcast": (
        lambda fd, x: fd.ops.broadcast(x, [True, False, False, True, False]),
        lambda x: x[None, :, :, None],
    ),
    "broadcast_in_dim": (
        lambda fd, x: fd.ops.broadcast_in_dim(
            fd.ops.sum(x, 1), [x.size(0), 6, x.size(2)], [0, 2]
        ),
        lambda x: np.broadcast_to(x.sum(1)[:, None], (2, 6, 4)),
    ),
    "expand": (
        lambda fd, x: fd.ops.expand(fd.ops.sum(x, 2, keepdim=True), [5, -1, -1, 9]),
        lambda x: np.broadcast_to(x.sum(2, keepdims=True), (5, 2, 3, 9)),
    ),
    "squeeze": (
        lambda fd, x: fd.ops.squeeze(fd.ops.max(x, 1, keepdim=True), [1]),
        lambda x: x.max(1),
    ),
    "permute": (
        lambda fd, x: fd.ops.permute(x, [2, 0, 1]),
        lambda x: x.transpose(2, 0, 1),
    ),
    "slice": (
        lambda fd, x: fd.ops.slice(x, [0, x.size(0), 1], [9, 3, x.size(1)], [1, 1, 2]),
        lambda x: x[0:9, 2:3, 1:3:2],
    ),
    "slice of nothing": (
        lambda fd, x: fd.ops.slice(x, [1, 2, 7], [2, 1, 9]),
        lambda x: x[1:2, 2:1, 7:9],
    ),
    "slice from the end": (
        lambda fd, x: fd.ops.slice(x, [0, -2, -9], [-1, 3, 9]),
        lambda x: x[0:-1, -2:3, -9:9],
    ),
    "reshape": (
        lambda fd, x: [
            fd.ops.reshape(x, [-1]),
            fd.ops.reshape(x, [x.size(2), fd.ops.mul(x.size(0), x.size(1))]),
            fd.ops.reshape(fd.ops.reshape(x, [1, 6, -1]), x.shape()),
        ],
        lambda x: (x.reshape(-1), x.reshape(4, 6), x),
    ),
    "pad": (
        lambda fd, x: [
            fd.ops.pad(x, [1, 0, 0, 2], 5),
            fd.ops.pad(x, [-1, x.size(0)]),
        ],
        lambda x: (
            np.pad(x, [(0, 0), (0, 2), (1, 0)], constant_values=5),
            np.pad(x[..., 1:], [(0, 0), (0, 0), (0, 2)]),
        ),
    ),
    "cat": (
        lambda fd, x: fd.ops.cat([x, fd.ops.cast(x, DataType.Int32)], -1),
        lambda x: np.concatenate([x, x.astype(np.int32)], -1),
    ),
    "triu": (lambda fd, x: fd.ops.triu(x, diagonal=-1), lambda x: np.triu(x, -1)),
    "take of all": (
        lambda fd, x: [
            fd.ops.take(x, fd.ops.iota(30, -5), mode="wrap"),
            fd.ops.take(x, fd.ops.iota(9, -5), 2, mode="clip"),
            fd.ops.take(x, -1, 2),
        ],
        lambda x: (
            np.take(x, np.arange(-5, 25), mode="wrap"),
            np.take(x, np.arange(-5, 4), 2, mode="clip"),
            x[..., -1],
        ),
    ),
    "roll": (
        lambda fd, x: [
            fd.ops.roll(x, [1, x.size(0)], [0, 2]),
            fd.ops.roll(x, [1, 2], 1),
        ],
        lambda x: (np.roll(x, (1, 2), (0, 2)), np.roll(x, 3, 1)),
    ),
    "select": (
        lambda fd, x: [fd.ops.select(x, 1, 2), fd.ops.select(x, -3, 1)],
        lambda x: (x[:, :, 1], x[:, -3]),
    ),
    "full": (
        lambda fd, x: fd.ops.full([x.size(1), 2], 3.5, DataType.Float),
        lambda x: np.full((3, 2), np.float32(3.5)),
    ),
    "iota": (
        lambda fd, x: fd.ops.iota(x.size(2), 0.5, 2, DataType.Float),
        lambda x: _f32([0.5, 2.5, 4.5, 6.5]),
    ),
    "size": (
        lambda fd, x: [
            fd.ops.sub(fd.ops.mul(x.size(0), 5), x.size(1)),
            fd.ops.div(fd.ops.mul(x.size(2), 5), 3),
            fd.ops.remainder(x.size(2), 3),
        ],
        lambda x: (7, 6, 1),
    ),
    "softmax": (
        lambda fd, x: fd.ops.softmax(x, axis=1),
        lambda x: special.softmax(x, 1),
    ),
    "mean": (lambda fd, x: fd.ops.mean(x, 0), lambda x: x.mean(0)),
    "argmax": (lambda fd, x: fd.ops.argmax(x, axis=1), lambda x: x.argmax(1)),
    "layer_norm": (
        lambda fd, x: fd.ops.layer_norm(x, weight=fd.ops.sum(x, [0, 1])),
        lambda x: (
            (x - x.mean(-1, keepdims=True))
            / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
            * x.sum((0, 1))
        ),
    ),
    "flip": (lambda fd, x: fd.ops.flip(x, 1), lambda x: np.flip(x, 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_an_operation_means_what_numpy_says(case: str) -> None:
    build, meaning = CASES[case]
    found, expected = _of(build, X), meaning(X)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for got, want in zip(found, expected, strict=True):
        assert np.shape(got) == np.shape(want)
        assert np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, 1e-5, 1e-6)


def test_lerp_is_exact_at_both_ends() -> None:
    big, small = _f32([1e8]), _f32([1.0])
    for weight, expected in ((0.0, big), (1.0, small)):
        (found,) = _of(lambda fd, a, b, w=weight: fd.ops.lerp(a, b, w), big, small)
        np.testing.assert_array_equal(found, expected)


def test_integers_divide_toward_zero_and_shift_in_zeros() -> None:
    quotient, rest, shifted = _of(
        lambda fd, x: (
            *(fd.ops.div(x, 2), fd.ops.mod(x, 2)),
            fd.ops.logical_right_shift(x, 28),
        ),
        INTS,
    )
    np.testing.assert_array_equal(quotient, _i32([-3, 3, -1073741824, 2]))
    np.testing.assert_array_equal(rest, _i32([-1, 1, 0, 1]))
    np.testing.assert_array_equal(shifted, _i32([15, 0, 8, 0]))
    (by_zero,) = _of(lambda fd, x: fd.ops.div(x, 0), INTS)
    np.testing.assert_array_equal(by_zero, np.zeros(4, np.int32))


@pytest.mark.parametrize("name", NVFUSER)
def test_a_name_of_nvfuser_works_or_is_refused(name: str) -> None:
    assert (name in TABLE) != (name in OPERATIONS)
    if name in OPERATIONS:
        fd = FusionDefinition()
        with pytest.raises(UnsupportedError, match=f"fd.ops.{name} is not supported"):
            getattr(fd.ops, name)(1, 2, axis=3)


def test_every_operation_is_listed() -> None:
    assert set(dir(FusionDefinition().ops)) == set(TABLE)


# What has another name or form in fd.ops.
OTHERWISE = {
    *("absolute", "negative", "copy", "invert", "left_shift", "right_shift"),
    *("subtract", "multiply", "divide", "divmod", "power", "complex_of"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
}


def test_what_nfuser_computes_elementwise_the_builder_has() -> None:
    verbs = {
        name
        for name, verb in inspect.getmembers(ops, inspect.isfunction)
        if [*inspect.signature(verb).parameters] in (["b", "x"], ["b", "x", "y"])
    }
    assert {"exp", "maximum"} <= verbs
    assert verbs - OTHERWISE - set(TABLE) == set()
