# SPDX-License-Identifier: Apache-2.0
"""A tensor inside a fused function means what torch means, or is refused by name."""

# torch has partial types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import operator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.trace import trace_function
from nfuser.errors import NfuserError
from nfuser.frontend.call.inputs.arguments import Arguments, Described

if TYPE_CHECKING:
    from collections.abc import Callable

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of torch itself

DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
BINARY = {
    name: getattr(operator, name)
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("and_", "or_", "xor", "lshift", "rshift"),
        *("lt", "le", "eq", "ne", "gt", "ge"),
        *("iadd", "isub", "imul", "itruediv"),
    )
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "-x": operator.neg,
    "+x": operator.pos,
    "~x": operator.invert,
    "abs(x)": abs,
    **{
        f"x.{name}()": operator.methodcaller(name)
        for name in (
            *("sum", "prod", "mean", "max", "min", "amax", "amin", "std", "var"),
            *("any", "all", "argmax", "argmin", "argsort", "sort", "median"),
            *("ravel", "flatten", "squeeze", "trace", "diagonal", "round", "conj"),
        )
    },
    **{
        f"x.{name}({given})": operator.methodcaller(name, *given)
        for name in (
            *("sum", "prod", "mean", "max", "min", "amax", "amin", "std", "var"),
            *("any", "all", "argmax", "argmin", "cumsum", "cumprod", "argsort"),
            *("squeeze", "flatten", "sort", "median", "repeat", "reshape", "diagonal"),
        )
        for given in ((0,), (-1,), (0, True), ((0, 1),), ((),), (True,), (0, 1))
    },
    "x.sum(axis, keepdims)": lambda x: x.sum(axis=-1, keepdims=True),
    "x.mean(axis, keepdims)": lambda x: x.mean(axis=-1, keepdims=True),
    "x.var(correction)": lambda x: x.var(0, correction=0),
    "x.std(unbiased)": lambda x: x.std(unbiased=False),
    "x.sum(dtype)": lambda x: x.sum(0, dtype=torch.float64),
    "x.clip(ints)": lambda x: x.clip(1, 2),
    "x.clip(floats)": lambda x: x.clip(0.5, 1.5),
    "x.clip(min)": lambda x: x.clip(min=x),
    "x.clamp(max)": lambda x: x.clamp(max=2),
    "x.round(decimals)": lambda x: x.round(decimals=1),
    "x.transpose(0, 1)": lambda x: x.transpose(0, 1),
    "x.transpose(0, 0)": lambda x: x.transpose(0, 0),
    "x.swapaxes(0, 1)": lambda x: x.swapaxes(0, 1),
    "x.repeat(2, 1)": lambda x: x.repeat(2, 1),
    "x.repeat((2, 1, 1))": lambda x: x.repeat((2, 1, 1)),
    "x.repeat(axis)": lambda x: x.repeat(2, axis=0),
    "x.T": lambda x: x.T,
    "x.mT": lambda x: x.mT,
    "x.real": lambda x: x.real,
    "x.imag": lambda x: x.imag,
    "x.take(i)": lambda x: x.take(torch.tensor([0, 1])),
    "x.max(other)": lambda x: x.max(x),
    "x[0]": lambda x: x[0],
    "x[:, None]": lambda x: x[:, None],
    "bool(x.dtype == torch.float32)": lambda x: x * (x.dtype == torch.float32),
}


def _tensor(dtype: str, shape: tuple[int, ...] = (2, 3)) -> Any:
    count = int(np.prod(shape))
    return (torch.arange(count) % 3 + 1).reshape(shape).to(getattr(torch, dtype))


def _outcome(run: Callable[..., Any], *args: Any) -> Any:
    """Return what torch gives: a tensor, or why there is none that a call returns."""
    try:
        found = run(*args)
    except (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError) as error:
        return error
    return found if isinstance(found, torch.Tensor) else TypeError("no tensor")


