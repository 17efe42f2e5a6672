# SPDX-License-Identifier: Apache-2.0
"""What is told to run element by element is what a scheduler takes."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.schedule.registry import find_scheduler
from nfuser.compiler.segment.computed_again import is_free
from nfuser.compiler.segment.elementwise import is_elementwise
from tests.hand_built import settle, traced

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.linspace(-2, 3, 36, dtype=np.float32).reshape(6, 6)


def _neighbours_of_a_value(x: Any) -> Any:
    y = x * 2
    return y[1:] + y[:-1]


CASES: dict[str, tuple[Callable[..., Any], bool]] = {
    "several results": (lambda x: (x * 2, x + 1, np.exp(x) * x), True),
    "neighbours": (lambda x: (x[1:] - x[:-1], x[:-1] * 2), True),
    "neighbours of a value": (_neighbours_of_a_value, False),
    "transposed": (lambda x: (x + x.T, x * 2), False),
    "two shapes": (lambda x: (x[1:] * 2, x[:, 1:] * 2), False),
    "a sum": (lambda x: x.sum(axis=1), False),
}


@pytest.mark.parametrize("name", CASES)
def test_schedulers_take_what_is_told(name: str) -> None:
    function, expected = CASES[name]
    fusion = rewrite(settle(traced(function, X), X.shape)).fusion
    own = [e for e in fusion.exprs if not is_free(e)]
    assert is_elementwise(own) == expected
    if expected:
        assert not isinstance(find_scheduler(fusion), tuple)
