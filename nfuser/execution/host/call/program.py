# SPDX-License-Identifier: Apache-2.0
"""Host programs: what runs when a fused call runs.

A program is a list of statements over slots. Slots are tensors: the caller's arrays,
outputs, and what one kernel leaves for another. Everything that depends on shapes was
decided when the program was built for one call's shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nfuser.codegen.printers.source import Source
    from nfuser.compiler.ir.expr import ScatterOp
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import SourceLine
    from nfuser.execution.device.cpu.kernel import CpuKernel
    from nfuser.execution.host.ir.statements import ForLoop, Order, Statement


@node
class Slot:
    """A place for an array while the program runs."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    dtype: DType


@node
class SlotPart:
    """The address of a slot's elements; the imaginary part lies one element on.

    In the body of a loop it moves by ``step`` bytes in each iteration, where that is
    not 0; ``depth`` counts the loops around that one.
    """

    slot: Slot
    offset: int = 0  # bytes
    step: int = 0  # bytes
    depth: int = 0

    def __str__(self) -> str:
        part = (".imag" if self.offset else ".real") * self.slot.dtype.is_complex
        return self.slot.name + part


@node
class ByValue:
    """The number that the caller passed as argument ``slot``, or a part of it."""

    slot: int
    dtype: DType
    part: str = ""


@node
class HostScalar:
    """A number; it is evaluated anew where it depends on an integer passed."""

    scalar: Scalar
    value: float
    is_dynamic: bool
    dtype: DType = DType.I64


@node
class Turn:
    """How many iterations of a loop came before; ``depth`` loops are around it."""

    depth: int


Argument: TypeAlias = SlotPart | ByValue | HostScalar | Turn


@node
class AllocateSlot:
    """Make the array of an output or of a value between kernels."""

    slot: Slot


@node
class Clear:
    """Set a workspace to zero bytes."""

    slot: Slot


@node
class LaunchKernel:
    """Run a kernel; blocks of a cooperative one wait for each other.

    One that ``is_copy`` leaves in its second argument all that is in the first.
    """

    source: Source
    executable: object
    grid: tuple[int, int]
    block: tuple[int, int]
    arguments: tuple[Argument, ...]
    cost: int
    is_cooperative: bool = False
    shared_bytes: int = 0
    phase: int = 0  # of a kernel that is launched several times
    is_copy: bool = False

    def __repr__(self) -> str:
        return f"<launch {self.source.entry} grid={self.grid} block={self.block}>"


@node
class ProgramNumber:
    """A number that is part of the program."""

    value: bool | float
    dtype: DType

    def __str__(self) -> str:
        return f"{self.value}"


@node
class ViewOf:
    """How the library makes a view: ``slice`` has start, stop and step of each axis.

    ``select`` has an axis and the place along it.
    """

    how: Literal["permute", "reshape", "expand", "slice", "select"]
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return f".{self.how}({', '.join(map(str, self.numbers))})"


@node
class Operand:
    """What the library reads, through views: the elements of a part, or a number."""

    part: SlotPart | ProgramNumber
    views: tuple[ViewOf, ...] = ()

    @property
    def dtype(self) -> DType:
        """Of what element type it is; parts of complex numbers are real."""
        part = self.part
        return part.dtype if isinstance(part, ProgramNumber) else part.slot.dtype

    def __str__(self) -> str:
        return "".join([str(self.part), *map(str, self.views)])


class ScatterKernels(NamedTuple):
    """What compiles each of the loops, or finds it on disk."""

    each: Callable[[], CpuKernel]
    by_gaps: Callable[[], CpuKernel]
    apart: Callable[[], CpuKernel]
    runs: Callable[[], CpuKernel]
    own: Callable[[], CpuKernel]
    columns: Callable[[], CpuKernel]
    look: Callable[[], CpuKernel]
    gaps: Callable[[], CpuKernel]


