# SPDX-License-Identifier: Apache-2.0
"""Integer arguments that decide sizes: one record serves many of them, and its own."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.execution.device.native.shared import is_as_expected

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(not is_as_expected(), reason="no native calls here")

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "the first": lambda x, k: x[:k] * 2,
    "the rest": lambda x, k: x[k:] + 1,
    "every other": lambda x, k: x[::2][:k] * 3,
    "without their mean": lambda x, k: x[:k] - x[:k].mean(),
    "sum": lambda x, k: (x[:k] * k).sum(),
    "rows": lambda x, k: x[: 6 * k].reshape(k, 6).sum(axis=1),
    "padded": lambda x, k: np.pad(x, (k, 2 * k)) * 2,
    "spread": lambda x, k: np.broadcast_to(x[:1], (k,)) + 1,
    "joined": lambda x, k: np.concatenate([x[:k], x[k:] * 2]),
    "a square": lambda x, k: x[:k, None] * x[None, :k],
}


@pytest.mark.filterwarnings("ignore:.*was traced", "ignore:Mean of empty")
@pytest.mark.parametrize("kind", [int, np.int64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_in_any_order_give_what_numpy_gives(name: str, kind: Any) -> None:
    function = FUNCTIONS[name]
    fused = nfuser.fuse(function)
    rng = np.random.default_rng(0)
    base = rng.standard_normal(300)
    for k in [*range(5, 15), 0, 1, 299, 300, 301, *rng.integers(-9, 320, 30)]:
        for n in (300, int(rng.integers(1, 300))):
            x, number = base[:n], kind(k)
            try:
                with np.errstate(all="ignore"):
                    expected = function(x, number)
            except ValueError:
                with pytest.raises(ValueError):  # noqa: PT011 (as NumPy's)
                    fused(x, number)
                continue
            np.testing.assert_allclose(fused(x, number), expected, 1e-12, 1e-12)


def test_a_new_length_is_served_by_native_code() -> None:
    fused = nfuser.fuse(lambda x, k: x[:k] * 2)
    x = np.ones(4000)
    for k in range(500, 510):
        fused(x, k)
    before = fused.native_calls
    for k in range(600, 700):
        np.testing.assert_array_equal(fused(x, k), x[:k] * 2)
    assert fused.native_calls - before >= 95
    assert fused.cache_info().traces == 1


def test_a_size_is_a_float_where_the_function_divides_by_it() -> None:
    fused = nfuser.fuse(lambda x, k: x[:k].sum() / k)
    x = np.arange(64.0)
    for k in map(np.int64, range(2, 40)):
        assert fused(x, k) == pytest.approx(x[:k].mean())
