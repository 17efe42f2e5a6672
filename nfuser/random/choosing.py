# SPDX-License-Identifier: Apache-2.0
"""Methods that choose among things, and put them into an order."""

# What is drawn has no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nfuser.errors import ArgumentError, OptionError
from nfuser.random.distributions import choices
from nfuser.random.draw import Source, draw, sizes_of
from nfuser.random.missing import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.random.distributions.words import Array, Words


class Choosing:
    """Methods that choose, of whatever random words are drawn from."""

    @property
    def _source(self) -> Source:
        raise NotImplementedError

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what NumPy's generators have besides, and say what to write."""
        refuse(type(self).__name__, name)

    def _draw(
        self,
        function: Callable[..., Any],
        parameters: tuple[Any, ...],
        size: Any,
        like: Any,
        **options: Any,
    ) -> Array:
        return draw(self._source, function, parameters, size, options, like)

    def categorical(self, p: Any, size: Any = None, *, like: Any = None) -> Array:
        """Return indices drawn with the weights of the last axis of ``p``.

        Without a size there is one for each row of ``p``.
        """
        weights = array_of(p)
        shape = weights.shape[:-1] if size is None else size
        return self._indices(choices.categorical, weights, shape, like)

    def categorical_logits(
        self, logits: Any, size: Any = None, *, like: Any = None
    ) -> Array:
        """Return indices drawn with the weights ``exp(logits)`` of the last axis."""
        weights = array_of(logits)
        shape = weights.shape[:-1] if size is None else size
        return self._indices(choices.categorical_logits, weights, shape, like)

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Sequence[float] | Array | None = None,
        axis: int = 0,
        *,
        like: Any = None,
    ) -> Array:
        """Return some of ``a``, or of ``range(a)``; with ``replace``, some often."""
        things = None if getattr(a, "ndim", 0) == 0 and not _is_list(a) else array_of(a)
        count = a if things is None else things.shape[axis]
        if count == 0:
            message = "write something to choose from: found nothing"
            raise OptionError(message)
        if p is not None:
            found = self._weighted(count, size, p, like, replace=replace)
        elif replace:
            found = self.integers(0, count, () if size is None else size, like=like)
        else:
            shape = axes_of(size)
            taken = 1
            for n in shape:
                taken = taken * n
            if _is_more(taken, count):
                message = (
                    f"write replace=True, or a size of at most {count}: {taken} "
                    "different things were asked for"
                )
                raise OptionError(message)
            first = self._draw(_first, (taken,), (count,), like)
            found = first.reshape(shape)
        return found if things is None else np.take(things, found, axis=axis)

    def permutation(self, x: Any, axis: int = 0, *, like: Any = None) -> Array:
        """Return ``x``, or ``range(x)``, with its parts in random order."""
        if getattr(x, "ndim", 0) == 0 and not _is_list(x):
            return self._draw(choices.order, (), x, like)
        things = array_of(x)
        found = self._draw(choices.order, (), things.shape[axis], like)
        return np.take(things, found, axis=axis)

    def permuted(self, x: Any, *, axis: int | None = None, like: Any = None) -> Array:
        """Return ``x`` with each row along ``axis`` in an order of its own."""
        things = array_of(x)
        if axis is None:
            flat = things.reshape(-1)
            return self.permutation(flat, like=like).reshape(things.shape)
        found = self._draw(choices.order, (), things.shape, like, axis=axis)
        return np.take_along_axis(things, found, axis=axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Put the parts of ``x`` into random order, in place."""
        if isinstance(x, list):
            found = self.permutation(len(x))
            x[:] = [x[k] for k in found]
            return
        x[...] = self.permutation(x, axis)

    def _weighted(
        self, count: Any, size: Any, p: Any, like: Any, *, replace: bool
    ) -> Array:
        if not replace:
            message = (
                "write replace=True, or leave p out: different things with weights "
                "are not drawn"
            )
            raise OptionError(message)
        weights = choices.probabilities(p) if _is_plain(p) else p
        if weights.shape != (count,):
            message = (
                f"write one probability for each of {count} things: found an array of "
                f"shape {weights.shape}"
            )
            raise ArgumentError(message)
        return self._indices(choices.categorical, weights, axes_of(size), like)

    def _indices(
        self, function: Callable[..., Any], weights: Any, size: Any, like: Any
    ) -> Array:
        return self._draw(function, (), size, like, **{_WEIGHTS[function]: weights})


_WEIGHTS = {choices.categorical: "p", choices.categorical_logits: "logits"}


def _first(words: Words, count: Any) -> Array:
    return choices.order(words)[:count]


def _is_more(taken: Any, count: Any) -> bool:
    """Tell whether more things are taken than there are, as far as is known."""
    return type(taken) is int and type(count) is int and taken > count


def axes_of(size: Any) -> tuple[Any, ...]:
    """Return the sizes that ``size`` says, none where there is none."""
    return () if size is None else sizes_of(size)


def _is_list(x: Any) -> bool:
    return isinstance(x, list | tuple | range)


def _is_plain(x: Any) -> bool:
    return _is_list(x) or isinstance(x, np.ndarray)


def array_of(x: Any) -> Any:
    """Return lists, tuples and ranges as an array, and all else as it is."""
    return np.asarray(x) if _is_list(x) else x
