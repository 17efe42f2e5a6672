# SPDX-License-Identifier: Apache-2.0
"""Parts of captured arrays, and what nfuser.numpy makes of captured ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser import numpy as nnp

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("ignore:a part that plain NumPy:RuntimeWarning")
X = np.ones((3, 4))
RNG = np.random.default_rng(0)
TABLE = RNG.random((50, 4))
HALVES: Any = RNG.random((50, 4)).astype(ml_dtypes.bfloat16)

PARTS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x + TABLE[: x.shape[0]],
    "last rows": lambda x: x + TABLE[-x.shape[0] :],
    "steps": lambda x: x + TABLE[10 : 10 - 2 * x.shape[0] : -2],
    "one row": lambda x: x + TABLE[7],
    "column": lambda x: x + TABLE[: x.shape[0], 1:2],
    "turned": lambda x: x.T + TABLE.T[:, : x.shape[0]],
    "reshaped": lambda x: x + TABLE.reshape(10, 5, 4)[2, 1:4],
    "stretched": lambda x: x + np.broadcast_to(TABLE[4:5], x.shape),
    "two of one": lambda x: x * TABLE[:3] + TABLE[3:6],
    "halves": lambda x: x + HALVES[1 : x.shape[0] + 1],
    "open": lambda x: x + nnp.asarray(TABLE)[: x.shape[0]],
    "copied": lambda x: x + nnp.array(TABLE)[: x.shape[0]],
    "converted": lambda x: x + nnp.asarray(TABLE, np.float32)[: x.shape[0]],
    "computed": lambda x: x + (nnp.asarray(TABLE) * 255)[: x.shape[0]],
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_read_again_at_each_call(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = PARTS[name]
    fused = nfuser.fuse(function)

    def check(x: Any) -> None:
        for _ in range(3):
            np.testing.assert_allclose(fused(x), function(x), rtol=1e-6)

    check(X)
    for table in ("TABLE", "HALVES"):
        monkeypatch.setitem(globals(), table, globals()[table] * 2)
    check(X)
    TABLE[:] += 1
    HALVES[:] += 1
    check(X)
    monkeypatch.setitem(globals(), "TABLE", np.asfortranarray(TABLE))
    check(X)
    monkeypatch.setitem(globals(), "TABLE", RNG.random((60, 8))[:50, ::2])
    if name in ("open", "copied", "converted", "computed", "halves"):
        check(X)


def test_parts_of_other_sizes_are_traced_again_with_a_warning() -> None:
    def part(x: Any) -> Any:
        return x + TABLE[: x.shape[0]]

    fused = nfuser.fuse(part)
    with pytest.warns(RuntimeWarning, match=r"parts of asarray\(TABLE\)"):
        np.testing.assert_array_equal(fused(X), part(X))
    np.testing.assert_array_equal(fused(X[:2]), part(X[:2]))
    assert fused.cache_info().traces == 2


def test_a_captured_array_made_one_of_the_trace_keeps_sizes_open() -> None:
    @nfuser.fuse
    def fused(x: Any) -> Any:
        table = nnp.asarray(TABLE)
        return x + table[: x.shape[0]]

    for count in (3, 2, 3):
        np.testing.assert_array_equal(fused(X[:count]), X[:count] + TABLE[:count])
    TABLE[:] += 1
    np.testing.assert_array_equal(fused(X), X + TABLE[:3])
    assert fused.cache_info().traces == 1


def test_parts_of_parts_of_one_memory() -> None:
    flat = np.arange(24.0)
    held = SimpleNamespace(first=flat[:12].reshape(3, 4), second=flat[12:])

    def function(x: Any) -> Any:
        return x * held.first[1] + held.second[2:6]

    fused = nfuser.fuse(function)
    np.testing.assert_array_equal(fused(X), function(X))
    held.second = flat[11:23]
    # second[2:6] lies at 13..16 now, and first[1] at 4..7: still told apart.
    np.testing.assert_array_equal(fused(X), function(X))
    held.first = held.first + 1
    np.testing.assert_array_equal(fused(X), function(X))
