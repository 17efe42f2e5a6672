# SPDX-License-Identifier: Apache-2.0
"""Write a random definition, run it, and compare it with NumPy and with its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ir.identity import structure
from nfuser.execution.runtime.caches.shared_cache import forget_all
from tests.definitions import pointwise, reductions, shapes
from tests.definitions.arrays import given_to, strides_of, to_numpy
from tests.definitions.writer import Writer, kind_of, largest

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser import FusionDefinition

STEPS: dict[str, Callable[[Writer], None]] = {
    **pointwise.STEPS,
    **reductions.STEPS,
    **shapes.STEPS,
}
NAMES = tuple(sorted(STEPS))
LENGTH = 7


def written(seed: int, backend: str | None, library: str) -> Writer:
    """Return definition ``seed``; the operations come in turn, so that all come."""
    writer = Writer(seed, backend, library)
    names = [NAMES[(seed * LENGTH + k) % len(NAMES)] for k in range(LENGTH)]
    writer.dice.shuffle(names)
    writer.write([STEPS[name] for name in names])
    return writer


def check(seed: int, backend: str | None, library: str = "numpy") -> None:
    """Raise AssertionError unless definition ``seed`` does what it says."""
    writer = written(seed, backend, library)
    first = _run(writer, writer.fd, library)
    _compare(writer, *first)
    # What an equal definition left would be found, and nothing built again.
    forget_all()
    again = executed(writer.fd)
    assert structure(again.fusion) == structure(writer.fd.fusion)
    assert repr(again) == repr(writer.fd)
    second = _run(writer, again, library)
    for found, other in zip(first, second, strict=True):
        for x, y in zip(found, other, strict=True):
            assert strides_of(x) == strides_of(y)
            np.testing.assert_array_equal(_bits(to_numpy(x)), _bits(to_numpy(y)))
    third = executed(writer.fd)
    _run(writer, third, library)
    assert third.fusion is again.fusion
    counts = third.cache_info()
    assert (counts.traces, counts.compiled, counts.hits) == (0, 0, 1), counts


def executed(fd: FusionDefinition) -> FusionDefinition:
    """Return the definition that the printed form of ``fd`` makes."""
    names: dict[str, Any] = {}
    exec(compile(repr(fd), "<printed>", "exec"), names)  # noqa: S102
    return names["fd"]


def _bits(array: Any) -> Any:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _run(
    writer: Writer, fd: FusionDefinition, library: str
) -> tuple[list[Any], list[Any]]:
    """Return the outputs, and the inputs that were written."""
    given = [given_to(x, library) for x in writer.inputs]
    with np.errstate(all="ignore"):
        outputs = fd.execute(given)
    for slot, x in enumerate(writer.inputs):
        if isinstance(x, np.ndarray) and slot not in writer.aliased:
            np.testing.assert_array_equal(_bits(to_numpy(given[slot])), _bits(x))
    return outputs, [given[slot] for slot in writer.aliased]


def _compare(writer: Writer, outputs: list[Any], written_to: list[Any]) -> None:
    expected = [*writer.expected, *writer.aliased.values()]
    for found, term in zip([*outputs, *written_to], expected, strict=True):
        name, want, got = term.handle.name, term.array, to_numpy(found)
        assert got.shape == want.shape, (name, got.shape, want.shape)
        assert got.dtype == want.dtype, (name, got.dtype, want.dtype)
        if kind_of(want.dtype) in "bi":
            np.testing.assert_array_equal(got, want, name)
            continue
        wide = np.complex128 if kind_of(want.dtype) == "c" else np.float64
        off = largest(
            np.nan_to_num(got.astype(wide)) - np.nan_to_num(want.astype(wide))
        )
        assert off <= term.slack, f"{name} is off by {off}, more than {term.slack}"
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want), name)