@node
class Scattered:
    """What a scatter does; ``kernels`` gives the loops that do it."""

    op: ScatterOp
    lead: int
    kernels: Callable[[], ScatterKernels]
    complaint: str = ""


@node
class LibraryFunction:
    """How a function of the library is called, and where its results go.

    ``given`` are the dtypes of what it takes: two operands are one that is complex.
    Each result goes to a part, or to two if it is complex; None if nobody reads it.
    ``shape`` is that of the first.
    """

    given: tuple[DType, ...]
    results: tuple[tuple[SlotPart | None, ...], ...]
    options: tuple[tuple[str, object], ...]
    shape: tuple[int, ...] = ()

    @property
    def parts(self) -> tuple[SlotPart, ...]:
        """Where results go, in order."""
        return tuple(p for group in self.results for p in group if p is not None)


@node
class LibraryOperation:
    """An elementwise function that is computed in ``types``, or a fold of ``axes``.

    Its result is what ``views`` make of the slot. Complex operands are whole.
    """

    types: tuple[DType, ...] = ()
    axes: tuple[int, ...] = ()
    views: tuple[ViewOf, ...] = ()


@node
class CallLibrary:
    """Let the array library write what its function ``name`` gives into ``result``.

    Of a complex result it is the real part, or the imaginary one, which lies ``offset``
    bytes on. ``axis``, ``stable`` and ``kth`` are of those that sort, ``scattered``
    is of a scatter: what it does, and how to get the kernels that do it on a CPU. An
    ``operation`` is done by the library of the arrays themselves.
    """

    name: str
    operands: tuple[Operand, ...]
    result: Slot
    line: SourceLine | None = None
    axis: int = -1
    stable: bool = False
    kth: tuple[int, ...] = ()
    scattered: Scattered | None = None
    offset: int = 0
    function: LibraryFunction | None = None
    operation: LibraryOperation | None = None

    @property
    def note(self) -> str:
        """The end of an error message that shows the user's line."""
        return "" if self.line is None else self.line.note

    def __repr__(self) -> str:
        return f"<{self.name} {' '.join(map(str, self.operands))}>"


@node
class FreeSlot:
    """Let go of an array that no later statement reads."""

    slot: Slot


@node
class Repeat:
    """Run ``body`` again and again, ``trips`` times or as long as ``flag`` is true.

    After each iteration the two arrays of each of ``swaps`` change places. ``depth``
    loops are around this one. Nothing is allocated in between. If something fails, the
    first of each of ``homes`` is copied to the other: to an array of the caller's, or
    to what a loop around has made of it.
    """

    body: tuple[HostStmt, ...]
    swaps: tuple[tuple[Slot, Slot], ...]
    trips: HostScalar | None
    flag: Slot | None
    depth: int
    line: SourceLine | None = None
    homes: tuple[tuple[Slot, SlotPart], ...] = ()


@node
class ViewSlot:
    """Let a slot be what the library makes of another one by views."""

    source: Slot
    slot: Slot
    views: tuple[ViewOf, ...]


@node
class CallPython:
    """Let ``call`` compute results, as a function of the user's or an exchange does.

    It is given the communicator of the run, and what it reads: arrays, or else what
    the operands are. Its results get memory here.
    """

    call: Callable[[Any, list[Any]], Sequence[Any]]
    operands: tuple[object, ...]
    results: tuple[Slot, ...]


@node
class OrderStreams:
    """Do what a host program says of streams; ``number`` is that of its stream.

    A parallel loop begins, or it ``ends``.
    """

    stmt: Order | ForLoop
    number: int | None = None
    ends: bool = False


@node
class Begin:
    """What follows is what ``stmt`` of a host program does: a fault names it."""

    stmt: Statement


@node
class End:
    """All is done of ``stmt``, for those who want to know how long it took."""

    stmt: Statement


Mark: TypeAlias = Begin | End | OrderStreams
HostStmt: TypeAlias = (
    AllocateSlot
    | Clear
    | LaunchKernel
    | CallLibrary
    | FreeSlot
    | Repeat
    | ViewSlot
    | CallPython
    | Mark
)