def _traced(runs: dict[str, Callable[..., Any]], *args: Any) -> dict[str, Any]:
    """Return dtype and rank of what a fused function makes of each, or the error."""
    found: dict[str, Any] = {}

    def function(*given: Any) -> list[Any]:
        made: list[Any] = []
        for name, run in runs.items():
            try:
                item = run(*given)
            except (NfuserError, TypeError):
                found[name] = None
                continue
            if not hasattr(item, "dtype"):
                found[name] = None
                continue
            made.append(item)
            found[name] = len(made) - 1
        return made

    arguments = Arguments(args, {}, function)
    trace = trace_function(function, Described(arguments, function).call(arguments))
    outputs = trace.fusion.outputs
    for name, at in found.items():
        if type(at) is int:
            leaf = trace.output_leaves[at]
            held = outputs[leaf.position]
            found[name] = held.dtype.numpy.name, held.ndim
    return found


def _check(runs: dict[str, Callable[..., Any]], *args: Any) -> list[str]:
    wrong: list[str] = []
    found = _traced(runs, *args)
    for name, run in runs.items():
        clones = (x.clone() if isinstance(x, torch.Tensor) else x for x in args)
        expected = _outcome(run, *clones)
        ours = found[name]
        if isinstance(expected, Exception) or ours is None:
            continue
        theirs = str(expected.dtype).removeprefix("torch."), expected.ndim
        if ours != theirs:
            kinds = [getattr(x, "dtype", x) for x in args]
            wrong.append(f"{name} of {kinds}: {ours}, torch {theirs}")
    return wrong


def _with(run: Callable[..., Any], number: Any) -> Callable[..., Any]:
    return lambda x: run(x, number)


def _before(run: Callable[..., Any], number: Any) -> Callable[..., Any]:
    return lambda x: run(number, x)


@pytest.mark.parametrize("first", DTYPES)
def test_operators_promote_as_torch_does_or_refuse(first: str) -> None:
    x = _tensor(first)
    others = [_tensor(d, shape) for d, shape in product(DTYPES, [(2, 3), ()])]
    wrong = [w for y in others for w in _check(BINARY, x, y)]
    scalars = [_tensor(d, ()) for d in DTYPES]
    wrong += [w for y in scalars for w in _check(BINARY, _tensor(first, ()), y)]
    numbers = (True, 2, 2.5, 2j, np.float32(2), np.float64(2), np.int64(2))
    for number in numbers:
        runs = {n: _with(f, number) for n, f in BINARY.items()}
        runs |= {f"r{n}": _before(f, number) for n, f in BINARY.items()}
        wrong += _check(runs, x) + _check(runs, x[0, 0])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", DTYPES)
def test_methods_give_what_torch_gives_or_refuse(dtype: str) -> None:
    wrong = _check(UNARY, _tensor(dtype)) + _check(UNARY, _tensor(dtype, (1, 4)))
    assert not wrong, "\n".join(wrong)


PAIRS = (("uint8", "int64"), ("float32", "int64"), ("int32", "float64"))


