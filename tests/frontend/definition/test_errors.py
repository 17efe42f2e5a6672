# SPDX-License-Identifier: Apache-2.0
"""What a definition refuses: while it is written."""

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
        lambda fd, x: fd.ops.scaled_mm(x, x, x, x),
        NotImplementedError,
        "fd.ops.scaled_mm is not supported",
    ),
    "more of the largest than there are": (
        lambda fd, x: fd.ops.topk(x, 9, 0),
        ValueError,
        "k is 9, more than axis 0 of shape",
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
        "(2,3) does not stretch to (2,4)",
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
    "a slice that stands still": (
        lambda fd, x: fd.ops.slice(x, [0, 0], [2, 3], [1, 0]),
        ValueError,
        "strides of a slice are positive integers, not [1, 0]",
    ),
    "a slice of other axes": (
        lambda fd, x: fd.ops.slice(x, [0], [2]),
        ValueError,
        "slice takes a start, an end and a stride for each of 2 axes",
    ),
    "a slice that promises too much": (
        lambda fd, x: fd.ops.slice(x, [0, 0], [2, 4], manual_normalization=True),
        ValueError,
        "start 0 and end 4 do not lie in order within axis 1 of shape (2,3)",
    ),
    "two sizes of -1": (
        lambda fd, x: fd.ops.reshape(x, [-1, -1]),
        ValueError,
        "can only specify one unknown dimension",
    ),
    "a size of -2": (
        lambda fd, x: fd.ops.reshape(x, [-2, 3]),
        ValueError,
        "a size is at least 0, or one of them -1; found -2",
    ),
    "sizes that do not multiply up": (
        lambda fd, x: fd.ops.reshape(x, [4, 2]),
        ValueError,
        "cannot reshape array of size 6 into shape (4,2); its shape is (2,3)",
    ),
    "sizes that do not divide": (
        lambda fd, x: fd.ops.reshape(x, [4, -1]),
        ValueError,
        "the other sizes multiply up to 4, which does not divide 6",
    ),
    "a shape that is no list": (
        lambda fd, x: fd.ops.reshape(x, 6),
        TypeError,
        "a shape is a list, not int",
    ),
    "a size that is no integer": (
        lambda fd, x: fd.ops.reshape(x, [6.0]),
        TypeError,
        "a size is an integer, or a scalar that is an integer input",
    ),
    "axes to join the wrong way round": (
        lambda fd, x: fd.ops.flatten(x, 1, 0),
        ValueError,
        "axis 1 lies behind axis 0",
    ),
    "a pad that drops too much": (
        lambda fd, x: fd.ops.pad(x, [-2, -2]),
        ValueError,
        "an array of shape (2,3) would get the sizes (2,-1)",
    ),
    "a pad of half an axis": (
        lambda fd, x: fd.ops.pad(x, [1]),
        TypeError,
        "pad_widths has 1 entries",
    ),
    "a pad of more axes": (
        lambda fd, x: fd.ops.pad(x, [1] * 6),
        TypeError,
        "expected a pair for each of at most 2 axes, the last axis first",
    ),
    "a border that drops": (
        lambda fd, x: fd.ops.extend(x, [-1, 0], "wrap"),
        ValueError,
        "a width is negative: -1",
    ),
    "a border of an unknown kind": (
        lambda fd, x: fd.ops.extend(x, [1, 0], "constant"),
        ValueError,
        "mode is edge, wrap, reflect or symmetric, found 'constant'",
    ),
    "unequal shapes to join": (
        lambda fd, x: fd.ops.cat([x, fd.define_tensor(shape=[-1, 4])]),
        ValueError,
        "all other sizes must match; axis 1 of (2,3) (?,4) differs",
    ),
    "unequal shapes to stack": (
        lambda fd, x: fd.ops.stack([x, fd.define_tensor(shape=[-1, 4])]),
        ValueError,
        "all sizes must match; axis 1 of (2,3) (?,4) differs",
    ),
    "unequal ranks to join": (
        lambda fd, x: fd.ops.cat([x, fd.define_tensor(shape=[2])]),
        ValueError,
        "the arrays have 2, 1 axes",
    ),
    "nothing to join": (
        lambda fd, _: fd.ops.cat([]),
        ValueError,
        "expected at least one tensor, found none",
    ),
    "a join along an axis there is not": (
        lambda fd, x: fd.ops.cat([x, x], 2),
        IndexError,
        "axis 2 is out of bounds for array of dimension 2",
    ),
    "parts that are not equal": (
        lambda fd, x: fd.ops.split(x, 2, 1),
        ValueError,
        "axis 1 of shape (2,3) does not divide into 2 equal parts",
    ),
    "no parts": (
        lambda fd, x: fd.ops.split(x, 0),
        ValueError,
        "the number of parts is an integer above 0, found 0",
    ),
    "elements whose number is unknown": (
        lambda fd, _: fd.ops.unstack(fd.define_tensor(shape=[-1])),
        ValueError,
        "the size of axis 0 must be known while it is defined",
    ),
    "a negative count": (
        lambda fd, x: fd.ops.tile(x, [-1]),
        ValueError,
        "negative dimensions are not allowed: -1",
    ),
    "shifts that do not go with axes": (
        lambda fd, x: fd.ops.roll(x, [1, 2, 3], [0, 1]),
        ValueError,
        "3 shifts do not go with 2 axes",
    ),
    "an index far behind the front": (
        lambda fd, x: fd.ops.take(x, -4, 1),
        IndexError,
        "index -4 is out of bounds for axis 1 of shape (2,3)",
    ),
    "a float as an index": (
        lambda fd, x: fd.ops.index_select(x, x, 1),
        TypeError,
        "an index is a tensor of integers, found <T0: 2 axes, DataType.Float>",
    ),
    "an index of two axes": (
        lambda fd, x: fd.ops.index_select(x, fd.ops.cast(x, DataType.Int), 1),
        ValueError,
        "an index of index_select has one axis, found shape (2,3)",
    ),
    "an index that is longer": (
        lambda fd, x: fd.ops.gather(x, fd.define_tensor([3, 3], dtype=DataType.Int), 1),
        ValueError,
        "the index, of shape (3,3), is longer than the tensor, of shape (2,3)",
    ),
    "an index of fewer axes": (
        lambda fd, x: fd.ops.gather(x, fd.define_tensor([3], dtype=DataType.Int), 1),
        ValueError,
        "the index has 1 axes for the 2 of the tensor: shapes (3,) and (2,3)",
    ),
    "an embedding of one axis": (
        lambda fd, x: fd.ops.embedding_fwd(
            fd.ops.cast(x, DataType.Int), fd.ops.sum(x, 0)
        ),
        ValueError,
        "the weight has two axes, found shape (3,)",
    ),
    "a triangle of one axis": (
        lambda fd, x: fd.ops.triu(fd.ops.sum(x, 0)),
        ValueError,
        "expected at least two axes, found shape (3,)",
    ),
    "an order of the wrong length": (
        lambda fd, x: fd.ops.permute(x, [0]),
        ValueError,
        "axes don't match array: 1 for 2 dimensions",
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
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_mistake_is_refused_on_its_line(case: str) -> None:
    write, kind, message = WRITTEN[case]
    fd = FusionDefinition()
    x = fd.define_tensor(shape=[2, 3])
    with pytest.raises(NfuserError, match=re.escape(message)) as caught:
        write(fd, x)
    assert isinstance(caught.value, kind)
    assert str(caught.value).startswith("fd.")  # the operation
    line = write.__code__.co_firstlineno
    named = re.search(r"\n  at .*test_errors\.py:(\d+)\n", str(caught.value))
    assert named is not None
    assert int(named.group(1)) in range(line, line + 3)
    assert str(caught.value).count("\n") == 2
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


CALLED: dict[str, tuple[Callable[[FusionDefinition, Any], Any], list[Any], str]] = {
    "a shape that does not multiply up": (
        lambda fd, x: fd.ops.reshape(x, [4, -1]),
        [GRID],
        "cannot reshape array of size 6 into shape (4,-1)",
    ),
    "two scalars of -1": (
        lambda fd, x: fd.ops.reshape(x, fd.define_vector(2)),
        [GRID, -1, -1],
        "fd.ops.reshape: one size may be -1, not more",
    ),
    "-1 beside a size of 0": (
        lambda fd, x: fd.ops.reshape(x, fd.define_vector(2)),
        [GRID[:0], -1, 0],
        "fd.ops.reshape: -1 stands for any size beside one that is 0",
    ),
    "a pad that drops too much": (
        lambda fd, x: fd.ops.pad(x, [-4, 0]),
        [GRID],
        "an array of shape (2,3) would get the sizes (2,-1)",
    ),
    "unequal shapes to join": (
        lambda fd, x: fd.ops.cat([x, fd.ops.permute(x, [1, 0])], 0),
        [GRID],
        "all other sizes must match; along axis 1, the array at 0 has size 3",
    ),
    "a slice that promises too much": (
        lambda fd, x: fd.ops.slice(x, [0, 1], [3, 2], manual_normalization=True),
        [GRID],
        "fd.ops.slice: start 0 and end 3 do not lie in order within axis 0",
    ),
    "an index out of bounds": (
        lambda fd, x: fd.ops.select(x, fd.define_vector(1)[0], 1),
        [GRID, 3],
        "is out of bounds for axis 1 of shape (?,?), by -1",
    ),
    "an index that is longer": (
        lambda fd, x: fd.ops.gather(x, fd.define_tensor([3, 3], dtype=DataType.Int), 1),
        [GRID, np.zeros((3, 3), int)],
        "the index, of shape (3,3), is longer than the tensor, of shape (?,?), along",
    ),
    "a negative count": (
        lambda fd, x: fd.ops.repeat(x, fd.define_vector(1)[0], 1),
        [GRID, -1],
        "fd.ops.repeat: negative dimensions are not allowed: -1",
    ),
    "parts that are not equal": (
        lambda fd, x: fd.ops.split(x, 2, 1)[0],
        [GRID],
        "axis 1 of shape (?,?) does not divide into 2 equal parts",
    ),
    "a squeeze of a long axis": (
        lambda fd, x: fd.ops.squeeze(x, [1]),
        [GRID],
        "the size of axis 1 must be 1, but is 3",
    ),
}


@pytest.mark.parametrize("case", CALLED)
def test_a_call_with_sizes_that_do_not_fit_names_the_line(case: str) -> None:
    write, inputs, message = CALLED[case]
    with FusionDefinition() as fd:
        fd.add_output(write(fd, fd.define_tensor(shape=[-1, -1])))
    with pytest.raises(NfuserError, match=re.escape(message)) as caught:
        fd.execute(inputs)
    assert isinstance(caught.value, ValueError)
    line = write.__code__.co_firstlineno
    named = re.search(r"\n  at .*test_errors\.py:(\d+)\n", str(caught.value))
    assert named is not None
    assert int(named.group(1)) in range(line, line + 3)
