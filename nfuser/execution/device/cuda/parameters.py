# SPDX-License-Identifier: Apache-2.0
"""How a kernel's parameter lies in memory, by the name of its type."""

from __future__ import annotations

import struct

# A value lies in the low bytes of an 8-byte slot of its own.
FORMATS = {
    "pointer": "Q",
    "bool": "?7x",
    "i8": "b7x",
    "i16": "h6x",
    "i32": "i4x",
    "i64": "q",
    "u8": "B7x",
    "u16": "H6x",
    "u32": "I4x",
    "u64": "Q",
    "f32": "f4x",
    "f64": "d",
}


def word_of(kind: str, value: float) -> int:
    """Return a value of ``kind`` as the 8 bytes that it is passed in."""
    return struct.unpack("<q", struct.pack(f"<{FORMATS[kind]}", value))[0]
