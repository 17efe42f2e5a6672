# SPDX-License-Identifier: Apache-2.0
"""What a call is made of when it is computed again, on the way back through it.

Generators of random numbers have advanced by then: the second time draws from copies
that stand where they stood.
"""

# What is called has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false

from __future__ import annotations

import copy
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from nfuser.errors import ArgumentError, MutationError
from nfuser.frontend.call.arguments import Arguments
from nfuser.trace import tree as trees
from nfuser.trace.captures.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from nfuser.frontend.call.ready import Ready
    from nfuser.frontend.fuse.fused import Fused


def standing(nest: Any) -> Any:
    """Return ``nest`` with copies of its generators, as they stand now."""
    leaves, shape = trees.flatten(nest)
    made: dict[int, Any] = {}
    for item in leaves:
        if isinstance(item, Stream) and id(item) not in made:
            made[id(item)] = copy.copy(item)
    return trees.unflatten(shape, [made.get(id(x), x) for x in leaves])


def unrecorded() -> AbstractContextManager[Any]:
    """Return a context in which torch, if it is there, records nothing."""
    torch: Any = sys.modules.get("torch")
    return nullcontext() if torch is None else torch.no_grad()


def plan_of(
    fused: Fused[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Ready, tuple[Any, ...]]:
    """Return the plan of a call that is to be differentiated, and what it captures.

    A call that draws from a generator which is no argument is refused, since nobody
    could tell later where that stood; so is one that writes into its arguments.
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
    drawn = trace.captured.read_streams(args, kwargs) or ()
    if not all(isinstance(stream, Stream) for stream in drawn):
        message = (
            f"pass {fused._name} a generator of nfuser.random, as for nfuser.nn.dropout"
            "(x, p, rng=rng): the way back draws the same numbers again, and one of "
            "NumPy's or torch's has moved on by then"
        )
        raise ArgumentError(message)
    given = {id(x) for x in trees.flatten((args, dict(kwargs)))[0]}
    if any(id(stream) not in given for stream in drawn):
        message = (
            f"pass the generator that {fused._name} draws from as an argument: the way "
            "back draws the same numbers again"
        )
        raise ArgumentError(message)
    return ready, arrays
