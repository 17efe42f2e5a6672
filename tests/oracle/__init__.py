# SPDX-License-Identifier: Apache-2.0
"""What fused functions should give: a reference with a bound of its own rounding.

``evaluate(f, *arrays)`` runs the plain function ``f`` on values that carry, beside a
reference in float64 (longdouble where the result is float64), a bound of how far a
right kernel may be from it; ``judge`` compares what a kernel gave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tests.oracle import meanings
from tests.oracle.judge import Verdict, judge
from tests.oracle.stand_in import Namespace, with_namespace
from tests.oracle.value import TABLE, Value, apply, exact, from_array

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Namespace", "Value", "Verdict", "evaluate", "from_array", "judge", "listed"]

assert meanings.TABLE is TABLE
NAMESPACE = Namespace(apply)


def evaluate(function: Callable[..., Any], *arguments: Any) -> tuple[Value, ...]:
    """Return what ``function`` should give for arrays and Python numbers.

    Its global ``xp`` stands for the oracle while it runs.
    """
    values = [from_array(a) if isinstance(a, _ARRAYS) else a for a in arguments]
    given: Any = with_namespace(function, NAMESPACE)(*values)
    return tuple(x if isinstance(x, Value) else _number(x) for x in listed(given))


_ARRAYS = (np.ndarray, np.generic)


def listed(result: Any) -> tuple[Any, ...]:
    """Return the outputs of a function that gives one or a tuple."""
    return cast("tuple[Any, ...]", result) if isinstance(result, tuple) else (result,)


def _number(x: Any) -> Value:
    return from_array(x) if isinstance(x, _ARRAYS) else exact(np.asarray(x).dtype, x)
