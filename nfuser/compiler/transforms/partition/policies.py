# SPDX-License-Identifier: Apache-2.0
"""What a user says is kept, or computed again, of a part of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import LIBRARY_CALLS, Argument, results

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView


@value
class Policy:
    """What of a part of a function may be kept for the way back.

    ``others`` says what holds of a value with none of the ``names``; a value with one
    of them is the opposite. ``products`` are kept whatever else is said.
    """

    name: str
    others: bool
    names: frozenset[str] = frozenset()
    products: bool = False

    def keeps(self, expr: Expr, name: str | None) -> bool:
        """Tell whether what ``expr`` gives, under ``name``, is to be kept."""
        if self.products and isinstance(expr, LIBRARY_CALLS):
            return True
        return self.others is not (name in self.names)

    def __repr__(self) -> str:
        listed = ", ".join(map(repr, sorted(self.names)))
        return f"{self.name}({listed})" if self.names else self.name


def told(
    policy: Policy, exprs: Sequence[Expr], names: Mapping[TensorView, str]
) -> dict[TensorView, bool]:
    """Return of all that ``exprs`` compute whether it is to be kept."""
    return {
        tensor: policy.keeps(expr, names.get(tensor))
        for expr in exprs
        if not isinstance(expr, Argument)
        for tensor in results(expr)
    }