@pytest.mark.parametrize("pair", PAIRS)
def test_the_values_are_torchs(pair: tuple[str, str]) -> None:
    x, y = (_tensor(dtype) for dtype in pair)
    methods = (
        *("x.sum(0)", "x.max()", "x.clip(ints)", "x.clip(floats)", "x.repeat(2, 1)"),
        *("x.transpose(0, 1)", "x.flatten()", "x.any()", "x.cumsum(0)", "x.trace()"),
    )
    operators = ("add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "eq")

    def function(a: Any, b: Any) -> list[Any]:
        found = [UNARY[name](a) for name in methods if name in UNARY]
        return [*found, *(BINARY[name](a, b) for name in operators)]

    for ours, theirs in zip(nfuser.fuse(function)(x, y), function(x, y), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_spread_is_torchs_by_default() -> None:
    x = torch.arange(12, dtype=torch.float64).reshape(3, 4) ** 2

    def function(x: Any) -> list[Any]:
        return [
            *(x.std(), x.var(-1), x.std(0, True), x.var(unbiased=False)),
            *(x.var(0, correction=2), x.std(True), x.var(1, False, True)),
        ]

    for ours, theirs in zip(nfuser.fuse(function)(x), function(x), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_functions_of_numpy_mean_numpys() -> None:
    x = torch.arange(6, dtype=torch.uint8).reshape(2, 3)
    plain = x.numpy()

    def function(x: Any) -> list[Any]:
        return [np.std(x), np.divide(x, 2), np.max(x, 1), np.sum(x), np.average(x, 0)]

    for ours, theirs in zip(nfuser.fuse(function)(x), function(plain), strict=True):
        assert str(ours.dtype) == f"torch.{theirs.dtype}"
        np.testing.assert_allclose(ours.numpy(), theirs)


def test_tensors_may_speak_numpy() -> None:
    x = torch.arange(6, dtype=torch.uint8).reshape(2, 3)

    def function(x: Any) -> list[Any]:
        return [x.std(), x / 2, x.max(axis=1), x.repeat(2), x.transpose(0, 1)]

    found = nfuser.fuse(function, dialect="numpy")(x)
    for ours, theirs in zip(found, function(x.numpy()), strict=True):
        assert isinstance(ours, torch.Tensor)
        np.testing.assert_allclose(ours.numpy(), theirs)
    again = nfuser.fuse(nfuser.fuse(function, dialect="numpy"), resize="static")
    assert again(x)[1].dtype is torch.float64


def test_a_dialect_that_there_is_not_is_refused() -> None:
    with pytest.raises(NfuserError, match='write dialect="numpy"'):
        nfuser.fuse(lambda x: x, dialect="jax")


def test_a_tensor_says_what_it_is() -> None:
    seen: list[Any] = []

    def function(x: Any, y: Any) -> Any:
        total = x.sum()
        seen.append(isinstance(x, torch.Tensor) and torch.is_tensor(total))
        seen.append(isinstance(x, np.ndarray) or isinstance(total, np.generic))
        seen.append(x.dtype is torch.float32 and y.dtype == torch.bfloat16)
        place: Any = x.device
        seen.append(place == torch.device("cpu") and place.type == "cpu")
        return x + y

    nfuser.fuse(function)(torch.ones(3), torch.ones(3, dtype=torch.bfloat16))
    assert seen == [True, False, True, True]


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "repeat": (lambda x: x.repeat(2), r"np\.tile"),
    "quantile": (lambda x: x.quantile(0.5), r"np\.quantile"),
    "attention": (
        lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x),
        r"xp\.softmax",
    ),
    "numpy": (lambda x: x.numpy(), r"NumPy's functions take the traced array"),
    "index_add_": (lambda x: x.index_add_(0, x, x), r"x = "),
    "sum over no axes": (lambda x: x.sum(()), r"np\.sum\(x, axis=\(\)\)"),
    "sum of a dtype": (lambda x: x.sum(0, np.float64), r"a dtype goes by name"),
    "bool // bool": (lambda x: (x > 0) // (x > 1), r"x\.astype\(np\.int64\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_fused_form_is_refused_with_what_to_write(name: str) -> None:
    run, match = REFUSED[name]
    with pytest.raises(NfuserError, match=match):
        nfuser.fuse(run)(_tensor("float32"))


def test_a_captured_weight_meets_a_tensor_from_either_side() -> None:
    weight = torch.arange(3.0)
    fused = nfuser.fuse(lambda x: (weight * x - weight / x, weight @ x.T))
    x = _tensor("float32")
    for ours, theirs in zip(fused(x), fused.__wrapped__(x), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_products_under_autocast_are_refused_whenever_it_is_on() -> None:
    x = _tensor("float32")
    product, sums = nfuser.fuse(lambda x: x @ x.T), nfuser.fuse(lambda x: (x * 2).sum())
    for _ in range(4):
        torch.testing.assert_close(product(x), x @ x.T)
    with torch.autocast("cpu"):
        with pytest.raises(NfuserError, match=r"autocast\('cpu', enabled=False\)"):
            product(x)
        assert sums(x).dtype == torch.float32
        with torch.autocast("cpu", enabled=False):
            assert product(x).dtype == torch.float32
    torch.testing.assert_close(product(x), x @ x.T)


def test_a_default_dtype_that_changed_is_seen() -> None:
    halves = nfuser.fuse(lambda x: x / 2)
    x = torch.arange(4)
    for _ in range(4):
        assert halves(x).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert halves(x).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert halves(x).dtype == torch.float32


@pytest.mark.parametrize("dtype", ["int64", "bool", "float32", "int8", "bfloat16"])
@pytest.mark.parametrize("scalar", [np.float64(2.5), np.float32(2.5), np.int8(3)])
def test_a_numpy_scalar_that_is_passed_is_a_number(dtype: str, scalar: Any) -> None:
    x = torch.arange(3).to(getattr(torch, dtype))
    for verb in (operator.add, operator.mul, operator.truediv):
        want = verb(x, scalar)
        found = nfuser.fuse(verb)(x, scalar)
        assert found.dtype is want.dtype
        torch.testing.assert_close(found, want)


@pytest.mark.parametrize("kind", [np.int64, np.int32])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_a_power_may_be_an_integer_of_numpys(kind: Any, dtype: str) -> None:
    x = torch.tensor([0, 1, -2, 3], dtype=getattr(torch, dtype))
    fused = nfuser.fuse(lambda x, n: x**n)
    for number in (2, 5, 3, 0, 2):
        found = fused(x, kind(number))
        assert found.dtype == x.dtype
        assert torch.equal(found, x**number)
    if dtype != "float32":
        with pytest.raises(ValueError, match="negative integer powers"):
            fused(x, kind(-1))


@pytest.mark.parametrize(
    "power",
    [
        lambda x: torch.pow(x, 2),
        lambda x: torch.pow(x, 2.5),
        lambda x: torch.pow(x, x),
        lambda x: torch.pow(2, x),
        lambda x: torch.zeros(1).add(x if isinstance(x, torch.Tensor) else 1),
    ],
)
def test_a_number_or_a_tensor_may_stand_first(power: Callable[[Any], Any]) -> None:
    x = torch.rand(5)
    torch.testing.assert_close(nfuser.fuse(power)(x), power(x))


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: torch.result_type(x, 2),
        lambda x: torch.float_power(x, 2),
        lambda x: torch.full((3,), x.sum()),
        lambda x: torch.arange(x),
        lambda x: torch.tensor(x),
    ],
)
def test_functions_of_numbers_refuse_traced_tensors(ask: Callable[[Any], Any]) -> None:
    with pytest.raises(NfuserError):
        nfuser.fuse(ask)(torch.rand(3))


SEQUENCES: list[Callable[[Any], Any]] = [
    lambda x: x - x.max(dim=-1, keepdim=True),
    lambda x: [1.0] * 8 - x,
    lambda x: x * (1.0,) * 8,
    lambda x: x < [1.0] * 8,
    lambda x: x[0].__iadd__([1.0] * 8),
]


@pytest.mark.parametrize("function", SEQUENCES)
def test_no_array_is_made_of_a_sequence_beside_a_tensor(
    function: Callable[[Any], Any],
) -> None:
    x = torch.rand(4, 8)
    with pytest.raises(TypeError, match=r"^write x\.max\(dim\)\.values"):
        nfuser.fuse(function)(x)
    spoken = nfuser.fuse(lambda x: x * [1.0] * 8, dialect="numpy")
    assert spoken(x).shape == (4, 8)  # NumPy makes one


def test_integers_that_turns_count_wrap_beside_narrow_ones() -> None:
    def counted(x: Any) -> Any:
        c, rest = 0, x.sum() * 1.0 + 300
        while rest > 1:
            rest = rest - 1
            c += 1
        return x * c

    x = torch.tensor([1, 2, 0], dtype=torch.int8)
    found = nfuser.fuse(counted)(x)
    assert found.dtype == torch.int8
    assert found.tolist() == counted(x).tolist()
