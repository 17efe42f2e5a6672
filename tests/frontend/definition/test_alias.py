# SPDX-License-Identifier: Apache-2.0
"""Outputs that are written into inputs."""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from nfuser import DataType, FusionDefinition, NfuserError

BACKENDS = ["cpu", "interpret"]


def _reversed(backend: str) -> FusionDefinition:
    """Return a definition that turns its input around in place, and sums it."""
    with FusionDefinition(backend=backend) as fd:
        x = fd.define_tensor(shape=[-1], dtype=DataType.Double)
        turned = fd.ops.flip(x, 0)
        fd.add_output(fd.ops.add(turned, x))
        fd.add_output(turned, x)
        fd.add_output(fd.ops.sum(x))
    return fd


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [0, 1, 7, 40_000])
def test_an_input_is_written_after_all_was_read(size: int, backend: str) -> None:
    x = np.arange(size, dtype=float)
    before = x.copy()
    found = _reversed(backend).execute([x])
    assert len(found) == 2  # the one that was written is not returned
    np.testing.assert_array_equal(found[0], before + before[::-1])
    assert found[1] == before.sum()
    np.testing.assert_array_equal(x, before[::-1])


def test_each_call_reads_what_the_last_one_wrote() -> None:
    with FusionDefinition() as fd:
        state = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.add(state, 1.0), state)
    memory = np.zeros((4, 6), np.float32)
    view = memory[::2, 1::2]
    for _ in range(3):
        assert fd.execute([view]) == []
    expected = np.zeros((4, 6))
    expected[::2, 1::2] = 3
    np.testing.assert_array_equal(memory, expected)


def test_an_input_that_lies_in_the_one_written_is_read_first() -> None:
    with FusionDefinition() as fd:
        x, y = fd.define_tensor(shape=[-1]), fd.define_tensor(shape=[-1])
        fd.add_output(fd.ops.add(x, y), x)
        fd.add_output(fd.ops.sub(x, y), y)
    memory = np.arange(8, dtype=np.float32)
    first, second = memory[:7], memory[1:].copy()
    kept = first.copy()
    fd.execute([first, second])
    np.testing.assert_array_equal(first, 2 * kept + 1)
    np.testing.assert_array_equal(second, np.full(7, -1))
    overlapping = np.arange(8, dtype=np.float32)
    with FusionDefinition() as fd:
        x, y = fd.define_tensor(shape=[-1]), fd.define_tensor(shape=[-1])
        fd.add_output(fd.ops.add(x, y), x)
    fd.execute([overlapping[1:], overlapping[:-1]])
    np.testing.assert_array_equal(overlapping, [0, 1, 3, 5, 7, 9, 11, 13])


def test_a_tensor_of_torch_is_written() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(6, dtype=torch.float64)
    _reversed("cpu").execute([x])
    assert x.tolist() == [5, 4, 3, 2, 1, 0]


def test_the_printed_form_says_which_input() -> None:
    fd = _reversed("cpu")
    assert "    fd.add_output(T1, T0)\n" in repr(fd)
    names: dict[str, Any] = {}
    exec(compile(repr(fd), "<printed>", "exec"), names)  # noqa: S102
    x = np.arange(3.0)
    assert len(names["fd"].execute([x])) == 2
    assert x.tolist() == [2, 1, 0]


def test_definitions_that_write_elsewhere_share_nothing() -> None:
    def made(written: int) -> FusionDefinition:
        with FusionDefinition() as fd:
            pair = [fd.define_tensor(shape=[-1]) for _ in range(2)]
            fd.add_output(fd.ops.add(*pair), pair[written])
        return fd

    for written in (0, 1):
        pair = [np.ones(3, np.float32), np.ones(3, np.float32)]
        made(written).execute(pair)
        assert [x[0] for x in pair] == [2 - written, 1 + written]


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "another dtype": (
        lambda fd, x: fd.ops.cast(x, DataType.Half),
        lambda fd, x: x,
        "T0 is DataType.Float and the output DataType.Half; cast it first",
    ),
    "another rank": (
        lambda fd, x: fd.ops.sum(x, 0),
        lambda fd, x: x,
        "an output of shape (3,) does not go into T0, of shape (?,3)",
    ),
    "another size": (
        lambda fd, x: fd.ops.cat([x, x], 1),
        lambda fd, x: x,
        "an output of shape (?,6) does not go into T0, of shape (?,3)",
    ),
    "no input": (
        lambda fd, x: x,
        lambda fd, x: fd.ops.exp(x),
        "alias_input is a tensor among the inputs, found <T1",
    ),
    "a number": (
        lambda fd, x: x,
        lambda fd, x: fd.define_scalar(dtype=DataType.Float),
        "alias_input is a tensor among the inputs, found <S1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_pair_that_does_not_fit_is_refused(case: str) -> None:
    output, target, message = REFUSED[case]
    fd = FusionDefinition()
    x = fd.define_tensor(shape=[-1, 3])
    made, aliased = output(fd, x), target(fd, x)
    with pytest.raises(NfuserError, match=re.escape(message)) as caught:
        fd.add_output(made, aliased)
    assert "test_alias.py" in str(caught.value)


def test_an_input_takes_one_output() -> None:
    fd = FusionDefinition()
    x = fd.define_tensor(shape=[-1])
    fd.add_output(fd.ops.exp(x), x)
    with pytest.raises(NfuserError, match="T0 takes another output already"):
        fd.add_output(fd.ops.exp(x), x)


def _grown() -> FusionDefinition:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1])
        y = fd.define_tensor(shape=[-1])
        fd.add_output(fd.ops.add(x, y), x)
    return fd


def test_an_array_that_cannot_take_the_output_is_refused_before_anything_runs() -> None:
    ones = np.ones(3, np.float32)
    frozen = ones.copy()
    frozen.flags.writeable = False
    for array, other, kind, text in (
        (
            ones[:1],
            ones,
            ValueError,
            r"expected an array of shape \(3,\), found \(1,\)",
        ),
        (frozen, ones, ValueError, "the array is read-only"),
    ):
        with pytest.raises(NfuserError, match=text) as caught:
            _grown().execute([array, other])
        assert isinstance(caught.value, kind)
        assert "input 0 (T0), which takes output 0" in str(caught.value)


def test_a_scalar_of_numpy_is_not_written() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[])
        fd.add_output(fd.ops.exp(x), x)
    with pytest.raises(NfuserError, match="a NumPy scalar is never written"):
        fd.execute([np.float32(1)])
    array = np.zeros((), np.float32)
    fd.execute([array])
    assert array == 1
