# SPDX-License-Identifier: Apache-2.0
"""Whether torch records a call: then it is one operation of its graph."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager


class GradientAskedError(Exception):
    """What a call captures requires a gradient, which is known once it is traced."""


def any_asks(arrays: Iterable[Any]) -> bool:
    """Tell whether one is a tensor whose gradient torch may be asked for."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    kinds = torch.Tensor, torch.nn.Parameter
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return any(
        x.__class__ in kinds and x.requires_grad and not wrapped(x) for x in arrays
    )


def unrecorded() -> AbstractContextManager[Any]:
    """Return a context in which torch records nothing: a call is only looked at."""
    torch: Any = sys.modules.get("torch")
    return nullcontext() if torch is None else torch.no_grad()


def recorded(
    fused: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Call ``fused``, and let torch record that."""
    # Few ask for it; and it imports what imports this.
    found = import_module("nfuser.frontend.gradients.autograd")
    return found.call_recorded(fused, args, kwargs)
