# SPDX-License-Identifier: Apache-2.0
"""A program as data: its module, its function, its arguments at two sizes."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Program:
    """One program: ``large`` takes NumPy 0.1 to 2 s, ``small`` has 100 elements.

    ``order`` makes of the sizes, and of what the module's ``initialize`` returns, the
    arguments of the function.
    """

    module: str
    function: str
    large: Arguments
    small: Arguments
    arguments: Callable[..., Arguments]

    @property
    def plain_module(self) -> ModuleType:
        """The module as its author wrote it."""
        return import_module(f"asv_bench.programs.plain.{self.module}")

    @property
    def plain(self) -> Any:
        """The function, which nothing is done to."""
        return getattr(self.plain_module, self.function)

    def peer(self, name: str) -> Any:
        """Return the same by hand for ``numba``, ``jax`` or ``torch``, or None."""
        module = import_module(f"asv_bench.programs.peers.{self.module}")
        make = getattr(module, name)
        return make and make()

    def given(self, sizes: Arguments) -> Arguments:
        """Return fresh arguments."""
        return self.arguments(self.plain_module.initialize, *sizes)


def copied(arguments: Arguments) -> Arguments:
    """Return arguments of which a call may write the arrays."""
    return tuple(x.copy() if isinstance(x, np.ndarray) else x for x in arguments)


def listed(found: Any) -> tuple[Any, ...]:
    """Return results as a tuple; a function that writes its arguments has none."""
    if found is None:
        return ()
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


def _cavity(
    initialize: Callable[..., Arguments], n: int, steps: int, inner: int
) -> Arguments:
    u, v, p, dx, dy, dt = initialize(n, n)
    return n, n, steps, inner, u, v, dt, dx, dy, p, 1.0, 0.1


PROGRAMS = (
    Program(
        "jacobi_1d",
        "jacobi_1d",
        (200_000, 800),
        (100, 20),
        lambda make, n, steps: (steps, *make(n)),
    ),
    Program(
        "jacobi_2d",
        "jacobi_2d",
        (700, 100),
        (10, 20),
        lambda make, n, steps: (steps, *make(n)),
    ),
    Program(
        "heat_3d",
        "heat_3d",
        (70, 50),
        (5, 10),
        lambda make, n, steps: (steps, *make(n)),
    ),
    Program(
        "fdtd_2d",
        "fdtd_2d",
        (500, 600, 150),
        (10, 10, 20),
        lambda make, n, m, steps: (steps, *make(steps, n, m)),
    ),
    Program("cavity_flow", "cavity_flow", (201, 25, 50), (10, 5, 10), _cavity),
    Program(
        "adi",
        "adi",
        (300, 20),
        (10, 5),
        lambda make, n, steps: (steps, n, make(n)),
    ),
    Program(
        "vertical_advection",
        "vadv",
        (256, 192, 80),
        (5, 5, 4),
        lambda make, *shape: make(*shape),
    ),
    Program(
        "recursive_filter",
        "smooth_rows",
        (2600, 2600),
        (10, 10),
        lambda make, *shape: (0.25, make(*shape)),
    ),
    Program(
        "mandelbrot",
        "mandelbrot",
        (1100, 50),
        (10, 20),
        lambda make, *sizes: make(*sizes),
    ),
    Program(
        "nbody",
        "nbody",
        (370, 60),
        (10, 5),
        lambda make, n, steps: (*make(n), steps, 0.05, 1.0, 0.1),
    ),
    Program(
        "floyd_warshall",
        "floyd_warshall",
        (700,),
        (10,),
        lambda make, n: (make(n),),
    ),
    Program(
        "radii",
        "mean_by_radius",
        (11_000_000, 1000),
        (100, 10),
        lambda make, n, bins: (*make(n), bins),
    ),
)

# No loop, 635 operations, 47 assignments to parts. It is no one of the twelve.
LONG_BODY = Program(
    "ocean_step",
    "ocean_step",
    (200, 100, 30),
    (8, 7, 5),
    lambda make, *shape: make(*shape),
)
