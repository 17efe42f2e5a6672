# SPDX-License-Identifier: Apache-2.0
"""Random small definitions against NumPy, and their printed form run again."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from nfuser import DataType, FusionDefinition

SIZES = {"n": 5, "m": 7}
DTYPES = (DataType.Float, DataType.Double, DataType.Int32, DataType.Int, DataType.Bool)
ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
ANY = {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_xor": np.logical_xor,
}
UNARY = {"neg": np.negative, "abs": np.abs, "sign": np.sign, "sin": np.sin}


class Writer:
    """Writes a definition and computes with NumPy beside it."""

    def __init__(self, seed: int, backend: str) -> None:
        self.dice = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.fd = FusionDefinition(backend=backend)
        self.inputs: list[Any] = []
        self.values: list[tuple[Any, Any]] = []
        self.outputs: list[Any] = []

    def write(self, steps: int) -> None:
        with self.fd:
            for _ in range(3):
                self._tensor()
            self._scalar(self.dice.randrange(-3, 4), DataType.Int)
            self._scalar(self.dice.choice((0.5, -2.25)), DataType.Double)
            while len(self.values) < steps:
                pointwise = (self._binary, self._binary, self._unary, self._where)
                others = (self._fold, self._view, self._cast)
                self.dice.choice((*pointwise, *others))()
            for handle, value in self.values[3:]:
                self.fd.add_output(handle)
                self.outputs.append(value)

    def _tensor(self) -> None:
        rank = self.dice.randrange(1, 4)
        names = [self.dice.choice(("n", "m", "1")) for _ in range(rank)]
        shape = tuple(SIZES.get(name, 1) for name in names)
        kind = self.dice.choice(DTYPES)
        array: Any = self.data.integers(-4, 5, shape).astype(kind.value.numpy)
        if kind.value.is_float:
            array += self.data.random(shape).astype(array.dtype)
        order = self.data.permutation(rank)
        if self.dice.random() < 0.5:
            array = np.ascontiguousarray(array.transpose(order)).transpose(
                np.argsort(order)
            )
            handle = self.fd.from_array(array, static_sizes=self.dice.random() < 0.3)
        else:
            sizes = [-1 if n > 1 or self.dice.random() < 0.5 else 1 for n in shape]
            handle = self.fd.define_tensor(sizes, dtype=kind)
        self.inputs.append(array)
        self.values.append((handle, array))

    def _scalar(self, number: Any, kind: DataType) -> None:
        if self.dice.random() < 0.5:
            self.values.append((self.fd.define_scalar(number, dtype=kind), number))
        else:
            self.inputs.append(number)
            self.values.append((self.fd.define_scalar(dtype=kind), number))

    def _pick(self) -> tuple[Any, Any]:
        return self.dice.choice(self.values)

    def _keep(self, handle: Any, value: Any) -> None:
        if np.ndim(value) <= 4:
            self.values.append((handle, value))

    def _binary(self) -> None:
        (a, x), (b, y) = self._pick(), self._pick()
        fit = zip(np.shape(x)[::-1], np.shape(y)[::-1], strict=False)
        if any(n != m and 1 not in (n, m) for n, m in fit):
            return
        is_bool = all(np.asarray(v).dtype == bool for v in (x, y))
        table = ANY if is_bool else ANY | ARITHMETIC
        name = self.dice.choice(list(table))
        # Weak operands alone meet as Python numbers do.
        self._keep(getattr(self.fd.ops, name)(a, b), table[name](x, y))

    def _unary(self) -> None:
        a, x = self._pick()
        if np.asarray(x).dtype != bool:
            name = self.dice.choice(list(UNARY))
            self._keep(getattr(self.fd.ops, name)(a), UNARY[name](x))

    def _where(self) -> None:
        (a, x), (b, y) = self._pick(), self._pick()
        try:
            expected = np.where(np.asarray(x) > 0, x, y)
        except ValueError:
            return
        self._keep(self.fd.ops.where(self.fd.ops.gt(a, 0), a, b), expected)

    def _fold(self) -> None:
        a, x = self._pick()
        if np.ndim(x) == 0:
            return
        axes = self.dice.sample(range(x.ndim), self.dice.randint(1, x.ndim))
        keep = self.dice.random() < 0.5
        name, fold = self.dice.choice(
            (("sum", np.sum), ("max", np.max), ("min", np.min), ("mean", np.mean))
        )
        option = {"keepdims" if name == "mean" else "keepdim": keep}
        made = getattr(self.fd.ops, name)(a, axes, **option)
        self._keep(made, fold(x, axis=tuple(axes), keepdims=keep))

    def _view(self) -> None:
        a, x = self._pick()
        if np.ndim(x) == 0:
            return
        order = self.dice.sample(range(x.ndim), x.ndim)
        place = self.dice.randint(0, x.ndim)
        flags = [k == place for k in range(x.ndim + 1)]
        made = self.fd.ops.broadcast(self.fd.ops.permute(a, order), flags)
        value = np.expand_dims(x.transpose(order), place)
        self._keep(made, value)

    def _cast(self) -> None:
        a, x = self._pick()
        if np.asarray(x).dtype.kind in "bi" and np.ndim(x):
            kind = self.dice.choice(DTYPES)
            self._keep(self.fd.ops.cast(a, kind), x.astype(kind.value.numpy))


def _program(fd: FusionDefinition) -> str:
    """Return the IR without the lines it came from."""
    return re.sub(r"  # .*", "", str(fd))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_a_random_definition_computes_what_numpy_does(backend: str, seed: int) -> None:
    if backend == "interpret" and seed >= 6:
        seed += 100
    writer = Writer(seed, backend)
    with np.errstate(all="ignore"):
        writer.write(16)
    found = writer.fd.execute(writer.inputs)
    for got, want in zip(found, writer.outputs, strict=True):
        want = np.asarray(want)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        exact = want.dtype.kind in "bi"
        scale = 0 if exact else 1e-4 if want.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(got, want, rtol=scale, atol=scale * 10)


@pytest.mark.parametrize("seed", range(40))
def test_the_printed_form_makes_the_same_definition(seed: int) -> None:
    writer = Writer(seed, "interpret")
    with np.errstate(all="ignore"):
        writer.write(20)
    names: dict[str, Any] = {}
    exec(compile(repr(writer.fd), "<printed>", "exec"), names)  # noqa: S102
    again = names["fd"]
    assert _program(again) == _program(writer.fd)
    assert repr(again) == repr(writer.fd)
    assert len(_program(again).splitlines()) > 15
