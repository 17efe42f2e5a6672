# SPDX-License-Identifier: Apache-2.0
"""Random words: those of stream 1, by the key, the draw call and the place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import nfuser.compiler.ops.shapes.creation as creation
import nfuser.compiler.ops.shapes.moves as moves
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars.functions import product

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, Operand

Bits = Literal[16, 32, 64]
_TYPES = {16: DType.U16, 32: DType.U32, 64: DType.U64}
_Words = np.ndarray[Any, np.dtype[np.uint64]]
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_SLOT_AT = 56  # the bits of a place from here on number the slot


def random_words(
    b: Builder,
    shape: Sequence[Scalar | int],
    key: Operand,
    call: Operand,
    bits: Bits,
    slot: int = 0,
) -> TensorView:
    """Return a word for each element of ``shape``, as an integer of as many bits."""
    place = _places(b, shape)
    if slot:
        place = b.point("bit_or", place, _word(b, slot << _SLOT_AT))
    taken = [b.convert(x, DType.U64) for x in (key, call)]
    word = b.point(f"philox{bits}", place, *taken)
    return b.cast(word, _TYPES[bits])


def _places(b: Builder, shape: Sequence[Scalar | int]) -> TensorView:
    """Return the index of each element of ``shape``, counted in C order."""
    index = b.cast(creation.arange(b, product(shape)), DType.U64)
    return index if len(shape) == 1 else moves.reshape(b, index, shape)


def _word(b: Builder, number: int) -> TensorView:
    return b.convert(np.uint64(number), DType.U64)


def philox(bits: Bits) -> Callable[[Any, Any, Any], Any]:
    """Return what ``philox16``, ``philox32`` or ``philox64`` means, in NumPy's words.

    One that is smaller than 32 bits is a half of one: the lower half comes first.
    """
    if bits == 16:
        whole = philox(32)

        def half(place: Any, key: Any, call: Any) -> Any:
            place = np.asarray(place, np.uint64)
            slot = place >> np.uint64(_SLOT_AT) << np.uint64(_SLOT_AT)
            found = whole(slot | (place - slot) >> np.uint64(1), key, call)
            shift = (place & np.uint64(1)) << np.uint64(4)
            return found >> shift & np.uint64(0xFFFF)

        return half

    def word(place: Any, key: Any, call: Any) -> Any:
        place, key, call = (np.asarray(x, np.uint64) for x in (place, key, call))
        index = place & np.uint64((1 << _SLOT_AT) - 1)
        block = (place - index) | index >> np.uint64(2 if bits == 32 else 1)
        counter = block & _LOW, block >> _HALF, call & _LOW, call >> _HALF
        found = _rounds(*counter, key & _LOW, key >> _HALF)
        is_second = (index & np.uint64(1)) != 0
        if bits == 64:
            low, high = (np.where(is_second, found[k + 2], found[k]) for k in (0, 1))
            return low | high << _HALF
        is_upper = (index & np.uint64(2)) != 0
        first, second = (np.where(is_upper, found[k + 2], found[k]) for k in (0, 1))
        return np.where(is_second, second, first)

    return word


def _rounds(
    c0: _Words, c1: _Words, c2: _Words, c3: _Words, k0: _Words, k1: _Words
) -> tuple[_Words, _Words, _Words, _Words]:
    for _ in range(10):
        left, right = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1 = (right >> _HALF) ^ c1 ^ k0, right & _LOW
        c2, c3 = (left >> _HALF) ^ c3 ^ k1, left & _LOW
        k0, k1 = (k0 + _KEY_STEPS[0]) & _LOW, (k1 + _KEY_STEPS[1]) & _LOW
    return c0, c1, c2, c3
