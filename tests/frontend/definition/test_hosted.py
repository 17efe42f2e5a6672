# SPDX-License-Identifier: Apache-2.0
"""Sizes that are computed of numbers, sizes and inputs before the kernels run."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import DataType, FusionDefinition
from nfuser.errors import ArgumentError, RangeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

# Of x with n elements, an integer and a float: how many zeros there are to be.
EXPRESSIONS: dict[str, tuple[Callable[..., Any], Callable[..., int]]] = {
    "a product of constants": (
        lambda fd, n, k, f: fd.ops.cast(fd.ops.mul(2.5, 7), DataType.Int),
        lambda n, k, f: 17,
    ),
    "a share of a size": (
        lambda fd, n, k, f: fd.ops.cast(fd.ops.mul(n, 0.7), DataType.Int),
        lambda n, k, f: int(n * 0.7),
    ),
    "a size times an input": (
        lambda fd, n, k, f: fd.ops.cast(fd.ops.ceil(fd.ops.mul(n, f)), DataType.Int),
        lambda n, k, f: int(np.ceil(n * f)),
    ),
    "a choice by a comparison": (
        lambda fd, n, k, f: fd.ops.where(fd.ops.lt(n, k), n, fd.ops.add(k, 1)),
        lambda n, k, f: n if n < k else k + 1,
    ),
    "a comparison": (
        lambda fd, n, k, f: fd.ops.add(1, fd.ops.cast(fd.ops.ge(f, 1.0), DataType.Int)),
        lambda n, k, f: 1 + (f >= 1.0),
    ),
    "a quotient of sizes": (
        lambda fd, n, k, f: fd.ops.div(n, k),
        lambda n, k, f: n // k,
    ),
    "a power, narrowed": (
        lambda fd, n, k, f: fd.ops.cast(fd.ops.pow(k, 2), DataType.Int32),
        lambda n, k, f: k**2,
    ),
    "a cast of a size": (
        lambda fd, n, k, f: fd.ops.cast(n, DataType.Int),
        lambda n, k, f: n,
    ),
}


def _padded(build: Callable[..., Any]) -> FusionDefinition:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], contiguity=[True])
        k, f = fd.define_scalar(DataType.Int), fd.define_scalar(DataType.Double)
        count = build(fd, x.size(0), k, f)
        fd.add_output(fd.ops.pad(x, [0, count]))
        fd.add_output(fd.ops.mul(fd.ops.full([count], 1.0, DataType.Float), k))
        y = fd.define_tensor(shape=[-1], contiguity=[True])
        fd.add_output(fd.ops.mul(y, f))
    return fd


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_number_that_is_computed_is_a_size(name: str) -> None:
    build, meaning = EXPRESSIONS[name]
    fd = _padded(build)
    for n, k, f in [(10, 3, 0.5), (30, 4, 1.7), (3, 5, 0.1)]:
        x = np.arange(n, dtype=np.float32)
        padded, full, scaled = fd.execute([x, k, f, x])
        count = meaning(n, k, f)
        np.testing.assert_array_equal(padded, np.pad(x, (0, count)))
        np.testing.assert_array_equal(full, np.full(count, k, np.float32))
        np.testing.assert_array_equal(scaled, x * np.float32(f))


def test_another_value_runs_the_kernels_there_are() -> None:
    build, _ = EXPRESSIONS["a size times an input"]
    fd = _padded(build)
    x = np.ones(40, np.float32)
    fd.execute([x, 2, 0.5, x])
    compiled = fd.cache_info().compiled + fd.cache_info().reused
    assert [len(fd.execute([x, 2, f, x])[1]) for f in (0.1, 0.9)] == [4, 36]
    again = fd.cache_info()
    assert again.compiled == 0 or again.compiled + again.reused <= 3 * compiled
    assert again.concretizations <= 1


def test_its_program_and_its_messages_count_what_is_passed() -> None:
    build, _ = EXPRESSIONS["a share of a size"]
    fd = _padded(build)
    x = np.ones(5, np.float32)
    names: dict[str, Any] = {}
    exec(fd.repro_script_for([x, 1, 0.5, x]), names)  # noqa: S102 (a program is what it is)
    assert names["fd"].cache_info().calls == 1
    with pytest.raises(ArgumentError, match="expected 4 inputs"):
        fd.execute([x])
    with pytest.raises(nfuser.NfuserError, match=r"input 3 \(T\d+\): expected DataTyp"):
        fd.execute([x, 1, 0.5, x.astype(np.float64)])


def test_what_is_no_size_is_refused() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1])
        with pytest.raises(ArgumentError, match="cast it to Int"):
            fd.ops.pad(x, [0, fd.ops.mul(x.size(0), 0.5)])
        count = fd.ops.cast(fd.ops.sub(x.size(0), 2.5), DataType.Int)
        ratio = fd.ops.cast(fd.ops.truediv(6, fd.ops.sub(x.size(0), 1)), DataType.Int)
        fd.add_output(fd.ops.zeros([count]))
        fd.add_output(fd.ops.zeros([ratio]))
    assert [len(y) for y in fd.execute([np.ones(5, np.float32)])] == [2, 1]
    with pytest.raises(ShapeError, match="negative dimensions are not allowed: -2"):
        fd.execute([np.ones(1, np.float32)[:0].copy()])
    with pytest.raises(RangeError, match="pass another number"):
        fd.execute([np.ones(1, np.float32)])
