# SPDX-License-Identifier: Apache-2.0
"""Sums of products by the letters of their axes, two operands at a time."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.numpy.composed.linear.diagonals import diagonal
from nfuser.compiler.trace.numpy.composed.parts import viewed
from nfuser.compiler.trace.numpy.dispatch.keywords import given
from nfuser.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer

_DOTS = 0x2460  # letters of the axes that an ellipsis stands for, last axis first


def einsum(t: Tracer, *operands: Any, out: Any = None, **options: Any) -> Any:
    """Return ``numpy.einsum``, whose first argument is the text of the letters.

    One operand of which nothing is summed comes out as a view.

    What is summed over rows and columns that are both kept is a product of matrices;
    all else is multiplied and summed where it is used.
    """
    options.pop("optimize", None)
    dtype = options.pop("dtype", None)
    given("einsum", {"out": out} | options)
    if not operands or not isinstance(operands[0], str):
        message = (
            "einsum: expected letters first, as in einsum('ij,jk->ik', x, y), found "
            f"{type(operands[0]).__name__ if operands else 'nothing'}"
        )
        raise ArgumentError(message)
    text, *listed = operands
    arrays = [viewed(t, x) for x in listed]
    kind = np.result_type(*(x.dtype for x in arrays)) if dtype is None else dtype
    arrays = [x if x.dtype == kind else x.astype(kind) for x in arrays]
    terms, wanted = _letters(text, [x.ndim for x in arrays])
    held = [_once(t, term, x) for term, x in zip(terms, arrays, strict=True)]
    letters, x = held.pop(0)
    seen = len(letters)
    while held:
        other, y = held.pop(0)
        later = set(wanted).union(*(term for term, _ in held))
        letters, x = _product(letters, x, other, y, later)
    letters, x = _summed(letters, x, set(wanted))
    if (len(arrays) > 1 or len(letters) < seen) and x.dtype != bool:
        x = x + x.dtype.type(0)  # NumPy adds to zeros: nothing comes out as -0.0
    return np.transpose(x, [letters.index(k) for k in wanted])


def _letters(text: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result, one for each axis."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        message = (
            f"einsum: {text!r} names {len(terms)} operands, found {len(ranks)} arrays"
        )
        raise ArgumentError(message)
    full = [_without_dots(x, rank, text) for x, rank in zip(terms, ranks, strict=True)]
    dots = max((x for x in map(_dots_in, full)), key=len, default="")
    if not arrow:
        joined = "".join(full)
        right = dots + "".join(
            sorted(k for k in set(joined) - set(dots) if joined.count(k) == 1)
        )
    wanted = right.replace("...", dots)
    if not set(dots) <= set(wanted):
        message = (
            f"einsum: {text!r} has axes for '...' and none for them in the result; "
            "write '...' there, too"
        )
        raise ArgumentError(message)
    if len(set(wanted)) != len(wanted) or not set(wanted) <= set("".join(full)):
        message = (
            f"einsum: expected letters of the operands after '->', each once, found "
            f"{right!r} in {text!r}"
        )
        raise ArgumentError(message)
    return full, wanted


def _without_dots(term: str, rank: int, text: str) -> str:
    """Return ``term`` with letters for the axes that its dots stand for."""
    named = term.replace("...", "", 1)
    count = rank - len(named)
    if (not named.isalpha() and named) or count < 0 or (count and named == term):
        message = (
            f"einsum: {term!r} in {text!r} does not name the axes of an array of "
            f"{rank} dimensions"
        )
        raise ShapeError(message)
    dots = "".join(chr(_DOTS + k) for k in reversed(range(count)))
    return term.replace("...", dots, 1)


def _dots_in(term: str) -> str:
    return "".join(k for k in term if ord(k) >= _DOTS)


def _once(t: Tracer, letters: str, x: Any) -> tuple[str, Any]:
    """Return ``x`` as its diagonal along axes that share a letter."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            _check(letter, x.shape[first], x.shape[second])
            x = diagonal(t, x, 0, first, second)
            rest = (k for n, k in enumerate(letters) if n not in (first, second))
            letters = "".join(rest) + letter
    return letters, x


def _check(letter: str, one: Any, other: Any) -> None:
    if one != other:
        message = (
            f"einsum: axes of the letter {letter!r} have sizes {int(one)} and "
            f"{int(other)}; they must be the same"
        )
        raise ShapeError(message)


def _summed(letters: str, x: Any, kept: set[str]) -> tuple[str, Any]:
    """Return ``x`` summed over the axes whose letters are not ``kept``."""
    axes = tuple(n for n, k in enumerate(letters) if k not in kept)
    if not axes:
        return letters, x
    found = np.any(x, axes) if x.dtype == bool else np.sum(x, axes, dtype=x.dtype)
    return "".join(k for k in letters if k in kept), found


def _product(one: str, x: Any, other: str, y: Any, later: set[str]) -> tuple[str, Any]:
    """Return two operands as one, summed over letters that do not come ``later``."""
    one, x = _summed(one, x, later | set(other))
    other, y = _summed(other, y, later | set(one))
    both = [k for k in one if k in other]
    is_even = True
    for letter in both:
        size, other_size = x.shape[one.index(letter)], y.shape[other.index(letter)]
        if size != other_size:
            is_even = False
            if size != 1 and other_size != 1:
                _check(letter, size, other_size)
    shared = "".join(k for k in both if k in later)
    inner = "".join(k for k in both if k not in later)
    rows = "".join(k for k in one if k not in other)
    columns = "".join(k for k in other if k not in one)
    whole = shared + rows + columns
    if inner and rows and columns and is_even:
        return whole, _matrices(one, x, other, y, (shared, rows, columns, inner))
    x, y = (_aligned(*part, whole + inner) for part in ((one, x), (other, y)))
    return _summed(whole + inner, x * y, set(whole))


def _aligned(letters: str, x: Any, order: str) -> Any:
    """Return ``x`` with its axes in ``order``, and new ones for letters it lacks."""
    x = np.transpose(x, [letters.index(k) for k in order if k in letters])
    return x[tuple(slice(None) if k in letters else None for k in order)]


def _matrices(
    one: str, x: Any, other: str, y: Any, parts: tuple[str, str, str, str]
) -> Any:
    """Return the product of matrices that sums over the last of ``parts``."""
    shared, rows, columns, inner = parts
    sizes = dict(zip(one, x.shape, strict=True)) | dict(
        zip(other, y.shape, strict=True)
    )
    many, high, wide, deep = ([sizes[k] for k in part] for part in parts)
    x = np.transpose(x, [one.index(k) for k in shared + rows + inner])
    y = np.transpose(y, [other.index(k) for k in shared + inner + columns])
    x = x.reshape(*many, prod(high), prod(deep))
    y = y.reshape(*many, prod(deep), prod(wide))
    return (x @ y).reshape(*many, *high, *wide)


HANDLERS = {"einsum": einsum}
