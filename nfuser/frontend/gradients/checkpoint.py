# SPDX-License-Identifier: Apache-2.0
"""``nfuser.checkpoint``: parts of a function of which the user says what is kept."""

# What is called has no static type.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.trace import current_tracer
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.transforms.partition import Policy, told
from nfuser.errors import ArgumentError
from nfuser.frontend.gradients.transform import check_function

if TYPE_CHECKING:
    from collections.abc import Callable


class checkpoint_policies:  # noqa: N801 (JAX's name of it)
    """What ``nfuser.checkpoint`` keeps, under the names that JAX has.

    >>> import nfuser
    >>> nfuser.checkpoint_policies.save_only_these_names("hidden")
    save_only_these_names('hidden')
    """

    nothing_saveable = Policy("nothing_saveable", others=False)
    everything_saveable = Policy("everything_saveable", others=True)
    dots_saveable = Policy("dots_saveable", others=False, products=True)

    @staticmethod
    def save_only_these_names(*names: str) -> Policy:
        """Keep what ``checkpoint_name`` gave one of ``names``, and nothing else."""
        return Policy("save_only_these_names", False, frozenset(names))

    @staticmethod
    def save_any_names_but_these(*names: str) -> Policy:
        """Keep all that has a name, or none, but what has one of ``names``."""
        return Policy("save_any_names_but_these", True, frozenset(names))


def checkpoint(
    fun: Callable[..., Any] | None = None, *, policy: Policy | None = None
) -> Callable[..., Any]:
    """Return ``fun``, which the way back computes again of its arguments.

    What ``nfuser.vjp`` and PyTorch's graph keep of a call is else chosen by its bytes,
    and never a product, a sort or a loop that runs twice. ``policy``, one of
    ``nfuser.checkpoint_policies``, says what is kept all the same.

    >>> import numpy as np, nfuser
    >>> layer = nfuser.fuse(nfuser.checkpoint(lambda x, w: np.tanh(np.tanh(x @ w))))
    >>> [kept.name for kept in layer.saved(np.ones((9, 4)), np.ones((4, 4)))]
    ['x', 'w']
    """
    if fun is None:
        return functools.partial(checkpoint, policy=policy)
    check_function("checkpoint", fun)
    if policy is not None and not isinstance(policy, Policy):
        message = (
            "write policy=nfuser.checkpoint_policies.nothing_saveable, or another of "
            f"them: found {type(policy).__name__}"
        )
        raise ArgumentError(message)
    chosen = policy or checkpoint_policies.nothing_saveable

    @functools.wraps(fun)
    def computed_again(*args: Any, **kwargs: Any) -> Any:
        tracer = current_tracer()
        if tracer is None:
            return fun(*args, **kwargs)
        builder = tracer.builder
        begin = len(builder.exprs)
        value = tracer.as_called(fun)(*args, **kwargs)
        found = told(chosen, builder.exprs[begin:], tracer.names)
        for leaf in tree.flatten(value)[0]:  # whoever reads them may keep them
            if isinstance(leaf, Standin):
                found.pop(tracer.tensor(leaf), None)
        tracer.told = {**found, **tracer.told}  # what parts of it say comes first
        return value

    return computed_again


def checkpoint_name(x: Any, name: str) -> Any:
    """Return ``x``, an array or a nest of arrays, under ``name`` for policies.

    >>> import numpy as np, nfuser
    >>> from nfuser import checkpoint_name, checkpoint_policies
    >>> def layer(x, w):
    ...     return np.exp(checkpoint_name(np.sin(x @ w), "hidden")).sum()
    >>> keeps = checkpoint_policies.save_only_these_names("hidden")
    >>> layer = nfuser.fuse(nfuser.checkpoint(layer, policy=keeps))
    >>> [kept.why for kept in layer.saved(np.ones((9, 4)), np.ones((4, 4)))][2:]
    ['what a policy keeps']
    """
    if not isinstance(name, str):
        message = (
            f'write nfuser.checkpoint_name(x, "h"): found {type(name).__name__} as name'
        )
        raise ArgumentError(message)
    tracer = current_tracer()
    if tracer is not None:
        for leaf in tree.flatten(x)[0]:
            if isinstance(leaf, Standin):
                tracer.names[tracer.tensor(leaf)] = name
    return x
