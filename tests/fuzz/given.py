# SPDX-License-Identifier: Apache-2.0
"""What random programs that write are given: arrays that lie in many ways."""

# Arrays of any dtype have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    View: TypeAlias = Callable[[Any], Any]  # of what is held to what is given

_PLACES = ((0, 1, 0), (0, 1, 0), (2, 1, 1), (0, 2, 0), (1, 1, 0), (0, 1, 2), (1, 3, 0))
"""Where a part begins on an axis of a longer array, its step, and what lies behind."""

_AROUND = 3.0  # what longer arrays hold beside a part


_ANOTHER = 0.2


def kinds(rng: random.Random) -> Iterator[random.Random]:
    """Give what chooses dtypes and places in memory: mostly the same again.

    What was compiled for one shape then serves the next ones, as it should.
    """
    kind = rng.getrandbits(32)
    while True:
        yield random.Random(kind)
        if rng.random() < _ANOTHER:
            kind = rng.getrandbits(32)


def _placed(rng: random.Random, x: Any) -> tuple[Any, View]:
    """Return a longer array, of which ``x`` is a part, turned or not."""
    places = [rng.choice(_PLACES) for _ in x.shape]
    turned = tuple(k for k in range(x.ndim) if rng.random() < 0.2)
    spans = list(zip(places, x.shape, strict=True))
    longer = [begin + step * n + end for (begin, step, end), n in spans]
    key = tuple(slice(begin, begin + step * n, step) for (begin, step, _), n in spans)
    held = np.full(longer, _AROUND, x.dtype)
    held[key] = np.flip(x, turned)
    return held, lambda base: np.flip(base[key], turned)


def _permuted(rng: random.Random, x: Any) -> tuple[Any, View]:
    order = rng.sample(range(x.ndim), x.ndim)
    back = tuple(map(int, np.argsort(order)))
    return np.ascontiguousarray(x.transpose(order)), lambda base: base.transpose(back)


def _unaligned(_: random.Random, x: Any) -> tuple[Any, View]:
    held = np.zeros(x.nbytes + 1, "u1")
    dtype, shape = x.dtype, x.shape
    view = lambda base: base[1:].view(dtype).reshape(shape)  # noqa: E731
    view(held)[...] = x
    return held, view


def _read_only(_: random.Random, x: Any) -> tuple[Any, View]:
    def view(base: Any) -> Any:
        seen = base[...]
        seen.flags.writeable = False
        return seen

    return x, view


def _stretched(_: random.Random, x: Any) -> tuple[Any, View]:
    shape = x.shape
    return x[:1].copy(), lambda base: np.broadcast_to(base, shape)


LAYOUTS: dict[str, tuple[float, Callable[[random.Random, Any], tuple[Any, View]]]] = {
    "contiguous": (40, lambda _, x: (x, lambda base: base)),
    "fortran": (12, lambda _, x: (np.asfortranarray(x), lambda base: base)),
    "placed": (32, _placed),
    "permuted": (8, _permuted),
    "unaligned": (2.5, _unaligned),
    "swapped": (1.5, lambda _, x: (x.astype(x.dtype.newbyteorder()), lambda b: b)),
    "read-only": (0.7, _read_only),
    "stretched": (0.7, _stretched),
}
USUAL = _ON_DEVICE = ("contiguous", "fortran", "placed", "permuted")

_OVERLAPS: tuple[Callable[[Any], list[Any]], ...] = (
    lambda x: [x[:-1], x[1:]],
    lambda x: [x[1:], x[:-1]],
    lambda x: [x[1:], x[1:]],
    lambda x: [x[1:]] * 2,
    lambda x: [x[1:], x[:0:-1]],
    lambda x: [x[1:], x[1:][..., ::-1]],
)


def _numbers(rng: random.Random, shape: tuple[int, ...], dtype: str) -> Any:
    """Return small integers, of which many are equal, or sixteenths, of which few are.

    What is read at another place than it should be shows in the latter.
    """
    most, parts = (3, 1) if rng.random() < 0.4 else (56, 16)
    return (integers(rng, most, shape) / parts).astype(dtype)


def integers(rng: random.Random, most: int, shape: tuple[int, ...]) -> Any:
    """Return random integers, which may be up to ``most`` and as far below zero."""
    return np.random.RandomState(rng.getrandbits(32)).randint(-most, most + 1, shape)


@dataclass
class Given:
    """Arrays of small integers, of their own or parts of one: held, and seen."""

    held: list[Any]
    views: Callable[[list[Any]], list[Any]]
    is_shared: bool = False

    @classmethod
    def random(
        cls,
        rng: random.Random,
        shape: tuple[int, ...],
        kind: random.Random,
        *,
        shared: bool = False,
        dtypes: tuple[str, ...] = ("f8", "f8", "f8", "f4"),
        on_device: bool = False,
    ) -> Given:
        """Return arrays of a shape; those that are shared overlap in some way.

        Of which dtypes they are and how they lie is what ``kind`` says.
        """
        if shared:
            longer = _numbers(rng, (shape[0] + 1, *shape[1:]), kind.choice(dtypes))
            part = kind.choice(_OVERLAPS)
            return cls([longer], lambda held: part(held[0]), True)
        arrays = [_numbers(rng, shape, kind.choice(dtypes)) for _ in range(2)]
        return cls.of(kind, arrays, _ON_DEVICE if on_device else tuple(LAYOUTS))

    @classmethod
    def of(
        cls, rng: random.Random, arrays: list[Any], names: tuple[str, ...] = USUAL
    ) -> Given:
        """Return arrays of these values that lie in random ways, of some names."""
        weights = [LAYOUTS[name][0] for name in names]
        held: list[Any] = []
        views: list[View] = []
        for x in arrays:
            base, view = LAYOUTS[rng.choices(names, weights)[0]][1](rng, x)
            held.append(base)
            views.append(view)
        return cls(
            held, lambda own: [view(x) for view, x in zip(views, own, strict=True)]
        )

    def copies(self) -> tuple[list[Any], list[Any]]:
        """Return what is held and the arrays of it, which nobody has written into."""
        held = [x.copy("K") for x in self.held]
        return held, self.views(held)

    def in_doubles(self) -> list[Any]:
        """Return the arrays with singles as doubles."""
        held = [x.astype("d") if x.dtype.char == "f" else x.copy() for x in self.held]
        if self.is_shared:
            return self.views(held)
        seen = self.views([x.copy("K") for x in self.held])
        return [x.astype("d") if x.dtype.char == "f" else x for x in seen]

    def change(self, rng: random.Random, parts: int = 1) -> None:
        """Give the arrays other values, which lie where those before did."""
        for x in self.views(self.held):
            if not x.flags.writeable:
                continue
            if parts == 1 and x.dtype.kind == "f":
                x[...] = _numbers(rng, x.shape, "f8")
            else:
                x[...] = integers(rng, 8, x.shape) / (
                    parts if x.dtype.kind == "f" else 1
                )

    def is_same_around(
        self, one: tuple[list[Any], list[Any]], other: tuple[list[Any], list[Any]]
    ) -> bool:
        """Tell whether the same is held around what is seen, which is set to 0."""
        for x in (*one[1], *other[1]):
            if x.flags.writeable:
                x[...] = 0
        pairs = zip(one[0], other[0], strict=True)
        return all(np.array_equal(x, y, equal_nan=True) for x, y in pairs)
