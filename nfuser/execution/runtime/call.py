# SPDX-License-Identifier: Apache-2.0
"""The inputs of one call by slot: read, described, and given to a plan."""

# Arrays of five libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.base.locks import cached_property
from nfuser.compiler.dtypes import check_fits
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.identity import structure
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.errors import ArgumentError, DTypeError, ShapeError
from nfuser.execution.device.allocate import finish
from nfuser.execution.device.describe.descriptor import (
    Library,
    address_and_key,
    describe,
    library_of,
    pointer_reader,
)
from nfuser.execution.device.describe.readable import readable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from nfuser.compiler.concretize import Questions
    from nfuser.compiler.ir.expr import Argument
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.runtime.planning.plan import Plan

_NONE: Mapping[int, Any] = MappingProxyType({})
_RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
_KINDS: dict[int, tuple[type[Any], str]] = {
    0: (bool, "a bool"),
    1: (int, "an integer"),
    2: (float, "a float"),
    3: (complex, "a complex number"),
}


@node
class DescribedCall:
    """Arrays and numbers by slot; calls with equal keys can follow the same plan."""

    arrays: Mapping[int, Any]
    pointers: Mapping[int, int]
    numbers: Mapping[int, Any]
    key: tuple[Hashable, ...]


def make_call(
    arrays: Mapping[int, Any], numbers: Mapping[int, Any], shaping: Iterable[int]
) -> DescribedCall:
    """Return a call; ``shaping`` are the slots of numbers that reach a shape.

    The arrays are of libraries that nfuser knows.
    """
    pointers: dict[int, int] = {}
    key: list[Hashable] = []
    for slot, array in arrays.items():
        library = library_of(type(array))
        assert library is not None
        pointers[slot], own = address_and_key(library, array)
        key.append(own)
    key += [numbers[slot] for slot in shaping]
    return DescribedCall(arrays, pointers, numbers, tuple(key))


def as_array(item: Any, what: str) -> Any:
    """Return ``item`` as an array that nfuser knows; ``what`` names it in errors."""
    if isinstance(item, np.generic):  # NumPy's own form of a 0-d array
        return np.asarray(item)
    if library_of(type(item)) is None:
        describe(item, what)
        raise AssertionError(item)
    return item


def as_read(array: Any) -> Any:
    """Return ``array``, or its copy where no kernel can read it as it lies."""
    library = library_of(type(array))
    assert library is not None
    return readable(library, array)


def describe_call(
    call: DescribedCall, name: Callable[[int], str]
) -> dict[int, Descriptor]:
    """Return what the arrays are, by slot."""
    return {slot: describe(array, name(slot)) for slot, array in call.arrays.items()}


def run_call(
    plan: Plan, call: DescribedCall, ready: Mapping[int, Any] = _NONE
) -> list[Any]:
    """Return the outputs of ``call``, which has the form that ``plan`` was made for.

    Those in ``ready``, by number, are written where they lie.
    """
    given = {
        plan.inputs[slot]: (array, call.pointers[slot])
        for slot, array in call.arrays.items()
    }
    library: Library = plan.place.library
    for number, array in ready.items():
        slot = plan.program.outputs[number]
        given[slot] = array, pointer_reader(library)(array)
    scalars = call_symbols(plan, call.numbers) if call.numbers else {}
    outputs, stream = plan.evaluator(given, call.numbers, scalars)
    return [
        array if k in ready else finish(library, array, stream=stream)
        for k, array in enumerate(outputs)
    ]


def call_symbols(plan: Plan, numbers: Mapping[int, Any]) -> dict[sc.Scalar, int]:
    """Return the value of every size and integer argument of a call."""
    return symbols_of({s: slot.shape for s, slot in plan.inputs.items()}, numbers)


def symbols_of(
    shapes: Mapping[int, tuple[int, ...]], numbers: Mapping[int, Any]
) -> dict[sc.Scalar, int]:
    """Return the value of every size and integer, from shapes and numbers by slot."""
    values: dict[sc.Scalar, int] = {}
    for slot, shape in shapes.items():
        for axis, extent in enumerate(shape):
            values[scalar_symbols.size(slot, axis)] = int(extent)
    for slot, number in numbers.items():
        if is_integer(number):
            values[scalar_symbols.scalar_input(slot)] = int(number)
    return values


