# SPDX-License-Identifier: Apache-2.0
"""Writes one random definition, and computes with NumPy beside it."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from nfuser import DataType, FusionDefinition
from nfuser.compiler.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZES = (5, 5, 5, 7, 7, 3, 2, 1, 1)
MOST = 3000  # elements of one tensor
BF16 = np.dtype(ml_dtypes.bfloat16)
KINDS: dict[str, tuple[Any, ...]] = {
    "b": (np.bool_,),
    "i": (np.int32, np.int32, np.int64, np.uint8, np.int16),
    "f": (np.float32, np.float32, np.float64, np.float16, BF16),
    "c": (np.complex64, np.complex128),
}


@dataclass(frozen=True)
class Term:
    """A tensor of the definition, what NumPy has for it, and how far it may be off.

    Where ``slack`` is 0 every bit is known, and what jumps may be applied.
    """

    handle: Any
    array: Any
    slack: float = 0.0

    @property
    def kind(self) -> str:
        return kind_of(self.array.dtype)


def kind_of(dtype: Any) -> str:
    """Return b, i, f or c; unsigned integers are i."""
    kind = np.dtype(dtype).kind
    return "f" if np.dtype(dtype) == BF16 else "i" if kind == "u" else kind


def largest(array: Any) -> float:
    """Return the largest absolute value."""
    wide = np.asarray(array)
    if kind_of(wide.dtype) != "c":
        wide = wide.astype(np.float64)
    return float(np.abs(wide).max(initial=0))


def epsilon(dtype: Any) -> float:
    """Return the gap between 1 and the next number; 0 where there are no gaps."""
    if kind_of(dtype) in "bi":
        return 0.0
    return float(ml_dtypes.finfo(np.dtype(dtype)).eps)


class Writer:
    """A definition in the making; steps pick from its terms and add to them."""

    def __init__(self, seed: int, backend: str | None, library: str) -> None:
        self.dice = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.fd = FusionDefinition(backend=backend)
        self.library = library
        self.inputs: list[Any] = []
        self.terms: list[Term] = []
        self.expected: list[Term] = []
        self.slots: dict[str, int] = {}  # of inputs, by handle
        self.aliased: dict[int, Term] = {}

    # -- inputs --------------------------------------------------------------

    def make(self, kind: str, shape: Sequence[int]) -> Term:
        """Add an input of a kind; it has small numbers."""
        dtype = self.dice.choice(KINDS[kind])
        low = 0 if np.dtype(dtype).kind in "bu" else -4
        numbers = self.data.integers(low, 5, tuple(shape))
        array: Any = np.asarray(numbers, dtype)
        if kind in "fc":
            array = (array + self.data.random(tuple(shape))).astype(dtype)
        if kind == "c":
            array = (array + 1j * self.data.random(tuple(shape))).astype(dtype)
        return self.define(self._laid(np.asarray(array)))

    def define(self, array: Any) -> Term:
        """Add ``array`` to the inputs."""
        dtype = DataType(as_dtype(array.dtype))
        chance = self.dice.random()
        if array.ndim and chance < 0.4:
            handle = self.fd.from_array(array, static_sizes=self.dice.random() < 0.4)
        elif array.ndim and chance < 0.5:
            strides = [s // array.itemsize for s in array.strides]
            sizes = list(array.shape)
            handle = self.fd.define_tensor(sizes=sizes, strides=strides, dtype=dtype)
        else:
            sizes = [n if self.dice.random() < 0.3 else -1 for n in array.shape]
            handle = self.fd.define_tensor(sizes, dtype=dtype)
        self.slots[handle.name] = len(self.inputs)
        self.inputs.append(array)
        self.terms.append(term := Term(handle, array))
        return term

    def _laid(self, array: Any) -> Any:
        chance, rank = self.dice.random(), array.ndim
        if rank and chance < 0.3:
            order = self.data.permutation(rank)
            packed = np.ascontiguousarray(array.transpose(order))
            return packed.transpose(np.argsort(order))
        if rank and chance < 0.45:
            wide = np.repeat(array, 2, axis=-1)
            return wide[..., ::2]
        if rank and chance < 0.5 and self.library == "numpy":
            return np.ascontiguousarray(array[::-1])[::-1]
        if rank and chance < 0.55:
            return np.broadcast_to(array[:1], array.shape) if len(array) else array
        return array

    def integer(self, number: int) -> Any:
        """Return an integer in one of the forms that extents may have."""
        chance = self.dice.random()
        if chance < 0.55:
            return number
        if chance < 0.65:
            return self.fd.define_scalar(number, dtype=DataType.Int)
        found = [
            (term, k)
            for term in self.terms
            for k, n in enumerate(term.array.shape)
            if n == number
        ]
        if found and chance < 0.85:
            term, k = self.dice.choice(found)
            return term.handle.size(k)
        if chance < 0.93:
            scalar = self.fd.define_scalar(dtype=DataType.Int)
            self.inputs.append(number)
            return scalar
        first, second = self.fd.define_vector(2)
        self.inputs += [number + 2, 2]
        return self.fd.ops.sub(first, second)

    # -- picking -------------------------------------------------------------

    def shape(self, rank: int) -> list[int]:
        """Return a random shape; now and then one without elements."""
        sizes = [self.dice.choice(SIZES) for _ in range(rank)]
        if rank and self.dice.random() < 0.04:
            sizes[self.dice.randrange(rank)] = 0
        return sizes

    def pick(
        self,
        kinds: str = "bifc",
        rank: tuple[int, int] = (0, 4),
        *,
        exact: bool = False,
        fits: Callable[[Any], bool] | None = None,
    ) -> Term:
        """Return a term of the kinds and ranks asked for; a new input if there is none.

        ``exact`` asks for one that is known to the last bit.
        """
        found = [
            term
            for term in self.terms
            if term.kind in kinds
            and rank[0] <= term.array.ndim <= rank[1]
            and not (exact and term.slack)
            and (fits is None or fits(term.array))
        ]
        if found and self.dice.random() < 0.75:
            return self.dice.choice(found)
        while True:
            shape = self.shape(self.dice.randint(rank[0], min(rank[1], 3)))
            if fits is None or fits(np.empty(shape)):
                return self.make(self.dice.choice(kinds), shape)

    def partner(self, term: Term, *others: Term, exact: bool = False) -> Term:
        """Return a term of the dtype of ``term`` that broadcasts with all of them."""
        whole = np.broadcast_shapes(*(t.array.shape for t in (term, *others)))

        def meets(array: Any) -> bool:
            pairs = zip(array.shape[::-1], whole[::-1], strict=False)
            return all(a == b or 1 in (a, b) for a, b in pairs)

        found = [
            other
            for other in self.terms
            if other.array.dtype == term.array.dtype
            and meets(other.array)
            and not (exact and other.slack)
        ]
        if found and self.dice.random() < 0.6:
            return self.dice.choice(found)
        shape = term.array.shape[self.dice.randint(0, term.array.ndim) :]
        shape = [1 if self.dice.random() < 0.2 else n for n in shape]
        dtype = term.array.dtype
        low = 0 if dtype.kind in "bu" else -4
        numbers = self.data.integers(low, 5, shape)
        return self.define(self._laid(np.asarray(numbers, dtype)))

    def axis(self, term: Term) -> int:
        """Return an axis, from either end."""
        return self.dice.randrange(-term.array.ndim, term.array.ndim)

    # -- keeping -------------------------------------------------------------

    def keep(self, handle: Any, array: Any, slack: float = 0.0) -> None:
        """Add a result to the outputs; use it again unless it is far off or large."""
        array = np.asarray(array)
        term = Term(handle, array, slack)
        self.fd.add_output(handle)
        self.expected.append(term)
        limit = 100 if array.dtype.itemsize == 1 else 1e4
        is_near = slack <= 0.02 * max(1.0, largest(array))
        if is_near and largest(array) < limit and array.size <= MOST and array.ndim < 6:
            self.terms.append(term)

    def computed(self, handle: Any, array: Any, slack: float) -> None:
        """Keep a result of arithmetic, which rounds."""
        array = np.asarray(array)
        rounding = 16 * epsilon(array.dtype) * max(1.0, largest(array))
        self.keep(handle, array, slack + rounding)

    def write(self, steps: Sequence[Callable[[Writer], None]]) -> None:
        """Write the definition: one input, the steps, perhaps an input to overwrite."""
        with self.fd, np.errstate(all="ignore"):
            self.make(self.dice.choice("fi"), self.shape(self.dice.randint(1, 3)))
            for step in steps:
                step(self)
            self._alias()

    def _alias(self) -> None:
        if self.dice.random() < 0.7:
            return
        targets = {
            (self.inputs[slot].shape, self.inputs[slot].dtype): (slot, term)
            for term in self.terms
            if (slot := self.slots.get(getattr(term.handle, "name", ""))) is not None
            and 0 not in self.inputs[slot].strides
        }
        for term in self.expected[::-1]:
            found = targets.get((term.array.shape, term.array.dtype))
            if found and hasattr(term.handle, "ndim"):
                self.fd.add_output(term.handle, found[1].handle)
                self.aliased[found[0]] = term
                return
