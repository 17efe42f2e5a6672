# SPDX-License-Identifier: Apache-2.0
"""Arrays that no kernel can read where they lie are copied, and counted."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ArgumentError, DTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES = ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16")
RECORD = np.dtype([("first", "u1"), ("wanted", "f8"), ("last", "u1")])
PAIR = np.dtype([("wanted", "c16"), ("last", "f8")], align=True)


def misaligned(array: Any) -> Any:
    """Return an equal array that begins at an odd address."""
    found = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype)
    found = found.reshape(array.shape)
    found[...] = array
    return found


def swapped(array: Any) -> Any:
    """Return an equal array in the other byte order."""
    return array.astype(array.dtype.newbyteorder("S"))


def _field(dtype: np.dtype[Any], array: Any) -> Any:
    records = np.zeros(array.shape, dtype)
    records["wanted"] = array
    return records["wanted"]


FORMS: dict[str, Callable[[Any], Any]] = {
    "misaligned": misaligned,
    "of the other byte order": swapped,
    "both": lambda x: misaligned(swapped(x)),
    "read only": lambda x: np.frombuffer(b"." + x.tobytes(), "u1")[1:].view(x.dtype),
    "a field of a record": lambda x: _field(RECORD, x),
    "complex numbers between others": lambda x: _field(PAIR, x),
    "backwards": lambda x: misaligned(x[::-1])[::-1],
}
X = np.arange(5.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_taken_as_numpy_takes_it(dtype: str) -> None:
    @nfuser.fuse
    def both(x: Any, y: Any) -> Any:
        return np.where(x == y, x, y)

    plain = np.arange(6).reshape(2, 3).astype(dtype)
    for form in (misaligned, swapped):
        found = both(form(plain), plain)
        np.testing.assert_array_equal(found, plain)
        assert found.dtype == plain.dtype
    is_moved = plain.dtype.itemsize > 1
    assert both.cache_info().copied == 2 * is_moved


@pytest.mark.parametrize("form", FORMS)
def test_a_copy_is_counted_and_explained(form: str) -> None:
    doubled = nfuser.fuse(lambda x: x * 2)
    array = FORMS[form](X)
    for _ in range(6):
        np.testing.assert_array_equal(doubled(array), X * 2)
    assert doubled.cache_info().copied == 6
    (note,) = doubled.explain(array).notes
    assert note.startswith("x is copied at each call: its elements ")
    assert not doubled.explain(X.astype(array.dtype.newbyteorder("="))).notes


def test_calls_that_native_code_serves_do_not_take_them_for_others() -> None:
    doubled = nfuser.fuse(lambda x: x * 2)
    for _ in range(8):
        doubled(X)
    served = doubled.native_calls
    for form in (misaligned, swapped):
        for _ in range(4):
            np.testing.assert_array_equal(doubled(form(X)), X * 2)
    np.testing.assert_array_equal(doubled(X), X * 2)
    assert doubled.native_calls == served + (served > 0)
    assert doubled.cache_info().copied == 8
    assert doubled.cache_info().runtimes == 1


def test_sizes_that_keep_changing_do_not_either() -> None:
    doubled = nfuser.fuse(lambda x: x * 2)
    for size in range(1, 80):
        x = np.arange(float(size))
        form = (misaligned, swapped, np.copy)[size % 3]
        np.testing.assert_array_equal(doubled(form(x)), x * 2)
        np.testing.assert_array_equal(doubled(x), x * 2)
    assert doubled.cache_info().copied == len([k for k in range(1, 80) if k % 3 < 2])


def test_arrays_in_containers_and_captured_ones_are_copied() -> None:
    table, other = misaligned(X), swapped(X)

    @nfuser.fuse
    def summed(tree: Any) -> Any:
        return tree["a"] * table + tree["rest"][0] * other

    tree = {"a": misaligned(X), "rest": [swapped(X), None]}
    for factor in (1, 2):
        table[:] = X * factor
        np.testing.assert_array_equal(summed(tree), X * X * factor + X * X)
    assert summed.cache_info().copied == 8
    notes = summed.explain(tree).notes
    assert [note.split(" is ")[0] for note in notes[-2:]] == ["table", "other"]


def test_bound_calls_read_the_elements_anew() -> None:
    for form in (misaligned, swapped):
        doubled = nfuser.fuse(lambda x: x * 2)
        array = form(X)
        step = doubled.bind(array)
        for first in (3.0, 4.0):
            array[0] = first
            assert step()[0] == first * 2
        np.testing.assert_array_equal(doubled.bind(X)(form(X)), X * 2)


def test_outputs_that_are_given_have_to_lie_as_kernels_write() -> None:
    doubled = nfuser.fuse(lambda x: x * 2)
    with pytest.raises(ArgumentError, match=r"out: .* not aligned"):
        doubled.bind(X, out=misaligned(X))
    with pytest.raises(DTypeError, match=r"out: .* byte order"):
        doubled.bind(X, out=swapped(X))


def test_definitions_copy_what_they_read_and_refuse_what_they_write() -> None:
    def define(*, writes: bool) -> nfuser.FusionDefinition:
        with nfuser.FusionDefinition() as fd:
            x = fd.define_tensor([-1], dtype=nfuser.DataType.Double)
            fd.add_output(fd.ops.neg(x), x if writes else None)
        return fd

    reads, writes = define(writes=False), define(writes=True)
    for form in (misaligned, swapped):
        np.testing.assert_array_equal(reads.execute([form(X)])[0], -X)
        with pytest.raises((ArgumentError, DTypeError), match=r"align|byte order"):
            writes.execute([form(X)])
    assert reads.cache_info().copied == 2


def test_masks_are_not_lost_in_a_copy() -> None:
    masked = np.ma.array(swapped(X), mask=X == 0)
    with pytest.raises(ArgumentError, match="filled"):
        nfuser.fuse(lambda x: x * 2)(masked)
