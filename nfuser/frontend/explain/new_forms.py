# SPDX-License-Identifier: Apache-2.0
"""How the arguments of a call differ in form from those that were traced before."""

from __future__ import annotations

import reprlib
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from nfuser.compiler.dtypes import as_dtype
from nfuser.execution.device.describe.libraries import Library
from nfuser.frontend.call.inputs.argument_names import named_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from nfuser.compiler.trace.call.tree import Tree

    _Kind: TypeAlias = "object | None"
    _Parts = Mapping[str, tuple[Tree, _Kind]]

_BEFORE = "traced before"


def new_forms(
    function: Callable[..., Any],
    structure: tuple[object, ...],
    known: Iterable[tuple[object, ...]],
) -> list[str]:
    """Return a sentence for each difference to the nearest of ``known`` structures.

    A structure is the tree of the arguments, then what each leaf is to a trace.
    """
    mine = _parts(function, structure)
    found = [_differences(mine, _parts(function, other)) for other in known]
    return min(found, key=len)


def _parts(function: Callable[..., Any], structure: tuple[object, ...]) -> _Parts:
    tree, *kinds, _ = structure
    left = iter(kinds)
    return {
        name: (part, next(left) if part.container is None else None)
        for name, part in named_parts(function, cast("Tree", tree))
    }


def _differences(new: _Parts, old: _Parts) -> list[str]:
    found: list[str] = []
    told: list[str] = []  # what is inside of them differs, too
    for name in dict.fromkeys((*new, *old)):
        if any(_is_inside(name, whole) for whole in told):
            continue
        differences = [*_differences_of(name, new.get(name), old.get(name))]
        found += differences
        if differences:
            told.append(name)
    return found or [*_orders(new, old)]


def _is_inside(name: str, whole: str) -> bool:
    return name.startswith((f"{whole}[", f"{whole}."))


def _differences_of(
    name: str, new: tuple[Tree, _Kind] | None, old: tuple[Tree, _Kind] | None
) -> Iterator[str]:
    if new is None:
        yield f"{name} is not given, {_BEFORE} with it"
    elif old is None:
        yield f"{name} is given, {_BEFORE} without it"
    elif new[0].container is not old[0].container:
        yield f"{name} is {_word(*new)}, {_BEFORE} as {_word(*old)}"
    elif new[0].container is None and new[1] != old[1]:
        yield from _differences_of_leaves(name, new, old)


def _differences_of_leaves(
    name: str, new: tuple[Tree, _Kind], old: tuple[Tree, _Kind]
) -> Iterator[str]:
    pair = new[1], old[1]
    if _is_array(pair[0]) and _is_array(pair[1]):
        yield from _differences_of_arrays(name, *pair)
        return
    word, before = _word(*new), _word(*old)
    if word == before:  # two objects of one class
        yield f"{name} is {word} that was not {_BEFORE}"
    else:
        yield f"{name} is {word}, {_BEFORE} as {before}"


def _differences_of_arrays(name: str, new: Any, old: Any) -> Iterator[str]:
    (library, dtype, axes, where), (library0, dtype0, axes0, where0) = new, old
    is_moved = library is not library0
    if is_moved:
        yield f"{name} is an array of {library!r}, {_BEFORE} as one of {library0!r}"
    if as_dtype(dtype) is not as_dtype(dtype0):
        yield f"the dtype of {name} is {dtype}, {_BEFORE} as {dtype0}"
    if axes != axes0:
        count = "1 axis" if axes == 1 else f"{axes} axes"
        yield f"{name} has {count}, {_BEFORE} with {axes0}"
    if where != where0 and not is_moved:
        yield f"{name} lies on {where}, {_BEFORE} on {where0}"


def _orders(new: _Parts, old: _Parts) -> Iterator[str]:
    """Say what stands in another order, or has other labels, where all else agrees."""
    for name, (part, _) in new.items():
        before = old[name][0]
        if part.keys != before.keys:
            yield f"the keys of {name} come in another order"
            return
        if part.labels != before.labels:
            yield f"the labels of {name} are others"
            return
    yield "the named arguments come in another order"


def _is_array(kind: _Kind) -> bool:
    return isinstance(kind, tuple) and isinstance(cast("Any", kind)[0], Library)


def _word(part: Tree, kind: Any) -> str:
    """Return what stands at a place: a nest, an array, a number or a constant."""
    if part.container is not None:
        is_none = part.container is type(None)
        return "None" if is_none else f"a {part.container.__name__}"
    if isinstance(kind, type):
        return f"of class {cast('type[Any]', kind).__name__}"
    if _is_array(kind):
        return f"an array of {kind[0]!r}"
    cls, *held = kind
    if cls is slice:
        return repr(slice(*held))
    if isinstance(held[0], weakref.ref):
        return f"an object of class {cls.__name__}"
    return held[0] if cls is complex else reprlib.repr(held[0])
