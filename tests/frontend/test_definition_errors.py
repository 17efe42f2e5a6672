# SPDX-License-Identifier: Apache-2.0
"""What a definition refuses: while it is written."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser import DataType, FusionDefinition, NfuserError

if TYPE_CHECKING:
    from collections.abc import Callable

GRID = np.arange(6, dtype=np.float32).reshape(2, 3)

WRITTEN: dict[str, tuple[Callable[[FusionDefinition, Any], Any], type, str]] = {
    "static sizes that do not meet": (
        lambda fd, x: fd.ops.add(x, fd.define_tensor(shape=[2, 4])),
        ValueError,
        "operands could not be broadcast together with shapes (2,3) (2,4)",
    ),
    "an axis there is not": (
        lambda fd, x: fd.ops.sum(x, 2),
        IndexError,
        "axis 2 is out of bounds for array of dimension 2",
    ),
    "a dtype without meaning": (
        lambda fd, x: fd.ops.neg(fd.ops.gt(x, 0)),
        TypeError,
        "numpy boolean negative",
    ),
    "a constant that does not fit": (
        lambda fd, x: fd.ops.add(fd.ops.cast(x, DataType.UInt8), 300),
        OverflowError,
        "Python integer 300 out of bounds for uint8",
    ),
    "a scalar of another kind": (
        lambda fd, _: fd.define_scalar(2.5, dtype=DataType.Int),
        TypeError,
        "2.5 is no DataType.Int",
    ),
    "a scalar that its dtype cannot hold": (
        lambda fd, _: fd.define_scalar(300, dtype=DataType.Int8),
        OverflowError,
        "300 out of bounds for int8",
    ),
    "an operation that is not there yet": (
        lambda fd, x: fd.ops.reshape(x, [6]),
        NotImplementedError,
        "fd.ops.reshape is not supported",
    ),
    "an operand too few": (
        lambda fd, x: fd.ops.add(x),
        TypeError,
        "fd.ops.add: missing a required argument: 'y'",
    ),
    "an option that there is not": (
        lambda fd, x: fd.ops.softmax(x, dim=3),
        TypeError,
        "fd.ops.softmax: got an unexpected keyword argument 'dim'",
    ),
    "an array among the operands": (
        lambda fd, x: fd.ops.add(x, GRID),
        TypeError,
        "found ndarray. Arrays are passed to fd.execute",
    ),
    "a tensor of another definition": (
        lambda fd, _: fd.ops.exp(FusionDefinition().define_tensor(shape=[2])),
        TypeError,
        "belongs to another FusionDefinition",
    ),
    "a squeeze of a long axis": (
        lambda fd, x: fd.ops.squeeze(x, [1]),
        ValueError,
        "axis 1 of shape (2,3)",
    ),
    "an expansion of a long axis": (
        lambda fd, x: fd.ops.expand(x, [2, 4]),
        ValueError,
        "does not stretch to (2,4)",
    ),
    "a tensor as an extent": (
        lambda fd, x: fd.ops.full([x], 1),
        TypeError,
        "an extent is an integer",
    ),
    "a negative extent": (
        lambda fd, _: fd.ops.full([-1], 1),
        ValueError,
        "negative dimensions are not allowed: -1",
    ),
    "broadcast flags that do not fit": (
        lambda fd, x: fd.ops.broadcast(x, [True, False]),
        ValueError,
        "is_broadcast_dim has 1 False for the 2 axes",
    ),
    "a slice that runs backwards": (
        lambda fd, x: fd.ops.slice(x, [0, 0], [2, 3], [1, -1]),
        ValueError,
        "strides of a slice are positive integers, not [1, -1]",
    ),
    "a slice from the end": (
        lambda fd, x: fd.ops.slice(x, [0, -1], [2, 3]),
        ValueError,
        "negative dimensions are not allowed: -1",
    ),
    "an index out of bounds": (
        lambda fd, x: fd.ops.select(x, 3, 1),
        IndexError,
        "index 3 is out of bounds for axis 1",
    ),
    "places out of order": (
        lambda fd, x: fd.ops.broadcast_in_dim(x, [3, 2], [1, 0]),
        ValueError,
        "broadcast_dims must name 2 places",
    ),
    "a negative size": (
        lambda fd, _: fd.define_tensor(shape=[2, -3]),
        ValueError,
        "found -3",
    ),
    "a short contiguity": (
        lambda fd, _: fd.define_tensor([2, 3], [True]),
        ValueError,
        "contiguity has 1 entries for 2 axes",
    ),
    "a stride order that is none": (
        lambda fd, _: fd.define_tensor([2, 3], stride_order=[1, 1]),
        ValueError,
        "stride_order must rank 2 axes",
    ),
    "an array on the CPU with axes": (
        lambda fd, _: fd.define_tensor([2], is_cpu=True),
        NotImplementedError,
        "is_cpu is for arrays without axes",
    ),
    "sizes without strides": (
        lambda fd, _: fd.define_tensor(sizes=[2]),
        TypeError,
        "takes shape, or both sizes and strides",
    ),
    "an output that is written in place": (
        lambda fd, x: fd.add_output(fd.ops.exp(x), x),
        NotImplementedError,
        "inputs are never written",
    ),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_mistake_is_refused_on_its_line(case: str) -> None:
    write, kind, message = WRITTEN[case]
    fd = FusionDefinition()
    x = fd.define_tensor(shape=[2, 3])
    with pytest.raises(NfuserError, match=re.escape(message)) as caught:
        write(fd, x)
    assert isinstance(caught.value, kind)
    line = write.__code__.co_firstlineno
    named = re.search(r"\n  at .*test_definition_errors\.py:(\d+)\n", str(caught.value))
    assert named is not None
    assert int(named.group(1)) in range(line, line + 3)
    assert fd.validate_definition() == (
        False,
        "Fusion has no output; call fd.add_output",
    )


def test_an_unknown_operation_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no operation 'gelu_backward'"):
        _ = FusionDefinition().ops.gelu_backward


def test_a_complete_definition_takes_no_more() -> None:
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.exp(fd.define_tensor(shape=[-1, -1])))
    for change in (
        lambda: fd.define_tensor(shape=[1]),
        lambda: fd.define_scalar(1),
        lambda: fd.ops.exp(1.0),
        lambda: fd.ops.cat([1.0]),
        fd.__enter__,
    ):
        with pytest.raises(NfuserError, match="the definition is complete"):
            change()
    fd.execute([GRID])


def test_a_backend_that_there_is_not() -> None:
    with pytest.raises(NfuserError, match="backend must be one of"):
        FusionDefinition(backend="gpu")
