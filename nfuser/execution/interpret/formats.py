# SPDX-License-Identifier: Apache-2.0
"""How elements are stored, and the values they stand for."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

Vector: TypeAlias = np.ndarray[Any, Any]

FORMATS: dict[str, tuple[str | None, str]] = {  # suffix: storage dtype, value dtype
    "": (None, ""),
    "_bool": ("uint8", "bool"),
    "_f16": ("uint16", "float32"),
    "_bf16": ("uint16", "float32"),
}


def widen(suffix: str, stored: Vector) -> Vector:
    """Return the values that ``stored`` elements stand for."""
    if suffix == "_bool":
        return np.not_equal(stored, 0)
    if suffix == "_f16":
        return stored.view(np.float16).astype(np.float32)
    if suffix == "_bf16":
        return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return stored


def narrow(suffix: str, values: Any) -> Any:
    """Return ``values`` as they are stored, 16-bit floats rounded to nearest even."""
    if suffix == "_bool":
        return np.asarray(values).astype(np.uint8)
    if suffix == "_f16":
        return np.asarray(values).astype(np.float16).view(np.uint16)
    if suffix == "_bf16":
        return np.asarray(values).astype(ml_dtypes.bfloat16).view(np.uint16)
    return values


def words_of(values: Vector) -> list[Vector]:
    """Return the bits of ``values`` as words of 32 bits, the low ones first."""
    size = values.dtype.itemsize
    bits = np.ascontiguousarray(values).view(f"u{size}").astype(np.uint64)
    low = bits & np.uint64(0xFFFFFFFF)
    return [low] if size < 8 else [low, bits >> np.uint64(32)]


def unpacked(boxes: list[Vector], kind: str) -> Vector:
    """Return the values of which ``boxes`` hold the words."""
    size = np.dtype(kind).itemsize
    bits = boxes[0] & np.uint64(0xFFFFFFFF)
    if size == 8:
        bits = bits | boxes[1] << np.uint64(32)
    return bits.astype(f"u{size}").view(kind)
