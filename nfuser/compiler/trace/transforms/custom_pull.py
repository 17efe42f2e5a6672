# SPDX-License-Identifier: Apache-2.0
"""Functions that bring their own way back, while they are traced."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.call.tree as tree
from nfuser.compiler.ir.scalars.functions import equal
from nfuser.compiler.ops.customs import Custom
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import ArgumentError, DTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.call.tree import Tree
    from nfuser.compiler.trace.tracer import Tracer


def with_pull(
    tracer: Tracer, args: Sequence[Any], value: Any, pull: Callable[[Any], Any]
) -> Any:
    """Return ``value`` of ``args``, through which derivatives go back by ``pull``."""
    flat, shape = tree.flatten(value)
    held = {k: tracer.tensor(x) for k, x in enumerate(flat) if isinstance(x, Standin)}
    held = {k: t for k, t in held.items() if t.dtype.is_float or t.dtype.is_complex}
    given = [tree.flatten(arg) for arg in args]
    leaves = [_tensor(tracer, x) for leaves, _ in given for x in leaves]
    inputs = [t for t in leaves if t is not None]
    if not held or not inputs:
        return value
    b = tracer.builder
    twins = {k: b.twin(t) for k, t in held.items()}

    def pulled(ts: Sequence[TensorView | None]) -> list[TensorView | None]:
        cotangents: list[Any] = [None] * len(flat)
        for (k, twin), t in zip(twins.items(), ts, strict=True):
            zeros = ops.full(b, twin.shape, 0, twin.dtype) if t is None else t
            cotangents[k] = tracer.wrap(zeros)
        found = pull(tree.unflatten(shape, cotangents))
        parts = _parts(found, [nest for _, nest in given])
        pairs = zip(parts, leaves, strict=True)
        return [_fitting(tracer, x, t) for x, t in pairs if t is not None]

    custom = Custom(tuple(inputs), tuple(twins.values()), pulled)
    b.customs.update(dict.fromkeys(custom.results, custom))
    for k, twin in twins.items():
        made = tracer.wrap(twin)
        made._is_array = flat[k]._is_array
        flat[k] = made
    return tree.unflatten(shape, flat)


def _tensor(tracer: Tracer, item: Any) -> TensorView | None:
    if not isinstance(item, Standin):
        return None
    held = tracer.tensor(item)
    return held if held.dtype.is_float or held.dtype.is_complex else None


def _parts(found: Any, shapes: Sequence[Tree]) -> list[Any]:
    """Return what came for each leaf of the arguments; None is none."""
    if not isinstance(found, (tuple, list)) or len(found) != len(shapes):
        is_several = isinstance(found, (tuple, list))
        what = len(found) if is_several else type(found).__name__
        message = (
            "return a tuple from bwd, with a cotangent for each argument or None: "
            f"expected {len(shapes)}, found {what}"
        )
        raise ArgumentError(message)
    parts: list[Any] = []
    for item, shape in zip(found, shapes, strict=True):
        flat, given = tree.flatten(item)
        if item is None:
            flat = [None] * _count(shape)
        elif given != shape:
            message = (
                "return a nest like the argument from bwd: found "
                f"{len(flat)} arrays in another nest"
            )
            raise ArgumentError(message)
        parts += flat
    return parts


def _count(shape: Tree) -> int:
    if shape.container is None:
        return 1
    return sum(_count(child) for child in shape.children)


def _fitting(tracer: Tracer, item: Any, like: TensorView) -> TensorView | None:
    if item is None:
        return None
    b = tracer.builder
    found = tracer.tensor(item)
    if found.dtype.is_complex and not like.dtype.is_complex:
        message = (
            f"return a real cotangent from bwd, t.real: the argument is {like.dtype}, "
            f"found {found.dtype}"
        )
        raise DTypeError(message)
    pairs = zip(found.shape, like.shape, strict=False)
    fits = found.ndim == like.ndim and all(
        b.ask(equal(a, c), usual=1) for a, c in pairs
    )
    if not fits:
        given, wanted = (b.shape_text(t.shape) for t in (found, like))
        message = (
            f"return a cotangent of shape {wanted} from bwd, like the argument: found "
            f"{given}"
        )
        raise ShapeError(message)
    return ops.broadcast_to(b, b.cast(found, like.dtype), like.shape)
