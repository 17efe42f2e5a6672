# SPDX-License-Identifier: Apache-2.0
"""How a caller would write each argument: ``x``, ``batch['mask']``, ``args[2]``."""

from __future__ import annotations

import inspect
from inspect import Parameter, Signature
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.call.tree import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nfuser.compiler.trace.call.tree import Tree


def leaf_names(function: Callable[..., Any], tree: Tree) -> list[str]:
    """Return the name of each leaf of the tree of ``(args, kwargs)``.

    >>> from nfuser.compiler.trace.call.tree import flatten
    >>> leaves, tree = flatten(((1, {"k": [2, 3]}), {"z": 4}))
    >>> leaf_names(lambda x, y, **named: x, tree)
    ['x', "y['k'][0]", "y['k'][1]", 'z']
    """
    return [n for n, part in named_parts(function, tree) if part.container is None]


def named_parts(function: Callable[..., Any], tree: Tree) -> list[tuple[str, Tree]]:
    """Return each nest and each leaf of ``(args, kwargs)`` with its name, in order."""
    positional, named = tree.children
    names = _positional_names(function)
    pairs = zip(names, positional.children, strict=False)
    keywords = zip(named.keys, named.children, strict=True)
    return [
        found for name, part in chain(pairs, keywords) for found in parts(part, name)
    ]


def unknown_keyword(signature: Signature, named: Iterable[str]) -> str | None:
    """Return Python's words for the first name that is no parameter, if there is one.

    ``Signature.bind`` speaks of missing arguments first.
    """
    if any(p.kind is Parameter.VAR_KEYWORD for p in signature.parameters.values()):
        return None
    unknown = next((k for k in named if k not in signature.parameters), None)
    return unknown and f"got an unexpected keyword argument {unknown!r}"


def _positional_names(function: Callable[..., Any]) -> Iterator[str]:
    """Return a name for every place, however many are given."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin may have none
        parameters = []
    places = [p.name for p in parameters if p.kind in _BY_PLACE]
    yield from places
    rest = next(
        (p.name for p in parameters if p.kind is Parameter.VAR_POSITIONAL), None
    )
    if rest is None:
        yield from (f"number {k}" for k in count(len(places)))
    else:
        yield from (f"{rest}[{k}]" for k in count())


_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
