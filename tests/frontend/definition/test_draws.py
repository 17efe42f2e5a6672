# SPDX-License-Identifier: Apache-2.0
"""Draws of definitions: the numbers of ``nfuser.random``, named by seed and offset."""

# Handles and what is drawn have no static type.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nfuser import DataType, FusionDefinition
from nfuser.errors import ArgumentError, DTypeError, NfuserError
from nfuser.random.generator import Generator

SEED, OFFSET = 123456789, 5


def drawn(build: Any, *inputs: Any) -> Any:
    """Return what a definition gives whose one output ``build`` makes."""
    fd = FusionDefinition()
    handles = [fd.from_array(x) for x in inputs]
    fd.add_output(build(fd, *handles))
    (found,) = fd.execute(list(inputs))
    return found


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (DataType.Float, np.float32),
        (DataType.Double, np.float64),
        (DataType.Half, np.float16),
    ],
)
def test_numbers_are_those_of_the_generator_so_set(kind: Any, dtype: Any) -> None:
    options = {"rng_seed": SEED, "rng_offset": OFFSET, "dtype": kind}
    shape = (7, 13)
    uniform = drawn(lambda fd: fd.ops.uniform(0.0, 1.0, list(shape), **options))
    normal = drawn(lambda fd: fd.ops.normal(0.0, 1.0, list(shape), **options))
    wanted = Generator(SEED, OFFSET).random(shape, dtype)
    np.testing.assert_array_equal(uniform, wanted)
    wanted = Generator(SEED, OFFSET).standard_normal(shape, dtype)
    np.testing.assert_array_equal(normal, wanted)


def test_draws_like_a_tensor_have_its_shape_and_dtype() -> None:
    x = np.ones((5, 3), np.float32)
    words = {"rng_seed": SEED, "rng_offset": OFFSET}
    found = drawn(lambda fd, x: fd.ops.rand_like(x, **words), x)
    wanted = Generator(SEED, OFFSET).random(x.shape, x.dtype)
    np.testing.assert_array_equal(found, wanted)
    found = drawn(lambda fd, x: fd.ops.randn_like(x, **words), x)
    wanted = Generator(SEED, OFFSET).standard_normal(x.shape, x.dtype)
    np.testing.assert_array_equal(found, wanted)


def test_seed_and_offset_are_scalars_of_a_call() -> None:
    fd = FusionDefinition()
    x = fd.define_tensor(shape=[-1, -1], dtype=DataType.Float)
    seed, offset = (fd.define_scalar(dtype=DataType.Int) for _ in range(2))
    fd.add_output(fd.ops.add(x, fd.ops.rand_like(x, seed, offset)))
    given = np.zeros((4, 9), np.float32)
    for call in (0, 1, 7):
        (found,) = fd.execute([given, 3, call])
        wanted = Generator(3, call).random(given.shape, given.dtype)
        np.testing.assert_array_equal(found, wanted)


def test_bounds_and_moments_are_those_asked_for() -> None:
    words = {"rng_seed": 1, "rng_offset": 0, "dtype": DataType.Double}
    found = drawn(lambda fd: fd.ops.uniform(-2.0, 3.0, [1 << 16], **words))
    assert -2 <= found.min() < -1.9
    assert 2.9 < found.max() < 3
    found = drawn(lambda fd: fd.ops.normal(4.0, 0.5, [1 << 16], **words))
    assert abs(found.mean() - 4) < 0.02
    assert abs(found.std() - 0.5) < 0.01


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda fd: fd.ops.uniform(0.0, 1.0, [3]), ArgumentError, "rng_offset"),
        (lambda fd: fd.ops.uniform(0.0, 1.0, [3], 1.5, 0), DTypeError, "integer"),
        (lambda fd: fd.ops.uniform(0.0, 1.0, [3], -1, 0), NfuserError, "rng_seed"),
        (
            lambda fd: fd.ops.normal(0.0, 1.0, [3], 1, 0, DataType.Int),
            DTypeError,
            "Float",
        ),
    ],
)
def test_bad_input_is_refused(build: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        build(FusionDefinition())
