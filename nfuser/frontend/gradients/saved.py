# SPDX-License-Identifier: Apache-2.0
"""What a call keeps for the way back through it, told before it is made."""

# What is called has no static type.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.call import tree as trees
from nfuser.compiler.trace.captures.parts import is_array
from nfuser.errors import ArgumentError
from nfuser.frontend.call.inputs.argument_names import leaf_names
from nfuser.frontend.gradients.again import plan_of
from nfuser.frontend.gradients.keeping import Planner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.transforms.partition import Saved
    from nfuser.frontend.fuse.fused import Fused


def saved_of(
    fused: Fused[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Saved]:
    """Return what a call keeps, if derivatives are taken in all its arrays of floats.

    Of tensors of torch it is those that require a gradient, if any does.
    """
    plan_of(fused, args, kwargs)  # which says what is wrong with the call, if anything
    leaves, shape = trees.flatten((args, dict(kwargs)))
    wanted = [k for k, x in enumerate(leaves) if is_array(x) and _is_floating(x)]
    asking = [k for k in wanted if getattr(leaves[k], "requires_grad", False)]

    def flat(*given: Any) -> Any:
        positional, named = trees.unflatten(shape, given)
        return fused._function(*positional, **named)

    names = leaf_names(fused._function, shape)
    varies = _is_tensor if asking else None
    planner = Planner(fused, flat, tuple(asking or wanted), names, varies)
    plan = planner.plan(leaves) if wanted else None
    if plan is None:
        message = f"pass an array of floats to {fused._name}.saved: found none"
        raise ArgumentError(message)
    return list(plan.saved)


def _is_floating(array: Any) -> bool:
    kind = getattr(array.dtype, "kind", None)
    if kind is None:  # torch's have none
        return array.dtype.is_floating_point or array.dtype.is_complex
    return kind in "fcV"  # bfloat16 is a V


def _is_tensor(item: Any) -> bool:
    torch = sys.modules["torch"]
    return item.__class__ in (torch.Tensor, torch.nn.Parameter)
