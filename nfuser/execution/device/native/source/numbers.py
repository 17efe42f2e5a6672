# SPDX-License-Identifier: Apache-2.0
"""Native source: what a record works out of the numbers and the sizes of a call.

Each step writes one word, which later steps name by its place. A step that requires
something, and does not find it, ends the work: the record does not serve the call. So
does an integer that 64 bits do not hold.
"""

from __future__ import annotations

from nfuser.execution.device.native.c_functions import pow  # noqa: A004 (this is its name)
from nfuser.execution.device.native.layout import (
    F_DATA,
    F_DIMS,
    F_STRIDES,
    FRAME_BYTES,
    N_ADD,
    N_ADD_FLOATS,
    N_BETWEEN,
    N_CONSTANT,
    N_DIVIDE_FLOATS,
    N_EQUAL,
    N_FINITE,
    N_FIRST,
    N_FLOOR_DIVIDE,
    N_FOURTH,
    N_LESS,
    N_MAXIMUM,
    N_MINIMUM,
    N_MODULO,
    N_MULTIPLY,
    N_MULTIPLY_FLOATS,
    N_NONZERO,
    N_POWER,
    N_SECOND,
    N_SELECT,
    N_SIZE,
    N_STEP_BYTES,
    N_STOP,
    N_STRIDE,
    N_SUBTRACT_FLOATS,
    N_THIRD,
    N_TO_FLOAT,
    N_WORD,
)
from nfuser.execution.device.native.words import (
    add_floats,
    divide_floats,
    double,
    high_product,
    multiply_floats,
    quotient,
    store,
    subtract_floats,
    word,
)


def compute(at: int, frame: int, numbers: int) -> int:
    """Perform the steps that begin at ``at``; tell whether all that they require holds.

    ``numbers`` gets what they work out.
    """
    to = numbers
    while word(at) != N_STOP:
        if word(at) <= N_CONSTANT:
            store(to, _read_number(at, frame))
        else:
            left = word(numbers + word(at + N_FIRST))
            right = word(numbers + word(at + N_SECOND))
            if word(at) < N_ADD_FLOATS:
                if not _step(at, left, right, numbers, to):
                    return 0
            elif not _float_step(at, left, right, to):
                return 0
        at += N_STEP_BYTES
        to += 8
    return 1


def _read_number(at: int, frame: int) -> int:
    """Return a number of the call itself, or one that stands outside of it."""
    code = word(at)
    if code == N_CONSTANT:
        return word(at + N_THIRD)
    if code == N_WORD:
        return word(word(at + N_THIRD))
    row = frame + word(at + N_FIRST) * FRAME_BYTES
    if code == N_SIZE:
        return word(word(row + F_DIMS) + word(at + N_THIRD))
    if code == N_STRIDE:
        return word(word(row + F_STRIDES) + word(at + N_THIRD))
    return word(row + F_DATA)  # N_GIVEN


def _step(at: int, left: int, right: int, numbers: int, to: int) -> int:
    """Work with integers; tell whether that can be done."""
    code = word(at)
    found = 0
    if code == N_MULTIPLY:
        found = left * right
        store(to, found)
        return high_product(left, right) == found >> 63
    if code == N_ADD:
        found = left + right
        store(to, found)
        return ((left ^ found) & (right ^ found)) >= 0
    if code == N_BETWEEN:
        return (left >= word(at + N_THIRD)) & (left <= word(at + N_FOURTH))
    if code in (N_FLOOR_DIVIDE, N_MODULO):
        if right < 0:
            return 0  # scalars divide by natural numbers
        found = _divided(left, right)
        if code == N_MODULO and right:
            found = left - found * right
    else:
        found = _chosen(at, left, right, numbers)
    store(to, found)
    return 1


def _chosen(at: int, left: int, right: int, numbers: int) -> int:
    """Return what a comparison gives, or a choice."""
    code = word(at)
    found = right
    if code == N_LESS:
        found = left < right
    if code == N_EQUAL:
        found = left == right
    if code == N_MINIMUM and left < right:
        found = left
    if code == N_MAXIMUM and left > right:
        found = left
    if code == N_SELECT and left == 0:
        found = word(numbers + word(at + N_THIRD))
    return found


def _divided(left: int, right: int) -> int:
    """Divide by a natural number, down; by 0 is 0, which nobody reads."""
    if right == 0:
        return 0
    found = quotient(left, right)
    if found * right > left:
        found -= 1
    return found


def _float_step(at: int, left: int, right: int, to: int) -> int:
    """Work with the bits of floats; tell whether what is required holds."""
    code = word(at)
    found = 0
    if code == N_MULTIPLY_FLOATS:
        found = multiply_floats(left, right)
    if code == N_DIVIDE_FLOATS:
        found = divide_floats(left, right)
    if code == N_ADD_FLOATS:
        found = add_floats(left, right)
    if code == N_SUBTRACT_FLOATS:
        found = subtract_floats(left, right)
    if code == N_POWER:
        found = pow(left, right)
    if code == N_TO_FLOAT:
        found = double(left)
    if code == N_NONZERO:
        return left + left != 0
    if code == N_FINITE:
        return ((left >> 52) & 2047) != 2047
    store(to, found)
    return 1


FUNCTIONS = (compute, _read_number, _step, _chosen, _divided, _float_step)
