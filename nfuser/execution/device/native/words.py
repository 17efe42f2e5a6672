# SPDX-License-Identifier: Apache-2.0
"""The words of native source, with their meaning in Python.

Native source is Python about addresses.
"""

from __future__ import annotations

import ctypes
import struct

_signed = struct.Struct("<q")
_double = struct.Struct("<d")
_single = struct.Struct("<fi")


def word(address: int) -> int:
    """Read 64 bits."""
    return ctypes.c_int64.from_address(address).value


def word32(address: int) -> int:
    """Read 32 bits and extend their sign."""
    return ctypes.c_int32.from_address(address).value


def store(address: int, value: int) -> None:
    """Write 64 bits."""
    ctypes.c_int64.from_address(address).value = value


def add_atomically(address: int, value: int) -> int:
    """Add to 64 bits in one step, in order with all threads; return what was there."""
    raise NotImplementedError(address, value)


def look(address: int) -> int:
    """Read 64 bits that another thread may change, and what it wrote before."""
    raise NotImplementedError(address)


def single(bits: int) -> int:
    """Return the bits of a double rounded to 32 bits.

    >>> hex(single(0x3FF8000000000000))
    '0x3fc00000'
    """
    (value,) = _double.unpack(_signed.pack(bits))
    (rounded,) = _signed.unpack(_single.pack(ctypes.c_float(value).value, 0))
    return rounded


def double(number: int) -> int:
    """Return the bits of the double nearest to a number.

    >>> hex(double(3))
    '0x4008000000000000'
    """
    (bits,) = _signed.unpack(_double.pack(float(number)))
    return bits


def quotient(left: int, right: int) -> int:
    """Divide and drop the fraction.

    >>> quotient(-7, 2)
    -3
    """
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def high_product(left: int, right: int) -> int:
    """Return what a product has above its low 64 bits.

    >>> high_product(1 << 40, 1 << 30), high_product(-1, 5)
    (64, -1)
    """
    return (left * right) >> 64


def add_floats(left: int, right: int) -> int:
    """Add doubles, given and returned as bits."""
    raise NotImplementedError(left, right)


def subtract_floats(left: int, right: int) -> int:
    """Subtract doubles, given and returned as bits."""
    raise NotImplementedError(left, right)


def multiply_floats(left: int, right: int) -> int:
    """Multiply doubles, given and returned as bits."""
    raise NotImplementedError(left, right)


def divide_floats(left: int, right: int) -> int:
    """Divide doubles, given and returned as bits."""
    raise NotImplementedError(left, right)


def space(count: int) -> int:
    """Return the address of memory of ``count`` words in the frame."""
    raise NotImplementedError(count)


def table() -> int:
    """Return the address of what all calls share."""
    raise NotImplementedError
