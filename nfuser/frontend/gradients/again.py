# SPDX-License-Identifier: Apache-2.0
"""The plan of a call that is computed again, on the way back through it."""

# What is called has no static type.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.captures.randomness.clocks import is_of_numpy
from nfuser.errors import ArgumentError, MutationError
from nfuser.frontend.call.inputs.arguments import Arguments
from nfuser.frontend.call.recording import unrecorded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.frontend.call.ready import Ready
    from nfuser.frontend.fuse.fused import Fused


def plan_of(
    fused: Fused[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Ready, tuple[Any, ...]]:
    """Return the plan of a call that is to be differentiated, and what it captures.

    A call that draws from a generator of NumPy's is refused, which has no key to draw
    the same numbers of; so is one that changes its arguments.
    """
    with unrecorded():
        arguments = Arguments(args, kwargs, fused._function)
        ready, arrays = fused._prepare(arguments, args, kwargs)
    trace = ready.variant.trace
    if trace.writes:
        message = (
            f"write into a copy, x = x.copy(), in {fused._name}: what is "
            "differentiated leaves its arguments as they are; or call it under "
            "torch.no_grad()"
        )
        raise MutationError(message)
    if trace.changed:
        message = (
            f"return what {fused._name} puts into lists and dicts of its arguments: "
            "what is differentiated leaves its arguments as they are"
        )
        raise MutationError(message)
    drawn = trace.captured.read_streams(args, kwargs) or ()
    if any(map(is_of_numpy, drawn)):
        message = (
            f"write nfuser.random.default_rng(seed) for what {fused._name} draws from: "
            "the way back draws the same numbers again, and NumPy's generator has "
            "moved on by then"
        )
        raise ArgumentError(message)
    return ready, arrays