def slots_of(stmt: HostStmt) -> tuple[Slot, ...]:
    """Return the slots that ``stmt`` names."""
    match stmt:
        case Repeat(body, swaps, homes=homes):
            named = (*(s for pair in swaps for s in pair),)
            named += (*(s for own, home in homes for s in (own, home.slot)),)
            return (*named, *(s for inner in body for s in slots_of(inner)))
        case LaunchKernel():
            return tuple(a.slot for a in stmt.arguments if isinstance(a, SlotPart))
        case CallLibrary(_, operands, result, function=function):
            parts = (x.part for x in operands)
            read = (p.slot for p in parts if isinstance(p, SlotPart))
            if function is None:
                return (*read, result)
            return (*read, *(p.slot for p in function.parts))
        case CallPython(_, operands, results):
            parts = (x.part for x in operands if isinstance(x, Operand))
            return (*(p.slot for p in parts if isinstance(p, SlotPart)), *results)
        case ViewSlot(source, slot):
            return source, slot
        case Begin() | End() | OrderStreams():
            return ()
        case _:
            return (stmt.slot,)


@node
class CallProgram:
    """Statements in order; outputs are returned.

    Sizes are numbers here: it is the form of a program for calls of one exact form.
    """

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    body: tuple[HostStmt, ...]

    @property
    def launches(self) -> tuple[LaunchKernel, ...]:
        """The kernels that run."""
        return tuple(_launches(self.body))


def _launches(body: Sequence[HostStmt]) -> Iterator[LaunchKernel]:
    for stmt in body:
        if isinstance(stmt, Repeat):
            yield from _launches(stmt.body)
        elif isinstance(stmt, LaunchKernel) and not stmt.phase:
            yield stmt


def text(program: CallProgram) -> str:
    """Render ``program``."""
    lines = [f"program({', '.join(s.name for s in program.inputs)}):"]
    lines += _lines(program.body, "  ")
    lines.append(f"  return {', '.join(s.name for s in program.outputs)}")
    return "\n".join(lines) + "\n"


def _lines(body: Sequence[HostStmt], indent: str) -> list[str]:
    found: list[str] = []
    for stmt in body:
        if not isinstance(stmt, Begin | End):
            found.append(f"{indent}{line(stmt)}")
        if isinstance(stmt, Repeat):
            found += _lines(stmt.body, f"{indent}  ")
    return found


def line(stmt: HostStmt) -> str:
    """Render a statement; of a loop, what stands above its body."""
    match stmt:
        case Repeat(_, swaps, trips, flag):
            until = [] if trips is None else [f"{trips.value} times"]
            until += [] if flag is None else [f"while {flag.name}"]
            turns = ", ".join(f"{a.name} and {b.name}" for a, b in swaps)
            swapped = f", swapping {turns}" if swaps else ""
            return f"repeat {' and '.join(until)}{swapped}:"
        case AllocateSlot(slot):
            return f"{slot.name} = allocate {slot.dtype}{list(slot.shape)}"
        case Clear(slot):
            return f"clear {slot.name}"
        case FreeSlot(slot):
            return f"free {slot.name}"
        case CallLibrary(name, operands, result):
            return f"{result.name} = {name}({', '.join(map(str, operands))})"
        case LaunchKernel(source, _, grid, block, arguments):
            parts = (a.slot.name for a in arguments if isinstance(a, SlotPart))
            size = f"grid={grid}, block={block}"
            return f"launch {source.entry}({', '.join(parts)}) {size}"
        case ViewSlot(source, slot, views):
            return f"{slot.name} = {source.name}{''.join(map(str, views))}"
        case CallPython(_, operands, results):
            made = ", ".join(x.name for x in results)
            return f"{made} = python({', '.join(map(str, operands))})"
        case OrderStreams() | Begin() | End():
            return type(stmt.stmt).__name__