def is_integer(number: Any) -> bool:
    """Tell whether a number of a call is an integer of Python or of NumPy."""
    return type(number) is int or isinstance(number, np.integer)


def count_inputs(fusion: Fusion) -> int:
    """Return how many inputs a fusion has, arrays and numbers, by their slots."""
    symbols = scalar_walk.symbols(structure(fusion).scalars)
    integers = (s.slot for s in symbols if isinstance(s, sc.ScalarInput))
    arguments = (argument.slot for argument in fusion.arguments)
    return 1 + max((-1, *arguments, *integers))


class InputReader:
    """Inputs of a fusion that comes without a function: what its arguments say."""

    def __init__(self, fusion: Fusion, asked: Questions) -> None:
        self._fusion = fusion
        self._asked = asked

    @cached_property
    def _arguments(self) -> dict[int, Argument]:
        found: dict[int, Argument] = {}
        for argument in self._fusion.arguments:
            found.setdefault(argument.slot, argument)
        return found

    @cached_property
    def _shaping(self) -> tuple[int, ...]:
        return tuple(sorted(s.slot for s in self._asked.integers))

    @cached_property
    def _count(self) -> int:
        return count_inputs(self._fusion)

    def read(self, inputs: Sequence[Any]) -> DescribedCall:
        """Return the call with these inputs; what they are is checked in ``check``."""
        given, numbers = self.sorted(inputs)
        arrays = {slot: as_array(a, f"input {slot}") for slot, a in given.items()}
        return make_call(arrays, numbers, self._shaping)

    def sorted(self, inputs: Sequence[Any]) -> tuple[dict[int, Any], dict[int, Any]]:
        """Return the inputs that are arrays, not looked at, and the numbers."""
        if len(inputs) != self._count:
            message = f"run: expected {self._count} inputs, found {len(inputs)}"
            raise ArgumentError(message)
        arrays: dict[int, Any] = {}
        numbers: dict[int, Any] = {}
        for slot, item in enumerate(inputs):
            argument = self._arguments.get(slot)
            if argument is None or argument.by_value:
                numbers[slot] = self._number(slot, item, argument)
            else:
                arrays[slot] = item
        return arrays, numbers

    def _number(self, slot: int, item: Any, argument: Argument | None) -> Any:
        rank = 1  # a slot without argument: an integer that shapes are made of
        if argument is not None:
            kind = argument.result.dtype.kind
            rank = 3 if argument.part.value else _RANKS[kind]
        number: Any = item.item() if hasattr(item, "item") else item
        fits = (k for k, (kind, _) in _KINDS.items() if isinstance(number, kind))
        given = next(fits, len(_KINDS))
        make, wanted = _KINDS[rank]
        if given > rank:
            message = f"input {slot}: expected {wanted}, found {type(item).__name__}"
            raise ArgumentError(message)
        if argument is not None and argument.result.dtype.is_integer:
            check_fits(int(number), argument.result.dtype, f"input {slot}")
        return make(number)

    def check(self, described: Mapping[int, Descriptor]) -> None:
        """Refuse arrays of other dtypes or ranks than the arguments have."""
        for slot, d in described.items():
            argument = self._arguments[slot]
            if len(d.shape) != argument.result.ndim:
                message = (
                    f"input {slot}: expected {argument.result.ndim} axes, found an "
                    f"array of shape {d.shape}"
                )
                raise ShapeError(message)
            whole = not argument.part.value
            wanted = argument.result.dtype
            if (d.dtype if whole else d.dtype.real) is not wanted:
                message = f"input {slot}: expected {wanted}, found {d.dtype}"
                raise DTypeError(message)
            self._check_sizes(slot, d)

    def _check_sizes(self, slot: int, d: Descriptor) -> None:
        extents = self._arguments[slot].result.shape
        for axis, (extent, found) in enumerate(zip(extents, d.shape, strict=True)):
            if isinstance(extent, sc.Const) and extent.value != found:
                message = (
                    f"input {slot}: expected size {extent.value} along axis {axis}, "
                    f"found an array of shape {d.shape}"
                )
                raise ShapeError(message)
