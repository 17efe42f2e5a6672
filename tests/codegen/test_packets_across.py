# SPDX-License-Identifier: Apache-2.0
"""Packets that come out of the two around them take one access of memory each."""

from __future__ import annotations

import re

import pytest

from tests.codegen.test_cuda_primitives import PACKETS, build, pointer


@pytest.mark.parametrize(("length", "suffix", "storage", "local"), PACKETS)
def test_a_packet_across_others_is_two_accesses(
    length: int, suffix: str, storage: str, local: str
) -> None:
    size = length * (1 if storage.endswith("8") else int(storage[-2:]) // 8)
    if size not in (8, 16):
        return
    lines = [
        f"r0 = cuda.local.array({length}, {local})",
        f"load_packet_across_{length}{suffix}(r0, 0, a, int32(i * {length} + 1))",
        f"store_packet_{length}{suffix}(b, int32(i * {length}), r0, 0)",
    ]
    binary = build(lines, pointer(storage), pointer(storage))
    loads = re.findall(r"ld\.global\.nc\.v(\d)\.[a-z](\d+)", binary.ptx)
    assert [int(n) * int(bits) // 8 for n, bits in loads] == [size, size]
    assert binary.local_bytes == 0
