# SPDX-License-Identifier: Apache-2.0
"""Results lie in memory as NumPy's do: ``order=``, and what argmax gives."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

_BASE = np.random.default_rng(0).permutation(120).reshape(4, 5, 6) * 1.0
LAYOUTS = {
    "C": _BASE,
    "F": np.asfortranarray(_BASE),
    "rotated": np.ascontiguousarray(_BASE.transpose(1, 2, 0)).transpose(2, 0, 1),
    "reversed": _BASE[::-1, :, ::-1],
    "strided": _BASE[:, ::2, ::3],
    "permuted": _BASE.transpose(1, 0, 2),
    "one row": np.asfortranarray(_BASE[:1]),
}
COPIES: dict[str, Callable[[Any, Any], Any]] = {
    "np.copy": lambda x, order: np.copy(x, order=order),
    "method": lambda x, order: x.copy(order),
    "astype": lambda x, order: x.astype("f4", order=order),
    "astype of the same": lambda x, order: x.astype("f8", order=order),
    "astype without copy": lambda x, order: x.astype("f8", order=order, copy=False) + 1,
    "then computed": lambda x, order: (x * 2).copy(order) + 1,
    "of a view": lambda x, order: (x * 2).T.copy(order),
    "then reduced": lambda x, order: np.copy(x, order).sum(1),
    "half": lambda x, order: x.astype("f2").copy(order) + 1,
    "complex": lambda x, order: x.astype("c8").copy(order),
}


def assert_alike(function: Callable[..., Any], *args: Any) -> None:
    """Check values and the strides along axes that have any."""
    expected, actual = function(*args), nfuser.fuse(function)(*args)
    np.testing.assert_array_equal(actual, expected)
    long = [k for k, n in enumerate(expected.shape) if n > 1]
    assert [actual.strides[k] for k in long] == [expected.strides[k] for k in long]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_an_index_of_the_largest_is_numpys(
    axis: int | None, keepdims: bool, layout: str
) -> None:
    def function(x: Any) -> Any:
        largest = np.argmax(x, axis=axis, keepdims=keepdims)
        return largest * 1000 + np.argmin(x, axis=axis, keepdims=keepdims)

    assert_alike(function, LAYOUTS[layout])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("order", ["K", "A", "C", "F", "f"])
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_honours_its_order(name: str, order: str, layout: str) -> None:
    assert_alike(lambda x: COPIES[name](x, order), LAYOUTS[layout])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_copy_has_numpys_default_order(layout: str) -> None:
    for function in (np.copy, copy.copy, copy.deepcopy, lambda x: x.copy()):
        assert_alike(lambda x, function=function: function(x), LAYOUTS[layout])


FILLS: dict[str, Callable[[Any, Any], Any]] = {
    "zeros": lambda x, order: np.zeros_like(x, order=order),
    "ones of another dtype": lambda x, order: np.ones_like(x, "f4", order=order),
    "full": lambda x, order: np.full_like(x, 3, order=order),
    "complex": lambda x, order: np.full_like(x.astype("c8"), 2j, order=order),
    "to integers": lambda x, order: np.full_like(x / 0 * 0, 7, "i2", order=order),
    "of a view": lambda x, order: np.zeros_like(x.transpose(1, 2, 0), order=order),
    "then computed": lambda x, order: np.ones_like(x, order=order) * 2 + 1,
    "beside": lambda x, order: np.ones_like(x, order=order) + x,
    "of a stretched row": lambda x, order: np.zeros_like(
        np.broadcast_to(x[0, 0] * 1, x.shape), order=order
    ),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FILLS)
def test_a_fill_lies_as_its_model(name: str, layout: str) -> None:
    assert_alike(lambda x: FILLS[name](x, "K"), LAYOUTS[layout])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("order", ["A", "C", "f"])
@pytest.mark.parametrize("name", ["zeros", "beside"])
def test_a_fill_honours_its_order(name: str, order: str, layout: str) -> None:
    assert_alike(lambda x: FILLS[name](x, order), LAYOUTS[layout])


def test_a_fill_reads_nothing_of_its_model() -> None:
    found = nfuser.fuse(lambda x: np.zeros_like(x) + 1).explain(LAYOUTS["F"])
    assert found.fused.reads == 0


def test_an_order_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="order must be one of 'C', 'F', 'A', or 'K'"):
        nfuser.fuse(lambda x: x.copy("Z"))(_BASE)


def test_an_ordered_copy_says_so_in_text() -> None:
    fused = nfuser.fuse(lambda x: x.copy("F") + 1)
    np.testing.assert_array_equal(fused(_BASE), _BASE + 1)
    assert fused(_BASE).flags.f_contiguous
