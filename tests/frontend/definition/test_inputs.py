# SPDX-License-Identifier: Apache-2.0
"""Inputs of a call: what fits a definition, and what is refused by name."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser import (
    DataType,
    FusionDefinition,
    FusionExecutorCache,
    HostIrContainer,
    HostIrEvaluator,
    NfuserError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

GRID = np.arange(6, dtype=np.float32).reshape(2, 3)


def _of(**options: Any) -> FusionDefinition:
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.exp(fd.define_tensor(**options)))
    return fd


ANY = {"shape": [-1, -1]}
GIVEN: dict[str, tuple[dict[str, Any], list[Any], type, str]] = {
    "too few": (ANY, [], TypeError, "expected 1 inputs (T0), found 0"),
    "too many": (ANY, [GRID, GRID], TypeError, "expected 1 inputs (T0), found 2"),
    "no array": (ANY, [[1, 2]], TypeError, "input 0 (T0): expected an array of NumPy"),
    "dtype": (
        ANY,
        [GRID.astype(np.float64)],
        TypeError,
        "input 0 (T0): expected DataType.Float, found an array of float64",
    ),
    "rank": ({"shape": [-1]}, [GRID], ValueError, "input 0 (T0): expected 1 axes"),
    "size": (
        {"shape": [-1, 4]},
        [GRID],
        ValueError,
        "input 0 (T0): expected size 4 along axis 1, found an array of shape (2, 3)",
    ),
    "broadcast axis": ({"shape": [-1, 1]}, [GRID], ValueError, "expected size 1 along"),
    "contiguity": (
        ANY | {"contiguity": True},
        [GRID.T],
        TypeError,
        "input 0 (T0): axis 1 is defined as contiguous, with stride 1",
    ),
    "contiguity of an outer axis": (
        ANY | {"contiguity": [True, True]},
        [np.ones((2, 4), np.float32)[:, :3]],
        TypeError,
        "axis 0 is defined as contiguous, with stride 3",
    ),
    "stride order": (
        ANY | {"stride_order": [0, 1]},
        [GRID],
        TypeError,
        "stride_order says that axis 1 is slower than 0",
    ),
    "array by value": (
        {"shape": [], "is_cpu": True},
        [GRID],
        TypeError,
        "expected an array without axes on the CPU",
    ),
    "dtype by value": (
        {"shape": [], "is_cpu": True},
        [np.float64(1)],
        TypeError,
        "expected DataType.Float, found float64",
    ),
}


@pytest.mark.parametrize("case", GIVEN)
def test_an_input_that_does_not_fit_is_named(case: str) -> None:
    options, inputs, kind, message = GIVEN[case]
    with pytest.raises(NfuserError, match=re.escape(message)) as caught:
        _of(**options).execute(inputs)
    assert isinstance(caught.value, kind)


def test_what_fits_is_not_refused() -> None:
    fortran = np.asfortranarray(GRID)
    gaps = np.ones((2, 3, 4), np.float32)[:, :, :2]
    for options, x in (
        (ANY | {"contiguity": True}, GRID),
        (ANY | {"contiguity": True, "stride_order": [0, 1]}, fortran),
        (ANY | {"contiguity": [None, True]}, np.broadcast_to(GRID[0], (4, 3))),
        (ANY | {"contiguity": True}, GRID[:1, ::-1][:, :1]),
        ({"shape": [-1, -1, -1], "contiguity": [True, False, True]}, gaps),
        ({"shape": [-1, 0], "contiguity": True}, GRID.T[:, :0]),
    ):
        np.testing.assert_allclose(_of(**options).execute([x])[0], np.exp(x), 1e-6)


def _with_number(kind: DataType, use: Callable[..., Any]) -> FusionDefinition:
    with FusionDefinition() as fd:
        fd.add_output(use(fd, fd.define_scalar(dtype=kind)))
    return fd


@pytest.mark.parametrize(
    ("kind", "number", "error"),
    [
        (DataType.Int, 2.5, TypeError),
        (DataType.Double, 1j, TypeError),
        (DataType.Bool, 2, TypeError),
        (DataType.Int, "2", TypeError),
        (DataType.Double, GRID, TypeError),
        (DataType.Int8, 128, OverflowError),
        (DataType.UInt8, -1, OverflowError),
        (DataType.UInt64, 1 << 63, OverflowError),
    ],
)
def test_a_number_that_does_not_fit_is_named(
    kind: DataType, number: Any, error: type
) -> None:
    fd = _with_number(kind, lambda fd, n: fd.ops.add(n, n))
    with pytest.raises(NfuserError, match=r"input 0 \(S0\)") as caught:
        fd.execute([number])
    assert isinstance(caught.value, error)


def test_numbers_are_checked_at_each_call() -> None:
    extent = _with_number(DataType.Int, lambda fd, n: fd.ops.full([n], 1.0))
    assert extent.execute([2])[0].shape == (2,)
    with pytest.raises(ValueError, match=r"are not allowed: -3\n  at .*\.py"):
        extent.execute([-3])
    narrow = _with_number(
        DataType.Int, lambda fd, n: fd.ops.add(fd.ops.full([2], 1, DataType.Int8), n)
    )
    assert narrow.execute([5])[0].tolist() == [6, 6]
    with pytest.raises(OverflowError, match="integer 300 out of bounds for int8"):
        narrow.execute([300])
    power = _with_number(
        DataType.Int, lambda fd, n: fd.ops.pow(fd.ops.full([2], 2, DataType.Int), n)
    )
    assert power.execute([3])[0].tolist() == [8, 8]
    with pytest.raises(ValueError, match="negative integer powers are not allowed: -1"):
        power.execute([-1])


def test_sizes_are_checked_at_each_new_shape() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1])
        fd.add_output(fd.ops.full([fd.ops.sub(x.size(0), 3)], 1.0))
    assert fd.execute([np.ones(5, np.float32)])[0].shape == (2,)
    with pytest.raises(ValueError, match="negative dimensions are not allowed: -1"):
        fd.execute([np.ones(2, np.float32)])


@pytest.mark.parametrize("index", [2, -3])
def test_an_index_is_checked_at_each_new_shape(index: int) -> None:
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.select(fd.define_tensor(shape=[-1, -1]), index, 1))
    np.testing.assert_array_equal(fd.execute([GRID])[0], GRID[:, index])
    with pytest.raises(ValueError, match=f"index {index} is out of bounds for axis 1"):
        fd.execute([GRID[:, :2]])


def test_symbolic_sizes_that_do_not_meet_name_the_line() -> None:
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor(shape=[-1]) for _ in range(2))
        fd.add_output(fd.ops.add(a, b))
    with pytest.raises(ValueError, match=r"\(2,\) \(3,\); .*\n  at .*inputs\.py"):
        fd.execute([np.ones(2, np.float32), np.ones(3, np.float32)])


@pytest.mark.parametrize("unread", [1, 2])
def test_integers_that_nothing_reads_are_inputs_of_the_fusion(unread: int) -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1])
        read = fd.define_scalar(dtype=DataType.Int)
        for _ in range(unread):
            fd.define_scalar(dtype=DataType.Int)
        fd.add_output(fd.ops.mul(x, read))
    numbers = [2, *range(7, 7 + unread)]
    np.testing.assert_array_equal(fd.execute([GRID, *numbers])[0], GRID * 2)
    assert FusionExecutorCache(fd.fusion).program_for([GRID, *numbers]).launches
    hc = HostIrContainer("unread")
    hc.add_output(
        hc.launch(fd.fusion, hc.define_tensor([-1, -1], np.float32), *numbers)
    )
    (found,) = HostIrEvaluator(hc.program()).run([GRID])
    np.testing.assert_array_equal(found, GRID * 2)
