# SPDX-License-Identifier: Apache-2.0
"""Operations of nvFuser that NumPy does not have, or has otherwise."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser import DataType, FusionDefinition
from nfuser.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(0)


def _of(build: Callable[..., Any], *arrays: Any, backend: str = "cpu") -> list[Any]:
    with FusionDefinition(backend=backend) as fd:
        made = build(fd, *(fd.from_numpy(x) for x in arrays))
        for output in made if isinstance(made, list | tuple) else [made]:
            fd.add_output(output)
    return fd.execute(list(arrays))


@pytest.mark.parametrize("dims", [1, [0, -1]])
def test_welford_gives_mean_squares_and_count(dims: Any) -> None:
    x = RNG.normal(size=(3, 4, 5)).astype(np.float32)
    mean, squares, count = _of(lambda fd, t: fd.ops.welford(t, dims), x)
    axes = dims if isinstance(dims, int) else tuple(dims)
    n = x.size // mean.size
    np.testing.assert_allclose(mean, x.mean(axes), 1e-5, 1e-6)
    np.testing.assert_allclose(squares, x.var(axes) * n, 1e-5)
    assert count.dtype == np.int64
    np.testing.assert_array_equal(count, np.full(mean.shape, n))


@pytest.mark.parametrize("name", ["argsort", "sort", "cumsum", "cumprod", "cummax"])
@pytest.mark.parametrize("dim", [0, -1])
def test_a_tensor_without_axes_has_an_axis_to_go_along(name: str, dim: int) -> None:
    x = np.array(2.5, np.float32)
    (found,) = _of(lambda fd, t: getattr(fd.ops, name)(t, dim), x)
    assert np.shape(found) == ()
    assert found == (0 if name == "argsort" else x)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_integers_take_negative_integer_powers_toward_zero(backend: str) -> None:
    pairs = itertools.product([-3, -2, -1, 0, 1, 2, 3], [-3, -2, -1, 0, 1, 2, 5])
    x, y = np.asarray(list(pairs), np.int64).T.copy()
    (found,) = _of(lambda fd, a, b: fd.ops.pow(a, b), x, y, backend=backend)
    with np.errstate(all="ignore"):
        wanted = np.where(x == 0, np.where(y < 0, 0, x ** np.abs(y)), 0)
        quotient = np.trunc(np.power(x.astype(float), y))
    wanted = np.where(x == 0, wanted, np.where(np.isfinite(quotient), quotient, 0))
    np.testing.assert_array_equal(found, wanted.astype(np.int64))
    (exact,) = _of(lambda fd, b: fd.ops.pow(3, b), np.asarray([0, 1, 39, -1]))
    np.testing.assert_array_equal(exact, [1, 3, 3**39, 0])


@pytest.mark.parametrize("norm_type", [None, 1.0, 3, float("inf")])
def test_embedding_scales_rows_that_are_too_long(norm_type: Any) -> None:
    weight = RNG.normal(size=(6, 8)).astype(np.float32)
    index = np.asarray([[0, 5, 5], [2, 1, 0]])
    build = lambda fd, i, w: fd.ops.embedding_fwd(i, w, None, 2.0, norm_type)  # noqa: E731
    (found,) = _of(build, index, weight)
    rows = weight[index].astype(np.float64)
    norm = np.linalg.norm(rows, norm_type or 2, axis=-1, keepdims=True)
    scale = np.where(norm > 2.0, 2.0 / (norm + 1e-7), 1.0)
    assert found.dtype == np.float32
    assert (scale < 1).any()
    np.testing.assert_allclose(found, rows * scale, 1e-5)


def test_a_stretched_axis_is_squeezed_where_that_is_asked_for() -> None:
    x = RNG.normal(size=(3, 1)).astype(np.float32)

    def build(fd: FusionDefinition, t: Any) -> Any:
        wide = fd.ops.expand(fd.ops.mul(t, 2.0), [3, 7])
        tall = fd.ops.broadcast_in_dim(t, [5, 3, 1], [1, 2])
        return [
            fd.ops.squeeze(fd.ops.neg(wide), [1], squeeze_expanded=True),
            fd.ops.squeeze(tall, [0, 2], squeeze_expanded=True),
        ]

    narrow, line = _of(build, x)
    np.testing.assert_array_equal(narrow, -2 * x[:, 0])
    np.testing.assert_array_equal(line, x[:, 0])


def test_an_input_of_stride_0_is_squeezed_too() -> None:
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1], contiguity=[True, None])
        fd.add_output(fd.ops.squeeze(t, [1], squeeze_expanded=True))
    x = np.broadcast_to(np.arange(3, dtype=np.float32)[:, None], (3, 4))
    np.testing.assert_array_equal(fd.execute([x])[0], x[:, 0])


def test_elements_that_differ_are_not_squeezed() -> None:
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[3, 4], dtype=DataType.Float)
        with pytest.raises(ShapeError, match="size"):
            fd.ops.squeeze(t, [1], squeeze_expanded=True)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_an_output_lies_in_memory_as_it_was_asked_for(order: tuple[int, ...]) -> None:
    x = RNG.normal(size=(3, 4, 5)).astype(np.float32)
    build = lambda fd, t: fd.ops.stride_order(fd.ops.neg(t), list(order))  # noqa: E731
    (found,) = _of(build, x)
    np.testing.assert_array_equal(found, -x)
    fastest = sorted(range(3), key=lambda axis: found.strides[axis])
    assert [order[axis] for axis in fastest] == [0, 1, 2]
    assert min(found.strides) == found.itemsize


def test_an_order_that_ranks_other_axes_is_refused() -> None:
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[2, 3])
        with pytest.raises(ShapeError, match="ranks of all axes"):
            fd.ops.stride_order(t, [1, 1])
