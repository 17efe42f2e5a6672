# SPDX-License-Identifier: Apache-2.0
"""A view of an argument that was assigned to is returned as one."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.ir.scalars.symbols import size
from nfuser.compiler.trace.call.returned_views import Sliced, are_known
from nfuser.errors import MutationError

if TYPE_CHECKING:
    from collections.abc import Callable

VIEWS: dict[str, Callable[[Any, int], Any]] = {
    "all": lambda x, _: x[:],
    "rows": lambda x, n: x[1:n],
    "one row": lambda x, n: x[n - 4],
    "from the end": lambda x, _: x[-2:],
    "one element": lambda x, _: x[1, 2, ...],
    "steps": lambda x, _: x[::2, 1:],
    "backwards": lambda x, n: x[n::-2, ::-1],
    "none": lambda x, n: x[n:n],
    "axes": lambda x, _: x[None, :, 1, None],
    "transposed": lambda x, _: x.T,
    "of a view": lambda x, n: x.T[1:][::-1, :n][..., None],
    "moved": lambda x, _: np.moveaxis(x, 0, 1)[2],
    "flipped": lambda x, _: np.fliplr(x),
    "squeezed": lambda x, _: np.squeeze(x[:1]),
}


def _same_view(found: Any, array: Any, wanted: Any, base: Any) -> None:
    np.testing.assert_array_equal(found, wanted)
    assert (found.shape, found.strides) == (wanted.shape, wanted.strides)
    begin, start = (x.__array_interface__["data"][0] for x in (found, array))
    other, first = (x.__array_interface__["data"][0] for x in (wanted, base))
    assert not found.size or begin - start == other - first


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_lies_where_numpys_lies(name: str, backend: str) -> None:
    def before(x: Any, n: int) -> Any:
        found = VIEWS[name](x, n)
        x[1:] += 1
        return found

    def after(x: Any, n: int) -> Any:
        x[0] = n
        return VIEWS[name](x, n)

    def written(x: Any, n: int) -> Any:
        found = VIEWS[name](x, n)
        found[...] = 7
        return x, found

    for function in (before, after, written):
        fused = nfuser.fuse(function, backend=backend)
        for rows, n in ((5, 4), (5, 4), (5, 4), (7, 5)):
            mine, theirs = (np.arange(rows * 6.0).reshape(rows, 6) for _ in range(2))
            found, wanted = fused(mine, n), function(theirs, n)
            if isinstance(found, tuple):
                assert found[0] is mine
                found, wanted = found[1], wanted[1]
            _same_view(found, mine, wanted, theirs)
            np.testing.assert_array_equal(mine, theirs)


def test_one_view_is_one_object() -> None:
    @nfuser.fuse
    def twice(x: Any) -> Any:
        x += 1
        part, other = x[1:], x[1:]
        return part, {"same": part}, other

    x = np.zeros(4)
    part, same, other = twice(x)
    assert part is same["same"]
    assert part is not other
    part[0] = 5
    assert x[1] == other[0] == 5


def test_views_of_arrays_from_outside_and_in_lists() -> None:
    field = SimpleNamespace(u=np.zeros(5))

    @nfuser.fuse
    def step(history: Any) -> Any:
        field.u[1:] += 1
        history.append(field.u[2:])
        return field.u[1:]

    history: list[Any] = []
    found = step(history)
    assert np.shares_memory(found, field.u)
    assert np.shares_memory(history[0], field.u)
    field.u[3] = 9
    assert found[2] == history[0][1] == 9


def test_what_was_not_assigned_to_is_returned_as_a_copy() -> None:
    @nfuser.fuse
    def part(x: Any, y: Any) -> Any:
        y[0] = 1
        return x[1:], y.reshape(-1), y[[0, 1]], y[1:] + 0

    x, y = np.ones(4), np.ones((2, 2))
    assert not any(np.shares_memory(found, z) for found in part(x, y) for z in (x, y))


def test_a_view_of_an_array_that_was_copied_is_one_of_the_callers() -> None:
    @nfuser.fuse
    def part(x: Any) -> Any:
        x[0] = 3
        return x[::2]

    unaligned = np.zeros(41, np.uint8)[1:].view("f8")
    swapped = np.zeros(5, ">f8")
    for x in (unaligned, swapped):
        found = part(x)
        assert np.shares_memory(found, x)
        assert found.dtype == x.dtype
        assert found.tolist() == [3, 0, 0]


def test_numbers_of_numpys_say_where_a_view_lies() -> None:
    @nfuser.fuse
    def part(x: Any, k: Any) -> Any:
        x += 1
        return x[k:]

    for kind in (np.int64, np.int32, np.uint8, int):
        for k in (2, 2, 2, 2, 3, 1):
            x = np.ones(5)
            found = part(x, kind(k))
            assert found.shape == (5 - k,)
            assert np.shares_memory(found, x)


def test_a_view_goes_into_no_output_that_is_given() -> None:
    @nfuser.fuse
    def part(x: Any) -> Any:
        x += 1
        return x[1:]

    x = np.ones(5)
    with pytest.raises(MutationError, match="leave out= out"):
        part.bind(x, out=np.zeros(4))
    assert x[0] == 1


def test_other_libraries_views() -> None:
    kind = type("DeviceArray", (), {"__module__": "numba.cuda"})
    assert not are_known((), kind)
    assert are_known((), np.ndarray)
    back = Sliced((size(0, 0),), (-1,), (size(0, 0),))
    assert are_known((back,), np.ndarray)
    assert not are_known((back,), type("Tensor", (), {"__module__": "torch"}))
