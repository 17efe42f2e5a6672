# SPDX-License-Identifier: Apache-2.0
"""Python's operators on tensors and scalars of a definition."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser import DataType, FusionDefinition, NfuserError

if TYPE_CHECKING:
    from collections.abc import Callable

UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "positive": operator.pos,
    "abs": abs,
    "bitwise_not": operator.invert,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "divmod": divmod,
    "pow": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
}
MIRRORED = {"lt": "gt", "le": "ge", "eq": "eq", "ne": "ne", "gt": "lt", "ge": "le"}
COMPARING: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in MIRRORED
}
OPERANDS = {
    "a tensor": lambda fd: fd.define_tensor(shape=[-1], dtype=DataType.Int32),
    "an input": lambda fd: fd.define_scalar(dtype=DataType.Int),
    "a constant": lambda fd: fd.define_scalar(3),
    "a size": lambda fd: fd.define_tensor(shape=[-1]).size(0),
}
OTHERS: dict[str, Any] = OPERANDS | {
    "a number": lambda _: 2,
    "a number of NumPy's": lambda _: np.int16(2),
}


def _last(fd: FusionDefinition) -> str:
    line = next(x for x in reversed(repr(fd).splitlines()) if " fd.ops." in x)
    return line.partition(" = ")[2]


def _both(
    operand: str, other: str, write: Callable[[FusionDefinition, Any, Any], Any]
) -> str:
    """Return the call that was recorded, or why there is none."""
    fd = FusionDefinition()
    x, y = OPERANDS[operand](fd), OTHERS[other](fd)
    try:
        write(fd, x, y)
    except NfuserError as error:
        return str(error).splitlines()[0]
    return _last(fd)


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("name", UNARY)
def test_an_operator_of_one_operand_is_recorded_as_its_call(
    name: str, operand: str
) -> None:
    called = _both(operand, "a number", lambda fd, x, _: getattr(fd.ops, name)(x))
    assert _both(operand, "a number", lambda _, x, __: UNARY[name](x)) == called


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("name", BINARY)
def test_an_operator_is_recorded_as_its_call_straight_and_reflected(
    name: str, operand: str, other: str
) -> None:
    written = BINARY[name]
    called = _both(operand, other, lambda fd, x, y: getattr(fd.ops, name)(x, y))
    assert _both(operand, other, lambda _, x, y: written(x, y)) == called
    called = _both(operand, other, lambda fd, x, y: getattr(fd.ops, name)(y, x))
    assert _both(operand, other, lambda _, x, y: written(y, x)) == called


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("name", COMPARING)
def test_a_comparison_is_recorded_as_its_call(
    name: str, operand: str, other: str
) -> None:
    written = COMPARING[name]
    called = _both(operand, other, lambda fd, x, y: getattr(fd.ops, name)(x, y))
    assert _both(operand, other, lambda _, x, y: written(x, y)) == called
    # Python asks the handle on the right the mirrored question.
    asked = name if other in OPERANDS else MIRRORED[name]
    turn = -1 if other in OPERANDS else 1
    called = _both(
        operand, other, lambda fd, *pair: getattr(fd.ops, asked)(*pair[::turn])
    )
    assert _both(operand, other, lambda _, x, y: written(y, x)) == called


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_operators_compute_what_numpy_does(backend: str) -> None:
    with FusionDefinition(backend=backend) as fd:
        x = fd.define_tensor(shape=[-1, -1], dtype=DataType.Double)
        k = fd.define_tensor(shape=[-1, -1], dtype=DataType.Int32)
        s, n = fd.define_scalar(dtype=DataType.Double), x.size(0)
        for made in (
            *(2 * x + s, x - 1, 1 - x, x / n, s / x, x // 2, -7 % k, x**2, s**x),
            *(abs(-x), ~k, k & 6, 6 | k, k ^ k, k << 1, 64 >> k, +x, x @ x),
            *(x < s, x >= n, k == 2, k != n, *divmod(k, 3), (x > 1) & (k < 3)),
        ):
            fd.add_output(made)
    a, b = np.array([[1.0, 2.5], [-0.5, 3]]), np.array([[1, 2], [3, 4]], np.int32)
    t, m = 1.5, 2
    expected = [
        *(2 * a + t, a - 1, 1 - a, a / m, t / a, a // 2, -7 % b, a**2, t**a),
        *(abs(-a), ~b, b & 6, 6 | b, b ^ b, b << 1, 64 >> b, +a, a @ a),
        *(a < t, a >= m, b == 2, b != m, *divmod(b, 3), (a > 1) & (b < 3)),
    ]
    found = fd.execute([a, b, t])
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
        assert got.dtype == want.dtype


def test_sizes_stay_sizes_under_operators() -> None:
    with FusionDefinition() as fd:
        n = fd.define_tensor(shape=[-1]).size(0)
        sizes = [n + 1, 3 * n, n - 1, n // 2, n % 4, +n, abs(n - 7), abs(n)]
        for size in sizes:
            fd.add_output(fd.ops.zeros([size], DataType.Float))
    found = [len(x) for x in fd.execute([np.zeros(5, np.float32)])]
    assert found == [6, 15, 4, 2, 1, 5, 2, 5]


def test_handles_are_kept_by_what_they_are() -> None:
    fd = FusionDefinition()
    x, y = fd.define_tensor(shape=[-1]), fd.define_tensor(shape=[-1])
    assert {x: 1, y: 2}[y] == 2
    assert len({x, y, x}) == 2
    assert x in [x, y]
    assert "fd.ops" not in repr(fd)


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "truth": (lambda x, _: bool(x), "<T0: 1 axes, DataType.Float> has no truth"),
    "truth of a scalar": (lambda _, s: not s, "<S1: scalar> has no truth"),
    "a chain": (lambda x, _: 1 < x < 2, "chains as a < b < c ask for one"),
    "a search": (lambda x, s: x in [s, 1], "ask with `is` whether two names"),
    "iteration": (lambda x, _: [*x], "<T0: 1 axes, DataType.Float> is not iterated"),
    "membership": (lambda x, _: 1 in x, "is not iterated over"),
    "iteration over a scalar": (lambda _, s: list(s), "is not iterated over"),
    "an array": (lambda x, _: np.ones(3) + x, "fd.ops.add: expected a tensor or"),
    "an array on the right": (lambda x, _: x * np.ones(3), "found ndarray"),
    "nothing": (lambda x, _: x == None, "found NoneType"),  # noqa: E711
    "a text": (lambda _, s: s + "1", "fd.ops.add: expected a tensor or scalar"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_means_nothing_names_the_line(case: str) -> None:
    use, text = REFUSED[case]
    fd = FusionDefinition()
    x, s = fd.define_tensor(shape=[-1]), fd.define_scalar()
    with pytest.raises(NfuserError, match=re.escape(text)) as caught:
        use(x, s)
    assert isinstance(caught.value, TypeError)
    assert "\n  at " in str(caught.value)
    assert "test_operators.py" in str(caught.value)


def test_a_handle_of_another_definition_is_refused() -> None:
    x = FusionDefinition().define_tensor(shape=[-1])
    y = FusionDefinition().define_tensor(shape=[-1])
    with pytest.raises(NfuserError, match="belongs to another FusionDefinition"):
        _ = x + y
    with pytest.raises(NfuserError, match="belongs to another FusionDefinition"):
        assert x == y


def test_an_equal_definition_written_with_calls_is_shared() -> None:
    def built(*, with_operators: bool) -> FusionDefinition:
        with FusionDefinition() as fd:
            x = fd.define_tensor(shape=[-1])
            made = (x + 1) * 3 if with_operators else fd.ops.mul(fd.ops.add(x, 1), 3)
            fd.add_output(made)
        return fd

    x = np.ones(3, np.float32)
    first = built(with_operators=True)
    expected = first.execute([x])
    second = built(with_operators=False)
    assert repr(first) == repr(second)
    np.testing.assert_array_equal(second.execute([x]), expected)
    assert second.cache_info().traces == 0
