# SPDX-License-Identifier: Apache-2.0
"""Numba walks over the whole function for each name that is assigned twice."""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def rewritten_where_named(ssa: Any) -> Generator[None]:
    """Let Numba's ``ssa`` rewrite blocks that have the name; under its lock only.

    The others come out as they went in, statement by statement.
    """
    find, rewrite, here = ssa._find_defs_violators, ssa._run_block_rewrite, get_ident()
    named: defaultdict[str, set[int]] = defaultdict(set)

    def find_violators(blocks: Any, cfg: Any) -> Any:
        if get_ident() == here:
            named.clear()
            for label, block in blocks.items():
                for statement in block.body:
                    for var in statement.list_vars():
                        named[var.name].add(label)
        return find(blocks, cfg)

    def run_block_rewrite(blocks: Any, states: Any, handler: Any) -> Any:
        if get_ident() != here:
            return rewrite(blocks, states, handler)
        labels = named[states["varname"]]
        there = {label: blocks[label] for label in blocks if label in labels}
        return {**blocks, **rewrite(there, states, handler)}

    ssa._find_defs_violators, ssa._run_block_rewrite = find_violators, run_block_rewrite
    try:
        yield
    finally:
        ssa._find_defs_violators, ssa._run_block_rewrite = find, rewrite
