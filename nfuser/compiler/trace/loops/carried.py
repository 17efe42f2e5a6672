# SPDX-License-Identifier: Apache-2.0
"""What a loop carries from one iteration to the next: values that keep their form."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.dtypes import promote, widest
from nfuser.compiler.ir.base import node, value
from nfuser.errors import ArgumentError, DTypeError, NfuserError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.dtypes.promotion import Weak
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer


@value
class Form:
    """What a carried value keeps: its dtype, how it promotes, how many axes it has.

    ``weak`` is the class of a number of Python's.
    """

    dtype: DType
    weak: Weak | None
    ndim: int
    is_array: bool  # also without axes

    def __str__(self) -> str:
        if self.weak is not None:
            return f"a Python {self.weak.__name__}"
        axes = f"{self.ndim} axes" if self.ndim != 1 else "1 axis"
        return f"{self.dtype} with {axes}"


@node
class CarriedLeaf:
    """A value that is carried, and its form."""

    held: TensorView
    form: Form


def leaf(t: Tracer, item: Any, name: str) -> CarriedLeaf:
    """Return ``item`` as a value that a loop can carry; ``name`` is what it is."""
    try:
        operand = t.operand(item)
        weak = t.builder.type_of(operand)
        held = t.builder.tensor(operand)
    except NfuserError as error:
        message = (
            f"leave {name} out of what the loop carries, and use it in the body as it "
            f"is: expected an array or a number, found {type(item).__name__}"
        )
        if isinstance(item, (str, bytes)) or not hasattr(item, "dtype"):
            raise ArgumentError(message) from error
        raise
    kind = weak if isinstance(weak, type) else None
    is_number = kind is not None or isinstance(item, np.generic)
    is_array = not is_number and bool(getattr(item, "_is_array", True))
    return CarriedLeaf(
        held, Form(held.dtype, kind, held.ndim, bool(held.ndim or is_array))
    )


def leaves(t: Tracer, items: Sequence[Any], names: Sequence[str]) -> list[CarriedLeaf]:
    """Return all ``items`` as values that a loop can carry."""
    return [leaf(t, item, name) for item, name in zip(items, names, strict=True)]


def real_parts(t: Tracer, found: Sequence[CarriedLeaf]) -> list[TensorView]:
    """Return the tensors of ``found``; of a complex one its two parts.

    Kernels have real numbers only, and so has what lies between them.
    """
    made: list[TensorView] = []
    for one in found:
        if one.held.dtype.is_complex:
            made += [ops.real(t.builder, one.held), ops.imag(t.builder, one.held)]
        else:
            made.append(one.held)
    return made


def standins(
    t: Tracer, forms: Sequence[Form], parts: Sequence[TensorView]
) -> list[Any]:
    """Return stand-ins for what ``real_parts`` gave."""
    rest = iter(parts)
    return [_standin(t, form, rest) for form in forms]


def _standin(t: Tracer, form: Form, rest: Iterator[TensorView]) -> Any:
    held = next(rest)
    if form.dtype.is_complex:
        held = ops.complex_of(t.builder, held, next(rest))
    if form.weak is not None:
        t.builder.weak[held] = form.weak
    found = t.wrap(held)
    found._is_array = form.is_array and form.weak is None
    return found


def settled(start: Form, before: Form, after: CarriedLeaf, name: str) -> Form:
    """Return the form that a value has before and after an iteration.

    A number of Python's, if it ``start``s as one, becomes what the body makes of it, or
    what holds both; all else keeps its form.
    """
    now = after.form
    if now.ndim != before.ndim:
        zeros = "an array of as many axes, as np.zeros(shape)"
        message = (
            f"start {name} with {zeros}: a carried value keeps its number of axes, "
            f"expected {before.ndim}, found {now.ndim} after one iteration"
        )
        raise ShapeError(message)
    if before.weak is not None and now.weak is not None:
        return before if widest((before.weak, now.weak)) is before.weak else now
    if before.weak is not None:
        dtype = promote(before.weak, now.dtype)
        return Form(dtype, None, now.ndim, now.is_array)
    if now.dtype is before.dtype or now.weak is not None:
        _require_kind(before, now, name)
        return before
    if joint_dtype(start, now) is before.dtype:
        return before
    raise _changed(before, now, name)


def joint_dtype(start: Form, now: Form) -> DType | None:
    """Return the dtype that holds a number of Python's, and what a turn makes of it."""
    return None if start.weak is None else promote(start.weak, now.weak or now.dtype)


def _require_kind(before: Form, now: Form, name: str) -> None:
    """Refuse a Python number that the dtype of a carried value does not take."""
    order = "biufc"
    kinds = order.index(before.dtype.kind), order.index(now.dtype.kind)
    if now.dtype is not before.dtype and kinds[1] > max(kinds[0], 2 * (kinds[0] > 0)):
        raise _changed(before, now, name)


def _changed(before: Form, now: Form, name: str) -> DTypeError:
    message = (
        f"start {name} with x.astype(np.{now.dtype.numpy.name}), or end the body with "
        f".astype(np.{before.dtype.numpy.name}): a carried value keeps its dtype, "
        f"expected {before}, found {now} after one iteration"
    )
    return DTypeError(message)


def require_structure(expected: tree.Tree, found: tree.Tree, what: str) -> None:
    """Refuse a nest of another structure than a loop began with."""
    if expected == found:
        return
    shown = [_shown(x) for x in (expected, found)]
    message = (
        f"return from {what} what it was given, nested alike: expected {shown[0]}, "
        f"found {shown[1]}"
    )
    raise ArgumentError(message)


class _Star:
    def __repr__(self) -> str:
        return "*"


def _shown(nest: tree.Tree) -> str:
    """Render a structure: ``(*, {'u': *})``."""
    return repr(tree.unflatten(nest, [_Star()] * _count(nest)))


def _count(nest: tree.Tree) -> int:
    return 1 if nest.container is None else sum(map(_count, nest.children))


def names_of(nest: tree.Tree, name: str) -> list[str]:
    """Return what the leaves of a nest called ``name`` are called."""
    if nest.container is None:
        return [name]
    if nest.labels is not None:
        return [f"{name}{step}" for step in nest.labels.steps]
    keys = nest.keys or range(len(nest.children))
    fields = getattr(nest.container, "_fields", None)
    found: list[str] = []
    for k, (key, child) in enumerate(zip(keys, nest.children, strict=True)):
        part = f".{fields[k]}" if fields else f"[{key!r}]"
        found += names_of(child, f"{name}{part}")
    return found
