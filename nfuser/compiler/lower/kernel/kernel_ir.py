# SPDX-License-Identifier: Apache-2.0
"""Kernel IR: values, statements, one kernel."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.base import node, value
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.ir.scalars.symbols import loop_index
from nfuser.compiler.schedule.nest import Binding

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.scheduled import Schedule, Walk


class Memory(Enum):
    """Where an array lives."""

    LOCAL = "local"  # a thread's own: registers, or the stack of a CPU thread
    SHARED = "shared"  # one for each block of threads
    LANDING = "landing"  # shared, its size given at the launch; all begin at one place


@node
class Buffer:
    """A kernel parameter that points to elements."""

    dtype: DType
    tensor: TensorView | None
    role: str  # "in", "out", "partials", "tickets" or "boxes"


@node
class Array:
    """Elements that live as long as the block or thread."""

    dtype: DType
    size: int
    memory: Memory


@node
class Var:
    """A local variable; its name comes of the tensor it holds, if any."""

    dtype: DType
    tensor: TensorView | None = None


@node
class Number:
    """A literal."""

    value: bool | int | float
    dtype: DType


@node
class IndexValue:
    """An index as a value."""

    scalar: Scalar
    dtype: DType


@node
class Call:
    """A primitive, or an operator, on values."""

    op: str
    operands: tuple[Value, ...]
    dtype: DType


@node
class Element:
    """One element of an array."""

    array: Array
    index: Scalar

    @property
    def dtype(self) -> DType:
        """The dtype of the array."""
        return self.array.dtype


@node
class Load:
    """One element of a buffer, in its compute type."""

    buffer: Buffer
    index: Scalar
    volatile: bool = False

    @property
    def dtype(self) -> DType:
        """The type in which kernels hold the buffer's elements."""
        return self.buffer.dtype.compute


@node
class Shuffle:
    """The value that the thread ``distance`` lanes away (exclusive or) holds."""

    value: Value
    distance: int

    @property
    def dtype(self) -> DType:
        """The dtype of the value."""
        return self.value.dtype


@node
class Receive:
    """What a block puts into ``boxes[index]``, in a cluster in ``turn``, waited for."""

    boxes: Buffer | Array
    index: Scalar
    dtype: DType
    turn: Scalar | None = None


Value: TypeAlias = Var | Number | IndexValue | Call | Element | Load | Shuffle | Receive


@node
class Let:
    """``var = value``; also gives a variable a new value."""

    var: Var
    value: Value


@node
class SetElement:
    """``array[index] = value``."""

    array: Array
    index: Scalar
    value: Value


@node
class Store:
    """Write one element of a buffer."""

    buffer: Buffer
    index: Scalar
    value: Value


@node
class LoadPacket:
    """Read ``width`` neighbours into ``array[at:]`` at once, or out of two packets."""

    array: Array
    at: Scalar
    buffer: Buffer
    index: Scalar
    width: int
    across: bool = False


@node
class CopyPacket:
    """Begin to copy ``width`` neighbours of a buffer to ``array[at:]``, as stored."""

    array: Array
    at: Scalar
    buffer: Buffer
    index: Scalar
    width: int


@node
class AwaitCopies:
    """Wait for what this thread began to copy."""


@node
class TakePacket:
    """Read ``width`` neighbours of ``source``, stored elements, into ``array[at:]``."""

    array: Array
    at: Scalar
    source: Array
    index: Scalar
    width: int


@node
class StorePacket:
    """Write ``array[at:]`` to ``width`` neighbours of a buffer at once."""

    buffer: Buffer
    index: Scalar
    array: Array
    at: Scalar
    width: int


@node
class DrawPacket:
    """``array[at:]`` = the random words of ``width`` places from ``place`` on.

    A CPU's packets are whole blocks of words: ``place`` begins one.
    """

    array: Array
    at: Scalar
    place: Value
    key: Value
    call: Value
    width: int


@node
class FindLine:
    """``var`` = how many elements from ``buffer[index]`` on end a line, or ``most``."""

    var: Var
    buffer: Buffer
    index: Scalar
    most: Scalar


@node
class FindFirst:
    """``var`` = which of ``count`` elements from ``source`` on is like ``wanted``.

    It is the first that equals it, or is NaN if that is; ``count`` where there is none.
    """

    var: Var
    source: Load | Element
    count: Scalar
    wanted: Value


@node
class StoreLine:
    """Write a whole array to neighbours of a buffer, past the cache."""

    buffer: Buffer
    index: Scalar
    array: Array


@node
class Fetch:
    """Bring what lies around ``buffer[index]`` to a cache of a level; 1 is nearest."""

    buffer: Buffer
    index: Scalar
    level: int


@node
class Folded:
    """A variable that a loop folds into: what it begins with, and how two become one.

    ``join`` takes two of them in any order and grouping.
    """

    var: Var
    begin: Value
    join: str


