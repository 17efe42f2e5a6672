# SPDX-License-Identifier: Apache-2.0
"""Draws of NumPy's generators as statements of a program.

The generator is passed to each run among its numbers, so one program serves all.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ops.folds.draws import DrawCall, OperandAt
from nfuser.errors import host_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.execution.host.call.program import CallLibrary, LibraryFunction


def draw_of(function: LibraryFunction | None) -> DrawCall | None:
    """Return how a generator is called, if ``function`` draws."""
    found = None if function is None else dict(function.options).get("draw")
    return found if isinstance(found, DrawCall) else None


def draw_call(stmt: CallLibrary, draw: DrawCall) -> Callable[..., tuple[Any, ...]]:
    """Return what draws from the generator that it is given first."""
    method = attrgetter(stmt.name)(np)
    compute = _shuffled if method is np.random.Generator.shuffle else method
    assert stmt.function is not None
    shape, name = stmt.function.shape, stmt.name.rpartition(".")[2]
    sized: dict[str, Any] = {}
    if draw.sizes is not None:
        first, count = draw.sizes
        sized["size"] = shape[first : first + count]

    def call(generator: Any, *given: Any) -> tuple[Any, ...]:
        try:
            found = compute(generator, **_arguments(draw.arguments, given), **sized)
        except Exception as error:
            raise host_error(f"{name}: {error}{stmt.note}", error) from error
        return found, True

    return call


def _arguments(
    arguments: Sequence[tuple[str, object]], given: Sequence[Any]
) -> Mapping[str, Any]:
    """Return the arguments, what is one number as a scalar, as NumPy tells apart."""
    return {
        name: given[item.place][()] if isinstance(item, OperandAt) else item
        for name, item in arguments
    }


def _shuffled(generator: Any, x: Any, axis: int = 0) -> Any:
    found = np.array(x)
    generator.shuffle(found, axis=axis)
    return found
