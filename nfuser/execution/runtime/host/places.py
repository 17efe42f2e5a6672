# SPDX-License-Identifier: Apache-2.0
"""Where the tensors of a program lie while it is linked: in which memory, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.execution.host.call.program as flat
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import MutationError, ShapeError
from nfuser.execution.device.describe.libraries import (
    Descriptor,
    Device,
    Library,
    c_strides,
)
from nfuser.execution.host.ir.host_ir import owners
from nfuser.execution.runtime.host.locations import Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.runtime.place import Place
    from nfuser.execution.runtime.planning.plan import Plan


@node
class Linking:
    """What a program is linked for.

    ``place`` says where kernels run, ``plan`` how a fusion does, by a key of all that
    it is given, ``call`` runs what is no fusion, and ``fault``
    names the statement of an error. Operations whose bits no library may choose are
    kernels if it ``compiles`` them. Inputs that are written ``meet`` others in memory.
    On a device with streams of the program's it is ``ordered``: each has memory of its
    own. One that is ``timed`` says where each statement ends. Where torch
    ``records`` what functions of the user's do, launches are calls, which look for it.
    Where a line would be too long, it ``repeats`` loops.
    """

    library: Library
    device: Device
    place: Callable[[], Place]
    plan: Callable[..., tuple[Plan, dict[int, Any]]]
    call: Callable[[object, list[Any]], list[Any]]
    fault: Callable[[st.Statement, Exception], Exception]
    compiles: bool = True
    meet: bool = False
    ordered: bool = False
    timed: bool = False
    records: bool = False
    repeats: bool = False


class Places:
    """Where tensors lie; statements that make memory, and copy, are added to a body."""

    def __init__(
        self,
        program: HostProgram,
        linking: Linking,
        arrays: Mapping[TensorView, Descriptor],
        values: Mapping[Scalar, int],
    ) -> None:
        self.linking = linking
        self.values = dict(values)  # of scalars that are known
        self.moves: dict[Scalar, bool] = {}  # whether one depends on a loop
        self._moved: list[Scalar] = []  # those known that do
        self.count: int = 0  # of statements met
        self.is_loose = False  # kernels take arrays that begin at any element
        self.owner = owners(program.aliases)
        self.body: list[flat.HostStmt] = []
        self.locations: dict[TensorView, Location] = {}
        self.skew: dict[flat.Slot, int] = {}  # of the caller's: address modulo 16
        for number, (tensor, d) in enumerate(arrays.items()):
            slot = flat.Slot(f"in{number}", d.shape, d.strides, d.dtype)
            self.skew[slot] = d.pointer & 15
            self.locations[tensor] = Location.of(slot)

    def key(self, tensor: TensorView) -> TensorView:
        """Return the tensor whose memory one uses."""
        return self.owner.get(tensor, tensor)

    def found(self, tensor: TensorView) -> Location:
        """Return where a tensor lies."""
        return self.locations[self.key(tensor)]

    def name(self, stmt: st.View, location: Location) -> None:
        """Let the result lie there; copy it if it has memory of its own."""
        check_shape(location.shape, self.shape(stmt.result))
        target = self.locations.setdefault(self.key(stmt.result), location)
        if target is not location:
            self.copy(location, target)

    def made(self, tensor: TensorView) -> Location:
        """Return new memory for a tensor."""
        key = self.key(tensor)
        self.locations[key] = made = self.new(self.shape(tensor), tensor.dtype)
        self.body.append(flat.AllocateSlot(made.slot))
        return made

    def new(self, shape: tuple[int, ...], dtype: DType) -> Location:
        """Return a place in memory that nobody has yet."""
        if any(n < 0 for n in shape):
            message = "negative dimensions are not allowed"
            raise ValueError(message)
        slot = flat.Slot(f"t{self.count - 1}", shape, c_strides(shape), dtype)
        return Location.of(slot)

    def free(self, tensor: TensorView) -> None:
        """Forget what lies in the memory of a tensor."""
        if self.key(tensor) in self.locations:
            slot = self.found(tensor).slot
            self.forget([t for t, x in self.locations.items() if x.slot is slot])

    def forget(self, tensors: Iterable[TensorView]) -> None:
        """Forget where tensors lie."""
        for tensor in tensors:
            self.locations.pop(tensor, None)

    def shape(self, tensor: TensorView) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return tuple(self.numbers(tensor.shape))

    def numbers(self, scalars: Sequence[Scalar]) -> list[int]:
        """Return what scalars are."""
        return [self._number(x) for x in scalars]

    def _number(self, x: Scalar) -> int:
        if isinstance(x, Const):
            return x.value
        if (known := self.values.get(x)) is None:
            known = self.values[x] = scalar_walk.evaluate(x, self.values)
            if x not in self.moves:
                self.moves[x] = bool(scalar_walk.loops_in(x))
            if self.moves[x]:
                self._moved.append(x)
        return known

    def turn(self, index: Scalar, value: int) -> None:
        """Let the index of a loop be another one, and all that depends on it."""
        for x in self._moved:
            del self.values[x]
        self._moved.clear()
        self.values[index] = value

    def described(self, location: Location) -> Descriptor:
        """Return what a kernel needs to know of an array that lies there."""
        slot, linking = location.slot, self.linking
        pointer = (self.skew.get(slot, 0) + location.offset) & 15
        pointer = slot.dtype.itemsize & 15 if self.is_loose else pointer
        form = slot.dtype, location.shape, location.strides, pointer
        return Descriptor(linking.library, linking.device, *form, writable=True)

    # -- views ---------------------------------------------------------------

    def view(self, stmt: st.View) -> Location:
        """Return where a view lies: in a copy where no strides can say it."""
        source = self.found(stmt.source)
        match stmt:
            case st.PermuteOp(_, order):
                view = flat.ViewOf("permute", order)
            case st.SliceOp(_, starts, stops, steps):
                first, last = self.numbers(starts), self.numbers(stops)
                spans = zip(first, last, steps, strict=True)
                view = flat.ViewOf("slice", tuple(n for span in spans for n in span))
            case st.ReshapeOp(_, result):
                view = flat.ViewOf("reshape", self.shape(result))
            case st.SelectOp(_, axis, index) | st.AliasSelect(_, axis, index):
                view = flat.ViewOf("select", (axis, *self.numbers([index])))
        if (found := source.viewed(view)) is not None:
            return found
        if isinstance(stmt, st.ReshapeOp) and stmt.shares:
            message = (
                f"an alias was asked for, but {source.shape} cannot be viewed as "
                f"{view.numbers} without a copy; give a contiguous array, or ask for "
                "no alias"
            )
            raise MutationError(message)
        copied = self.copied(source).viewed(view)
        assert copied is not None
        return copied

    def copied(self, source: Location) -> Location:
        """Return a copy in memory of its own."""
        made = self.new(source.shape, source.slot.dtype)
        self.body.append(flat.AllocateSlot(made.slot))
        self.copy(source, made)
        return made

    def copy(self, source: Location, target: Location) -> None:
        """Let the library copy elements, through memory of its own where they meet."""
        if self.meets(target, {source.slot}) and not source.is_at(target):
            source = self.copied(source)
        operation = flat.LibraryOperation(views=target.views)
        read = (source.operand,)
        copy = flat.CallLibrary("copy", read, target.slot, operation=operation)
        self.body.append(copy)

    def operand(self, x: st.Operand) -> Any:
        """Return what a statement reads: where a tensor lies, or a number."""
        if isinstance(x, TensorView):
            return self.found(x)
        if isinstance(x, bool | int | float | complex):
            return x
        return self.numbers([x])[0]

    def is_in_place(self, stmt: st.Compute) -> bool:
        """Tell whether the caller's memory is written that is read in the same places.

        A kernel would have to write beside it.
        """
        target = self.locations.get(self.key(stmt.result))
        if target is None or target.slot not in self.skew:
            return False
        return any(self.found(t).slot is target.slot for t in st.reads(stmt))

    def meets(self, target: Location, used: AbstractSet[flat.Slot]) -> bool:
        """Tell whether what is written may lie in memory that is ``used``."""
        if target.slot in used:
            return True
        given = target.slot in self.skew and self.linking.meet
        return given and not used.isdisjoint(self.skew)


def check_shape(found: tuple[int, ...] | None, wanted: tuple[int, ...] | None) -> None:
    """Refuse an array of another shape, where both are known."""
    if found is not None and wanted is not None and found != wanted:
        message = f"expected an array of shape {wanted}, found {found}"
        raise ShapeError(message)
