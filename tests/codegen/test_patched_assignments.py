# SPDX-License-Identifier: Apache-2.0
"""Names that branches assign cost Numba a look at their own blocks."""

# Numba carries few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba.core import ssa

from nfuser.codegen.numba.compile_cpu import compile_cpu

if TYPE_CHECKING:
    import pytest

_SIGNATURE = "void(int64, int64, CPointer(float64))"


def _source(names: int) -> str:
    """Return a kernel with so many names, each of a value and what a branch makes."""
    lines = [
        "from nfuser.codegen.primitives.cpu import f64, load, store",
        "def kernel(start, stop, T0):",
        "    for i in range(start, stop):",
    ]
    for k in range(names):
        lines += [
            f"        t{k} = f64({k})",
            f"        if {k} < i:",
            f"            t{k} = load(T0, i - {k})",
            f"        store(T0, i, t{k})",
        ]
    return "\n".join(lines) + "\n"


def test_more_names_are_as_many_more_blocks_to_rewrite(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at = [0]
    run = ssa._run_ssa_block_pass

    def counted(*given: Any) -> Any:
        looked_at[0] += 1
        return run(*given)

    monkeypatch.setattr(ssa, "_run_ssa_block_pass", counted)

    def count(names: int) -> int:
        looked_at[0] = 0
        compile_cpu(_source(names), "kernel", _SIGNATURE)
        return looked_at[0]

    assert count(24) < 5 * count(6)
