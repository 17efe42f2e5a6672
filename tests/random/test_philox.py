# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from tests.random.philox import philox4x32, words, words_at

ONES = 0xFFFFFFFF

# Random123's known answers for philox4x32 of 10 rounds.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((ONES,) * 4, (ONES,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_known_answers_of_random123(
    counter: tuple[int, ...], key: tuple[int, int], answer: str
) -> None:
    found = philox4x32(np.array(counter, np.uint64), key)
    assert " ".join(f"{word:08x}" for word in found) == answer


def test_an_element_takes_its_word_of_its_block() -> None:
    key, call = 0x299F31D0A4093822, 0x0370734413198A2E
    block = philox4x32(
        np.array([7, 5 << 24, call & ONES, call >> 32], np.uint64),
        (key & ONES, key >> 32),
    )
    small = words(key, call, 5, (4, 8), 32)
    wide = words(key, call, 5, (4, 4), 64)
    assert small.reshape(-1)[28:].tolist() == block.tolist()
    half = words(key, call, 5, (8, 8), 16).reshape(-1)[56:]
    assert half.tolist() == block.astype("<u4").view("<u2").tolist()
    low, high = block[::2].astype(np.uint64), block[1::2].astype(np.uint64)
    assert wide.reshape(-1)[14:].tolist() == (low | high << np.uint64(32)).tolist()


def test_indices_above_two_to_the_32_have_blocks_of_their_own() -> None:
    far = np.array([2**34 + 5, 5], np.uint64)
    block = philox4x32(np.array([1, 1, 3, 0], np.uint64), (9, 0))
    assert words_at(9, 3, 0, far, 32).tolist()[0] == block[1]
    assert np.unique(words_at(9, 3, 0, far, 64)).size == 2