@value
class Lane:
    """Marks a loop over neighbours in memory, of which vectors are to be made.

    How it is to ``walk`` through memory, and all that it folds into.
    """

    walk: Walk
    folded: tuple[Folded, ...] = ()


@node
class For:
    """Run ``body`` for index 0, 1, ... below ``stop``; a constant stop is unrolled.

    Of a CPU ``narrow`` asks for vectors full of 32-bit lanes, whatever the loop sums
    in, ``interleave`` for so many vectors at once, where LLVM chooses if that is 0, and
    ``rolled`` that it stays a loop. Where there is a variable ``going``, no body begins
    once that is zero. ``backwards`` is from the last index to the first, on a GPU.
    """

    index: LoopIndex
    stop: Scalar
    body: tuple[Stmt, ...]
    narrow: bool = False
    interleave: int = 0
    rolled: bool = False
    lane: Lane | None = None
    going: Var | None = None
    backwards: bool = False


@node
class If:
    """Run ``body`` where ``condition`` (a value, or a non-zero scalar) holds."""

    condition: Value | Scalar
    body: tuple[Stmt, ...]


@node
class Barrier:
    """Wait for all threads of the block, or cluster; what they wrote there is seen."""

    of_cluster: bool = False


@node
class Publish:
    """Make what this thread wrote seen by other blocks."""


@node
class Post:
    """Put ``value`` into ``boxes[index]``, once in a launch, for other blocks.

    In a cluster it is put into those of ``block``, as of ``turn``, counted from 1.
    """

    boxes: Buffer | Array
    index: Scalar
    value: Value
    block: Scalar | None = None
    turn: Scalar | None = None


@node
class TakeTicket:
    """``var`` = how many blocks came to ``buffer[index]`` before."""

    var: Var
    buffer: Buffer
    index: Scalar


# What each target spells its own way.
OwnStmt: TypeAlias = (
    LoadPacket
    | CopyPacket
    | AwaitCopies
    | TakePacket
    | StorePacket
    | DrawPacket
    | FindLine
    | FindFirst
    | StoreLine
    | Fetch
    | Barrier
    | Publish
    | Post
    | TakeTicket
)
Stmt: TypeAlias = Let | SetElement | Store | For | If | OwnStmt


@node
class Scratch:
    """Memory that a launch needs besides inputs and outputs, in elements."""

    buffer: Buffer
    size: Scalar


BOUND_NAMES = {
    Binding.BLOCK_X: "bx",
    Binding.BLOCK_Y: "by",
    Binding.THREAD_X: "tx",
    Binding.THREAD_Y: "ty",
    Binding.PARALLEL: "row",
}


@node
class LaunchShape:
    """How many blocks and threads run a kernel, or how long the caller's range is.

    A block never has more than ``threads`` threads. At least ``blocks`` blocks fit a
    multiprocessor at once. Where they wait for each other, all of them have to, but for
    those of one ``cluster``, so many along the grid's second axis, which always run
    together. Of a CPU, all pieces of a phase are done before the next phase begins.
    """

    grid: tuple[Scalar, Scalar]
    block: tuple[Scalar, Scalar]
    threads: int
    blocks: int = 0
    is_cooperative: bool = False
    cluster: int = 1
    shared_bytes: int = 0  # for what lands in shared memory
    phases: int = 1


@node
class Kernel:
    """A lowered segment: one device function, or one function over a range."""

    name: str
    scheduled: Schedule
    buffers: tuple[Buffer, ...]
    arrays: tuple[Array, ...]
    values: tuple[Var, ...]  # scalars passed by value
    integers: tuple[tuple[Var, Scalar], ...]  # worked out on the host
    scalars: tuple[Scalar, ...]  # sizes, strides and what the host prepares of them
    bound: tuple[tuple[LoopIndex, str], ...]  # indices that the hardware gives
    body: tuple[Stmt, ...]
    scratch: tuple[Scratch, ...]
    launch: LaunchShape
    wide_index: bool
    loops: int  # the number of the next loop that is made


class LoopCounter:
    """Makes loops for one kernel, each with a number that no other has."""

    def __init__(self, first: int) -> None:
        self.first = first  # the number of the next one

    def make(self, extent: Scalar | int) -> LoopIndex:
        """Return the index of a new loop."""
        self.first += 1
        return loop_index(self.first - 1, extent)


def guarded(condition: Scalar, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return ``body`` under ``condition``; one that is known leaves no branch."""
    if isinstance(condition, Const):
        return body if condition.value else ()
    return (If(condition, body),) if body else ()


def kernel_name(name: str) -> str:
    """Return a name that is no keyword and no primitive's."""
    stem = "".join(c if c.isascii() and c.isalnum() else "_" for c in name).strip("_")
    return f"{stem}_kernel" if stem[:1].isalpha() else "fusion_kernel"
