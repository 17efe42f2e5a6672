# SPDX-License-Identifier: Apache-2.0
"""Fusions are frozen; copies of them, and of what runs them, work."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.errors import ArgumentError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def _again(item: Any) -> Any:
    return pickle.loads(pickle.dumps(item))


WAYS = (copy.copy, copy.deepcopy, _again)


def _definition() -> nfuser.FusionDefinition:
    with nfuser.FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1])
        fd.add_output(fd.ops.sum(fd.ops.mul(x, 2.0), 1))
    return fd


def test_nobody_changes_a_fusion_that_others_share() -> None:
    fusion: Any = _definition().fusion
    for name in ("name", "exprs", "outputs", "another"):
        with pytest.raises(FrozenInstanceError):
            setattr(fusion, name, ())
    with pytest.raises(FrozenInstanceError):
        del fusion.outputs
    assert len(_definition().execute([X])) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_fusion_that_was_copied_runs(way: Any) -> None:
    fusion = way(_definition().fusion)
    (found,) = nfuser.FusionExecutorCache(fusion).run([X])
    np.testing.assert_array_equal(found, (X * 2).sum(1))


@pytest.mark.parametrize("way", WAYS)
def test_a_definition_and_a_cache_that_were_copied_run(way: Any) -> None:
    expected = (X * 2).sum(1)
    fd = way(_definition())
    np.testing.assert_array_equal(fd.execute([X])[0], expected)
    cache = way(nfuser.FusionExecutorCache(fd.fusion, resize="static"))
    np.testing.assert_array_equal(cache.run([X])[0], expected)


def test_an_open_definition_is_not_copied() -> None:
    with nfuser.FusionDefinition() as fd:
        for way in WAYS:
            with pytest.raises(ArgumentError, match="leave the with statement"):
                way(fd)


@pytest.mark.parametrize("way", WAYS)
def test_equal_scalars_are_one_object_after_a_copy(way: Any) -> None:
    n = scalar_symbols.size(0, 0)
    for x in (n, n * 4 + 1, n // 3 % 5, scalar_symbols.loop_index(1, n), sc.const(7)):
        assert way(x) is x
