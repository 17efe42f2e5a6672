# SPDX-License-Identifier: Apache-2.0
"""Elements that indices choose, and products, under torch's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.trace.numpy.dispatch.keywords import plain
from nfuser.compiler.trace.torch.words.common import (
    axis_of,
    in_dtype,
    met,
    refuse_others,
)

if TYPE_CHECKING:
    from nfuser.compiler.trace.torch.words.common import Word
    from nfuser.compiler.trace.tracer import Tracer


def _gather(
    t: Tracer, x: Any, dim: Any, index: Any, *, sparse_grad: Any = False
) -> Any:
    """Take along an axis; on the others an index may be shorter than what it reads."""
    del sparse_grad
    axis = axis_of(dim, x.ndim)
    key = [slice(None, n) for n in index.shape]
    key[axis] = slice(None)
    return t.handlers["take_along_axis"](t, x[tuple(key)], index, axis)


def _take_along_dim(t: Tracer, x: Any, indices: Any, dim: Any = None) -> Any:
    return t.handlers["take_along_axis"](t, x, indices, plain(dim))


def _index_select(t: Tracer, x: Any, dim: Any, index: Any) -> Any:
    return t.handlers["take"](t, x, index, axis_of(dim, x.ndim))


def embedding(
    t: Tracer,
    input: Any,  # noqa: A002 (torch's name)
    weight: Any,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: Any = 2.0,
    scale_grad_by_freq: Any = False,
    sparse: Any = False,
) -> Any:
    """Return rows of a table."""
    del norm_type, sparse
    refuse_others(
        "embedding",
        padding_idx=padding_idx,
        max_norm=max_norm,
        scale_grad_by_freq=scale_grad_by_freq,
    )
    return t.handlers["take"](t, weight, input, 0)


def _one_hot(t: Tracer, x: Any, num_classes: Any = -1) -> Any:
    refuse_others("one_hot", num_classes=num_classes if _is_open(num_classes) else None)
    places = t.namespace.arange(num_classes)
    return in_dtype(t, x[..., None] == places, "int64")


def _is_open(count: Any) -> bool:
    """Tell whether the number of classes is to be found from the values."""
    return type(count) is int and count < 0


def _product(t: Tracer, x: Any, other: Any) -> Any:
    return met(t, ops.matmul, x, other)


def _addmm(
    t: Tracer, x: Any, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    product = _product(t, first, second)
    product = product if type(alpha) is int and alpha == 1 else alpha * product
    return (x if type(beta) is int and beta == 1 else beta * x) + product


def linear(t: Tracer, input: Any, weight: Any, bias: Any = None) -> Any:  # noqa: A002 (torch's name)
    """Return a product with the transpose of a weight."""
    product = _product(t, input, weight.T if weight.ndim > 1 else weight)
    return product if bias is None else product + bias


def _outer(t: Tracer, x: Any, other: Any) -> Any:
    del t
    return x[:, None] * other[None, :]


def _einsum(t: Tracer, equation: Any, *operands: Any) -> Any:
    nested = len(operands) == 1 and isinstance(operands[0], (tuple, list))
    return t.handlers["einsum"](t, equation, *(operands[0] if nested else operands))


def _tensordot(t: Tracer, x: Any, other: Any, dims: Any = 2) -> Any:
    return t.handlers["tensordot"](t, x, other, dims)


WORDS: dict[str, Word] = {
    "gather": _gather,
    "take_along_dim": _take_along_dim,
    "index_select": _index_select,
    "embedding": embedding,
    "one_hot": _one_hot,
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot"), _product),
    "addmm": _addmm,
    "baddbmm": _addmm,
    "linear": linear,
    "outer": _outer,
    "einsum": _einsum,
    "tensordot": _tensordot,
}
