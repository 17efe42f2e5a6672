# SPDX-License-Identifier: Apache-2.0
"""How each library is given its arguments, and how its results are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asv_bench.programs.program import copied, listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from asv_bench.programs.program import Arguments


class Runner:
    """A function of NumPy arrays: it writes its arguments, and returns."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def prepared(self, arguments: Arguments) -> Arguments:
        """Return arguments for one call, fresh."""
        return copied(arguments)

    def run(self, prepared: Arguments) -> Any:
        """Call the function, until all is done."""
        return self.function(*prepared)

    def outcome(
        self, prepared: Arguments, found: Any, written: list[int]
    ) -> list[np.ndarray[Any, Any]]:
        """Return the arguments that are ``written``, and the results."""
        return [
            np.asarray(x) for x in (*(prepared[k] for k in written), *listed(found))
        ]


class JaxRunner(Runner):
    """A pure function of JAX arrays; it returns what it would write first."""

    def prepared(self, arguments: Arguments) -> Arguments:
        from jax import numpy as jnp

        is_array = [isinstance(x, np.ndarray) for x in arguments]
        pairs = zip(arguments, is_array, strict=True)
        return tuple(jnp.array(x) if yes else x for x, yes in pairs)

    def run(self, prepared: Arguments) -> Any:
        from jax import block_until_ready

        return block_until_ready(self.function(*prepared))

    def outcome(
        self, prepared: Arguments, found: Any, written: list[int]
    ) -> list[np.ndarray[Any, Any]]:
        return [np.asarray(x) for x in listed(found)]


class TorchRunner(Runner):
    """A function of torch tensors."""

    def prepared(self, arguments: Arguments) -> Arguments:
        from torch import from_numpy

        own = copied(arguments)
        return tuple(from_numpy(x) if isinstance(x, np.ndarray) else x for x in own)


RUNNERS = {"numba": Runner, "jax": JaxRunner, "torch": TorchRunner}
