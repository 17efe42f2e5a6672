# SPDX-License-Identifier: Apache-2.0
"""The words for sizes that do not meet, while tracing and at each call."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    Shape: TypeAlias = Sequence[int | None]

_SPELLING = {"select": "where"}  # users do not know the name of the pointwise operation


def shape_text(shape: Shape) -> str:
    """Render a shape as NumPy's messages do.

    >>> shape_text((4,)), shape_text((2, None))
    ('(4,)', '(2,?)')
    """
    listed = ",".join("?" if k is None else str(k) for k in shape)
    return f"({listed},)" if len(shape) == 1 else f"({listed})"


def no_common_shape(name: str, shapes: Sequence[Shape]) -> str:
    """Return the message for operands of the operation ``name`` that do not meet.

    >>> start, where, remedy = no_common_shape("add", [(4, 8), (4,)]).split("; ")
    >>> start
    'add: operands could not be broadcast together with shapes (4,8) (4,)'
    >>> where
    'axis -1 has sizes 8 and 4, expected equal sizes or 1'
    >>> remedy
    'write x[:, None] for (4,)'
    """
    listed = " ".join(shape_text(s) for s in shapes)
    return (
        f"{_SPELLING.get(name, name)}: operands could not be broadcast together with "
        f"shapes {listed}; "
        f"{_where(shapes)}; {_remedy(shapes)}"
    )


def no_stretch(name: str, given: Shape, wanted: Shape) -> str:
    """Return the message for an array that does not stretch to a shape."""
    return (
        f"{name}: operands could not be broadcast together: {shape_text(given)} does "
        f"not stretch to {shape_text(wanted)}; counted from the last axis, expected "
        "each size to be 1 or the one asked for; ask for another shape, or insert "
        "axes of size 1 with x[:, None]"
    )


def no_reshape(
    given: Sequence[int], wanted: Sequence[int], inferred: int | None
) -> str | None:
    """Return why an array does not reshape, or None.

    >>> no_reshape((4, 6), (5, 4), 0).split(";")[0]
    'reshape: cannot reshape array of size 24 into shape (-1,4)'
    >>> no_reshape((4, 6), (3, 8), None) is None
    True
    """
    total = math.prod(given)
    spelled = [-1 if k == inferred else n for k, n in enumerate(wanted)]
    rest = math.prod(n for n in spelled if n != -1)
    negative = any(n < 0 for k, n in enumerate(wanted) if k != inferred)
    fits = math.prod(wanted) == total and not (inferred is not None and rest == 0)
    if fits and not negative:
        return None
    remedy = "the sizes multiply up to another number"
    if inferred is not None:
        remedy = f"the other sizes multiply up to {rest}, which does not divide {total}"
    if negative:
        remedy = "a size is negative, and -1 stands for one size only"
    return (
        f"reshape: cannot reshape array of size {total} into shape "
        f"{shape_text(spelled)}; its shape is {shape_text(given)}; {remedy}"
    )


def no_join(shapes: Sequence[Sequence[int]], axis: int) -> str | None:
    """Return why arrays do not concatenate along ``axis``, or None."""
    first = shapes[0]
    for number, shape in enumerate(shapes):
        for k, (a, b) in enumerate(zip(first, shape, strict=True)):
            if k != axis and a != b:
                return (
                    f"concatenate: along axis {axis}, all other sizes must match; "
                    f"along axis {k}, the array at 0 has size {a} and the array at "
                    f"{number} has size {b}; the shapes are "
                    f"{' '.join(map(shape_text, shapes))}"
                )
    return None


def no_product(lhs: Shape, rhs: Shape) -> str | None:
    """Return why two arrays have no product as matrices, or None.

    >>> no_product((2, 3), (3, 4)) is None
    True
    >>> no_product((2, 3), (4, 5)).split("; ")[-1]
    'the last axis of (2,3) has size 3, axis -2 of (4,5) has size 4'
    """
    signature = "gufunc signature (n?,k),(k,m?)->(n?,m?)"
    for number, shape in enumerate((lhs, rhs)):
        if not shape:
            return (
                f"matmul: input operand {number} does not have enough dimensions (has "
                f"0, {signature} requires 1); x * y multiplies each element"
            )
    axis = -2 if len(rhs) > 1 else -1
    inner, outer = lhs[-1], rhs[axis]
    if inner != outer and None not in (inner, outer):
        return (
            f"matmul: input operand 1 has a mismatch in its core dimension 0, with "
            f"{signature} (size {outer} is different from {inner}); the last axis of "
            f"{shape_text(lhs)} has size {inner}, axis {axis} of {shape_text(rhs)} has "
            f"size {outer}"
        )
    stacks = [lhs[:-2], rhs[:-2]]
    if _bad_axis(stacks) is None:
        return None
    listed = " ".join(map(shape_text, stacks))
    return (
        f"matmul: operands could not be broadcast together: stacks of shapes {listed}; "
        f"{_where(stacks)}"
    )


def no_pad(given: Sequence[int], wanted: Sequence[int]) -> str | None:
    """Return why an array does not pad to the sizes ``wanted``, or None."""
    if min(wanted, default=0) >= 0:
        return None
    return (
        f"pad: negative widths drop more than there is: an array of shape "
        f"{shape_text(given)} would get the sizes {shape_text(wanted)}"
    )


def no_extension(given: int, wanted: int, axis: int) -> str | None:
    """Return why an axis is not continued with its own elements, or None."""
    if given or not wanted:
        return None
    return (
        f"pad: can't extend empty axis {axis} using modes other than 'constant'; it "
        f"would get the size {wanted}; use mode='constant'"
    )


def negative_sizes(name: str, shape: Sequence[int]) -> str | None:
    """Return what is said of a result with a negative size, or None."""
    if min(shape, default=0) >= 0:
        return None
    return (
        f"{name}: negative dimensions are not allowed: the result would get the shape "
        f"{shape_text(shape)}"
    )


def _sizes(shapes: Sequence[Shape], axis: int) -> list[int]:
    """Return the different sizes along ``axis``, counted from the end, but 1."""
    found = (s[axis] for s in shapes if len(s) >= -axis)
    return list(dict.fromkeys(n for n in found if n not in (1, None)))


def _bad_axis(shapes: Sequence[Shape]) -> int | None:
    rank = max(map(len, shapes))
    bad = (k for k in range(-1, -rank - 1, -1) if len(_sizes(shapes, k)) > 1)
    return next(bad, None)


def _where(shapes: Sequence[Shape]) -> str:
    axis = _bad_axis(shapes)
    if axis is None:
        return "expected equal sizes or 1 along each axis, counted from the last"
    sizes = " and ".join(map(str, _sizes(shapes, axis)))
    return f"axis {axis} has sizes {sizes}, expected equal sizes or 1"


def _remedy(shapes: Sequence[Shape]) -> str:
    rank = max(map(len, shapes))
    for k, shape in enumerate(shapes):
        missing = rank - len(shape)
        longer = [*shapes[:k], (*shape, *[1] * missing), *shapes[k + 1 :]]
        if missing and _bad_axis(longer) is None:
            index = ", ".join([":"] * len(shape) + ["None"] * missing)
            return f"write x[{index}] for {shape_text(shape)}"
    return "take a slice, pass arrays of one size, or insert an axis with x[:, None]"


def carried_changes(number: int, before: Shape, after: Shape) -> str | None:
    """Return why a carried value does not keep its sizes, or None.

    >>> carried_changes(0, (3,), (3,)) is None
    True
    >>> carried_changes(1, (1, 3), (2, 3)).partition(":")[0]
    'loop'
    """
    if tuple(before) == tuple(after):
        return None
    return (
        f"loop: start with an array of shape {shape_text(after)}: a carried value "
        f"keeps its shape, expected {shape_text(before)}, found {shape_text(after)} in "
        f"value number {number} after one iteration"
    )
