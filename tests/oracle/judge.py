# SPDX-License-Identifier: Apache-2.0
"""Whether what a kernel gave is what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.oracle.number_types import Array, is_inexact, precision, round_to

if TYPE_CHECKING:
    from tests.oracle.value import Value


@dataclass(frozen=True)
class Verdict:
    """What differed, if anything, and how many elements were not judged."""

    problem: str | None
    skipped: int
    elements: int


def judge(actual: Any, expected: Value) -> Verdict:
    """Compare an array that a kernel gave with what is known of it."""
    actual = np.asarray(actual)
    size = expected.size
    skipped = int(np.count_nonzero(expected.doubt))
    if actual.dtype != expected.dtype:
        problem = f"dtype {actual.dtype}, expected {expected.dtype}"
        return Verdict(problem, skipped, size)
    if actual.shape != expected.shape:
        problem = f"shape {actual.shape}, expected {expected.shape}"
        return Verdict(problem, skipped, size)
    with np.errstate(all="ignore"):
        wrong = _wrong(actual, expected) & ~expected.doubt
    problem = _describe(actual, expected, wrong) if np.any(wrong) else None
    return Verdict(problem, skipped, size)


def _wrong(actual: Array, expected: Value) -> Array:
    if not is_inexact(expected.dtype):
        return np.asarray(actual != expected.ref)
    if expected.dtype.kind != "c":
        return _outside(actual, expected.ref, expected)
    parts = [
        _outside(getattr(actual, name), getattr(expected.ref, name), expected)
        for name in ("real", "imag")
    ]
    return parts[0] | parts[1]


def _outside(actual: Array, ref: Array, expected: Value) -> Array:
    dtype = actual.dtype
    reference = ref.dtype
    given = actual.astype(reference)
    # A little more than the bound: the bound itself was computed with rounding.
    err = expected.err * 1.01
    low = round_to(dtype, np.where(err > 0, ref - err, ref))
    high = round_to(dtype, np.where(err > 0, ref + err, ref))
    outside = ~((given >= low) & (given <= high))
    outside = np.where(np.isnan(ref), ~np.isnan(given), outside)
    signed = (ref == 0) & (given == 0) & (expected.err == 0)
    if not expected.loose:
        outside = outside | (signed & (np.signbit(ref) != np.signbit(given)))
    return np.asarray(outside)


def _describe(actual: Array, expected: Value, wrong: Array) -> str:
    where = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
    count = int(np.count_nonzero(wrong))
    found, ref, err = actual[where], expected.ref[where], expected.err[where]
    text = f"{count} of {expected.size} elements differ; at {where} it gave {found!r}, "
    text += f"expected {ref!r}"
    if is_inexact(expected.dtype) and err > 0:
        unit = precision(expected.dtype).unit
        off = abs(np.asarray(found).astype(ref.dtype) - ref)
        text += f" within {err:.3g}; it is off by {float(off):.3g} (unit {unit:.3g})"
    return text
