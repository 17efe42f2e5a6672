# SPDX-License-Identifier: Apache-2.0
"""Where a mask holds: ``nonzero`` and its like, as indices and as numbers."""

# What a traced function is given has no static type.
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable


def assigned(x: Any, table: Any) -> Any:
    rows, columns = np.where(x > 0)
    x[rows, columns] -= 4
    x[np.nonzero(x < -5)] = table[0]
    x[np.where(x[:, 0] < -1)[0]] = table[: x.shape[1]]
    x[:, (x[1] > 0).nonzero()[0]] *= 2
    x[np.where(x[:, 1] < 0)[0], 1] = 9
    holes = np.where(x == 9)
    x[holes] = np.take(table, holes[1]) + table[holes[1]]
    return x


def counted(x: Any, table: Any) -> Any:
    rows, columns = np.nonzero(x > 0)
    points, flat = np.argwhere(x > 0), np.flatnonzero(x < 0)
    first = np.where(x[:, 0] > 0)[0]
    n, width = x[first].shape
    size: Any = rows.size
    return (
        *(len(rows), columns.size, rows.sum(), flat.shape[0], n / (width + 1), n),
        *(points.mean(axis=0), points[:, 1].sum(), ((rows - rows.mean()) ** 2).sum()),
        *(x[rows, columns].sum(), x[first].sum(axis=0)),
        *(x[:, np.where(x[0] > 0)[0]].sum(), x.mean()),
        *(table[columns].sum(), table[np.abs(columns - 1)].std(), x[first, 1].sum()),
        1 if len(first) > 2 else 0,
        7 if isinstance(size, int) else 8,
    )


def elsewhere(x: Any, table: Any) -> Any:
    few = np.where(x[:2, 0] > -9)[0]
    return x[:, few].sum(), x[few, 1].sum(), table[few].sum(), x[:2][few].sum()


def parts(x: Any, table: Any) -> Any:
    chosen, across = x[x[:, 0] > 0], x[:, x[0] > 0]
    x[:, x[0] > 0] = across[::-1] * 2
    return (
        *(chosen[:, 1].sum(), chosen[:, 1:].sum(0), chosen[..., -1].mean(), x),
        *(chosen.sum(axis=1).sum(), len(chosen)),
        *((chosen[:, 0] * chosen[:, 2]).sum(), chosen[:, None, 1].sum()),
        *(across[0].sum(), across.max(axis=0).sum(), table.sum()),
    )


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("function", [assigned, counted, elsewhere, parts])
def test_places_of_a_mask_are_numpys(
    function: Callable[..., Any], backend: str
) -> None:
    fused = nfuser.fuse(function, backend=backend)
    table = np.arange(7.0) - 3
    for seed, shape in ((0, (5, 4)), (1, (5, 4)), (2, (3, 6)), (3, (2, 3))):
        x = np.random.default_rng(seed).normal(size=shape)
        mine, theirs = x.copy(), x.copy()
        found, wanted = fused(mine, table), function(theirs, table)
        np.testing.assert_allclose(mine, theirs)
        pairs = zip(found, wanted, strict=True)
        for a, b in pairs if isinstance(found, tuple) else [(found, wanted)]:
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(a, b)


def changed(x: Any, table: Any) -> Any:
    rows = np.where(x[:, 0] > 0)[0]
    rows -= 1
    chosen = x[x[:, 1] > 0]
    view = chosen[:, 0]
    view += 1
    chosen *= 2
    return table[rows].sum(), rows.sum(), view.sum(), chosen.sum(axis=0), x


def aside(x: Any, table: Any) -> Any:
    deep = x[:, :, None] * table
    rows, few = np.where(x[:, 0] > 0)[0], np.where(x[:2, 0] > -9)[0]
    return (
        *(deep[rows, :, 0].sum(axis=0), deep[:, few, 0].sum(axis=1)),
        *(deep[0, :, rows].sum(axis=0), deep[few, ..., 1].sum(axis=0)),
    )


@pytest.mark.parametrize("function", [changed, aside])
def test_views_and_numbers_beside_places_are_numpys(
    function: Callable[..., Any],
) -> None:
    fused, table = nfuser.fuse(function), np.arange(5.0) - 3
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(5, 5))
        found, wanted = fused(x.copy(), table), function(x.copy(), table)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b)


def test_a_list_is_not_repeated_as_often_as_a_mask_says() -> None:
    repeats: list[Callable[[Any], Any]] = [
        lambda x: [0] * len(x[x > 0]),
        lambda x: (1, 2) * x[x > 0].size,
        lambda x: x[x > 0].size * [1],
    ]
    for function in repeats:
        with pytest.raises(UnsupportedError, match="repeated"):
            nfuser.fuse(function)(np.ones(4))


def test_nothing_may_hold() -> None:
    def fallen(grid: Any) -> Any:
        turns = 0
        while True:
            y, x = np.where(grid > 3)
            if len(y) == 0:
                break
            grid[y, x] -= 4
            turns += 1
        return grid, turns

    fused = nfuser.fuse(fallen)
    for size in (0, 1, 6):
        grid = np.arange(size * size).reshape(size, size)
        found, wanted = fused(grid.copy()), fallen(grid.copy())
        np.testing.assert_array_equal(found[0], wanted[0])
        assert found[1] == wanted[1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.nonzero(x > 0)[0],
        lambda x: x[x[:, 0] > 0][0],
        lambda x: x[x[:, 0] > 0][1:],
        lambda x: x[..., None][x[:, 0] > 0][:, [0, 1], 0],
        lambda x: x.__setitem__(np.nonzero(x > 0)[::-1], 1),
        lambda x: x.__setitem__((slice(None), np.nonzero(x[:2, 0] > 0)[0]), 1),
        lambda x: x[np.nonzero(x > 0)[0], np.nonzero(x > 1)[1]].sum(),
        lambda x: x[:, :, None, None][:, np.nonzero(x[0, :2] > 0)[0], :, 0].sum(),
        lambda x: x[np.nonzero(x > 0)[0], [0]].sum(),
        lambda x: x[x[:, 0] > 0].sum(axis=1, out=x[0]),
    ],
)
def test_what_is_as_long_as_a_mask_says_is_refused(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(UnsupportedError, match="mask"):
        nfuser.fuse(function)(np.ones((4, 4)))


def test_axes_are_looked_at() -> None:
    with pytest.raises(np.exceptions.AxisError):
        nfuser.fuse(lambda x: x[x[:, 0] > 0].sum(axis=2))(np.ones((3, 3)))
