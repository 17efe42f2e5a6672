# SPDX-License-Identifier: Apache-2.0
"""Nodes are made as dataclasses are."""

from __future__ import annotations

from dataclasses import field, replace

from nfuser.compiler.ir.base import node


@node
class _Made:
    first: int
    second: int = 2
    third: list[int] = field(default_factory=list[int])


def test_each_node_makes_its_own_default() -> None:
    one, two = _Made(1), _Made(1)
    assert one.third == []
    assert one.third is not two.third
    assert replace(one, third=[3]).third == [3]
    assert (_Made(1, third=[4]).second, _Made(1, third=[4]).third) == (2, [4])
