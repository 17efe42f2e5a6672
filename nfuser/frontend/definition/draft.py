# SPDX-License-Identifier: Apache-2.0
"""What a definition writes into: the builder, the inputs, the record of all calls."""

# An operation of the table takes and gives what its name says; it has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, get_args

import numpy as np

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import FOLDING, Argument, Pointwise, results
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar import is_natural
from nfuser.compiler.ir.tensor import SourceLine, TensorView
from nfuser.compiler.trace.source_line import current_line
from nfuser.errors import ArgumentError, DTypeError, NfuserError, ShapeError
from nfuser.execution.runtime.call import count_inputs
from nfuser.frontend.definition.execution.hosted import Host, is_fixed, worked_out
from nfuser.frontend.definition.execution.trie import handed, record_key
from nfuser.frontend.definition.inputs import DerivedInput, NumberInput
from nfuser.frontend.definition.types import (
    CallRecord,
    DataType,
    Handle,
    Scalar,
    Tensor,
    data_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.frontend.definition.execution.hosted import Number
    from nfuser.frontend.definition.execution.trie import TrieNode
    from nfuser.frontend.definition.inputs import Input
    from nfuser.frontend.definition.operations.stored import Float8

INTEGERS: tuple[type, ...] = get_args(sc.Scalar)
_NUMBERS = (bool, int, float, complex, np.generic)
_KINDS: dict[str, Any] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


@value
class Requirement:
    """A run-time integer must be natural; each call checks it."""

    scalar: sc.Scalar
    message: str


# What moves elements, whatever they are, and what reads or writes bytes as floats.
MOVES = frozenset(
    f"ops.{name}"
    for name in (
        *("set", "segment_set", "reshape", "permute", "slice", "squeeze", "broadcast"),
        *("broadcast_in_dim", "expand", "cat", "stack", "select", "index_select"),
        *("gather", "take", "take_along_axis", "flatten", "expand_dims", "flip"),
        *("moveaxis", "swapaxes", "matrix_transpose", "roll", "tile", "repeat"),
        *("split", "array_split", "unstack", "hstack", "vstack", "dstack"),
        *("column_stack", "stride_order", "atleast_1d", "atleast_2d", "atleast_3d"),
    )
)
_TAKE_BYTES = frozenset({"ops.cast", "ops.size", "ops.shape", "add_output"})


class Draft:
    """A definition in the making.

    ``table`` maps what can be recorded (``ops.add``, ``define_tensor``) to functions of
    the draft and the arguments. As long as the calls are those of an earlier
    definition, the draft follows it at ``node`` of the tree and nothing is built.
    """

    def __init__(
        self, table: Mapping[str, Callable[..., Any]], node: TrieNode[Any] | None
    ):
        self.table = table
        self.node = node
        self.builder = ops.Builder(name="definition")
        self.inputs: list[Input] = []
        self.outputs: list[TensorView] = []
        self.records: list[CallRecord] = []
        self.requirements: dict[Requirement, None] = {}
        self.aliases: dict[
            int, int
        ] = {}  # slots of inputs by output, written at the end
        self.formats: dict[TensorView, Float8] = {}  # of bytes that are no numbers
        self.host = Host()
        self._sizes: dict[TensorView, sc.Scalar] = {}  # integers that calls work out
        self.is_open = True
        self.doing = ""  # what is being added, as errors name it
        self._handles = 0
        self._own: dict[str, Any] = {}  # what handles mean that an earlier one gave

    def call(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Apply operation ``name``, record it, and return handles of its results."""
        with self.at_users_line(f"fd.ops.{name}"):
            return self.perform(f"ops.{name}", args, options)

    def perform(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Do what ``name`` does, or find it done; record it and return its handles."""
        copied = tuple(_copied(x) for x in args)
        named = {key: _copied(x) for key, x in options.items()}
        asked = CallRecord(name, copied, named, None, self.builder.source)
        if (found := self._follow(asked)) is not None:
            self.node = found
            result = handed(found.result, self)
            self._handles += len(list(handles(result)))
        else:
            self.write()
            result = self._made(name, args, options)
        self.records.append(replace(asked, result=result))
        return result

    def _follow(self, asked: CallRecord) -> TrieNode[Any] | None:
        if self.node is None or any(x.draft is not self for x in handles(asked)):
            return None
        key = record_key(asked)
        return None if key is None else self.node.children.get(key)

    def _made(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        function, self.doing = self.table[name], f"fd.{name}"
        try:
            inspect.signature(function).bind(self, *args, **options)
        except TypeError as error:
            message = f"fd.{name}: {error}"
            raise ArgumentError(message) from None
        form = self._format_moved(name, args, options)
        made = function(self, *args, **options)
        if form is not None:
            self.formats |= dict.fromkeys(_tensors(made), form)
        return self.wrap(made)

    def _format_moved(
        self, name: str, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Float8 | None:
        """Return what the bytes are that a call moves; refuse to compute with them."""
        first, *rest = args or tuple(options.values()) or (None,)
        others = (rest, options if args else ())
        if not _stored(args, options) or name in _TAKE_BYTES:
            return None
        kinds = {getattr(x, "stored", None) for x in handles(first)}
        if name not in MOVES or len(kinds) > 1 or _stored(*others):
            message = (
                f"write fd.ops.cast(x, DataType.Float) first: {self.doing} does not "
                f"compute in 8-bit floats, found {_stored(args, options)[0].dtype}"
            )
            raise DTypeError(message)
        return kinds.pop()

    def write(self) -> None:
        """Build what was followed so far; from now on nothing is followed."""
        if self.node is None:
            return
        self.node, here = None, self.builder.source
        self._handles = 0
        for record in self.records:
            self.builder.source = record.source
            made = self._made(record.name, record.args, record.options)
            for old, new in zip(handles(record.result), handles(made), strict=True):
                self._own[old.name] = _meaning(new)
        self.builder.source = here

    def at_users_line(self, what: str) -> AtLine:
        """Note the user's line for new tensors; errors name it and ``what`` is done."""
        return AtLine(self, current_line(), what)

    def refuse(self, message: str) -> NoReturn:
        """Raise an error that names the user's line."""
        raise ArgumentError(f"{message}{place(current_line())}")

    def check_open(self, line: SourceLine | None = None) -> None:
        """Refuse to change a definition that may have run already."""
        if not self.is_open:
            message = (
                "the definition is complete, its block was left; begin another "
                f"FusionDefinition{place(line)}"
            )
            raise ArgumentError(message)

    @property
    def place(self) -> str:
        """The lines that name the user's line in a message."""
        return place(self.builder.source)

    # -- between handles and the IR ------------------------------------------

    def wrap(self, found: Any) -> Any:
        """Return handles for what an operation gave."""
        if found is None:
            return None
        if isinstance(found, tuple | list):
            return type(found)(self.wrap(x) for x in found)
        if isinstance(found, TensorView) and found not in self.builder.weak:
            return Tensor(self, found, self._name("T"), self.formats.get(found))
        return Scalar(self, found, self._name("S"))

    def _name(self, letter: str) -> str:
        self._handles += 1
        return f"{letter}{self._handles - 1}"

    def next_name(self, letter: str) -> str:
        """Return the name that the next handle gets."""
        return f"{letter}{self._handles}"

    def taken(self, item: Any) -> Any:
        """Return what verbs take for an argument: handles opened, dtypes converted."""
        if isinstance(item, Tensor | Scalar):
            return self.operand(item)
        if isinstance(item, DataType):
            return item.value
        if isinstance(item, list | tuple):
            return type(item)(self.taken(x) for x in item)
        return item

    def operand(self, item: Any) -> Any:
        """Return what verbs take for a handle or a number."""
        if isinstance(item, Tensor | Scalar):
            self._check_own(item)
            return self._own.get(item.name, _meaning(item))
        if isinstance(item, _NUMBERS):
            return item
        message = (
            f"expected a tensor or scalar of this definition, or a number; found "
            f"{type(item).__name__}. Arrays are passed to fd.execute: make an input "
            "with fd.define_tensor or fd.from_array"
        )
        raise ArgumentError(message)

    def tensor(self, item: Any) -> TensorView:
        """Return ``item`` as a tensor."""
        return self.builder.tensor(self.operand(item))

    def held_by(self, dtype: DType, item: Any, what: str) -> Any:
        """Return ``item`` as an operand; refuse one that ``dtype`` cannot hold."""
        number = self.operand(item)
        kind = self.builder.promote(number)
        if _RANKS[kind.kind] > _RANKS[dtype.kind]:
            message = (
                f"write fd.ops.cast(..., {data_type(kind)}) for the tensor, or pass "
                f"another number: {what} is a number that {data_type(dtype)} holds, "
                f"found one of {data_type(kind)}"
            )
            raise DTypeError(message)
        return number

    def _check_own(self, item: Handle) -> None:
        if item.draft is not self:
            message = f"{item!r} belongs to another FusionDefinition"
            raise ArgumentError(message)

    def same_kind(self, found: TensorView, taken: Sequence[Any]) -> TensorView:
        """Make ``found`` weak if all operands were: of numbers alone comes a number."""
        kinds = [self.builder.type_of(x) for x in taken]
        if not any(isinstance(kind, DType) for kind in kinds):
            self.builder.weak[found] = _KINDS[found.dtype.kind]
        return found

    # -- extents -------------------------------------------------------------

    def integer(self, item: Any, what: str = "an extent") -> sc.Scalar:
        """Return an integer, or a scalar that is known before the kernels run."""
        number = self.operand(item) if isinstance(item, Tensor | Scalar) else item
        if isinstance(number, INTEGERS):
            return number
        if self.builder.weak.get(number) is int:
            known = self.host.number(number)
            if known is not None:
                return self._worked_out(number, known)
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            message = (
                f"{what} is an integer, or a scalar that is an integer input or is "
                "computed of sizes, inputs and numbers: cast it to Int if need be; "
                f"found {item!r}"
            )
            raise ArgumentError(message)
        return sc.const(number.__index__())

    def _worked_out(self, view: TensorView, known: Number) -> sc.Scalar:
        """Return an integer that the host works out, now or in each call."""
        if is_fixed(known):
            return sc.const(worked_out(known, {}, {}))
        if view not in self._sizes:
            self._sizes[view] = scalar_symbols.scalar_input(len(self.inputs))
            self.inputs.append(DerivedInput(known, self.place))
        return self._sizes[view]

    def extent(self, item: Any) -> sc.Scalar:
        """Return an integer or a scalar as an extent; it must be natural."""
        number = self.integer(item)
        self.require_natural(number, "negative dimensions are not allowed: {}")
        return number

    def require_natural(self, number: sc.Scalar, message: str) -> None:
        """Refuse a negative ``number``, now or in a call; ``{}`` is its value."""
        if isinstance(number, sc.Const):
            if number.value < 0:
                raise ShapeError(message.replace("{}", str(number.value), 1))
        elif not is_natural(number):
            text = f"{self.doing}: {message}{self.place}"
            self.requirements[Requirement(number, text)] = None

    def shape_text(self, x: TensorView) -> str:
        """Render a shape for a message, unknown sizes as question marks."""
        return self.builder.shape_text(x.shape)

    # -- the end -------------------------------------------------------------

    def add_output(self, item: Any, written: int | None = None) -> None:
        """Make ``item`` the next output, which the input in slot ``written`` takes."""
        found = self.tensor(item)
        definition = self.definition(found)
        if written is not None and self._is_copy_of(definition, written):
            return  # it lies there already
        computed = isinstance(definition, (Pointwise, *FOLDING))
        if found in self.outputs or not computed:
            form = self.formats.get(found)
            found = self.builder.point("copy", found)
            if form is not None:
                self.formats[found] = form
        if written is not None:
            self.aliases[len(self.outputs)] = written
        self.outputs.append(found)

    def definition(self, x: TensorView) -> Expr:
        """Return the expression that gives ``x``."""
        return next(e for e in reversed(self.builder.exprs) if x in results(e))

    def _is_copy_of(self, expr: Expr, slot: int) -> bool:
        """Tell whether ``expr`` gives the input in ``slot``, or copies of it."""
        while isinstance(expr, Pointwise) and expr.op.name == "copy":
            expr = self.definition(expr.operands[0])
        return isinstance(expr, Argument) and expr.slot == slot and not expr.part.value

    def close(self) -> Fusion:
        """Return the fusion; nothing can be added from now on."""
        self.is_open = False
        fusion = self.builder.fusion(self.outputs)
        numbers = [k for k, x in enumerate(self.inputs) if isinstance(x, NumberInput)]
        if not numbers or numbers[-1] < count_inputs(fusion):
            return fusion
        # An integer is there through what reads it; inputs are counted to the last.
        self.builder.argument(numbers[-1], 0, DType.I64, by_value=True)
        return self.builder.fusion(self.outputs)


class AtLine:
    """While it is entered, a draft is at one line of the user's."""

    # Not a generator: its frames would stand between the user's line and ours.
    def __init__(self, draft: Draft, line: SourceLine | None, what: str) -> None:
        self._draft = draft
        self._line = line
        self._what = what

    def __enter__(self) -> None:
        self._draft.builder.source = self._line
        self._draft.check_open(self._line)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, NfuserError):
            # The verb may have another name than the operation, or the same.
            text = str(error).removeprefix(f"{self._what.rpartition('.')[2]}: ")
            named = text if text.startswith("fd.") else f"{self._what}: {text}"
            error.args = (f"{named}{place(self._line)}", *error.args[1:])


def handles(item: Any) -> Iterator[Handle]:
    """Yield the handles in a record, or in what a call took or gave."""
    if isinstance(item, Tensor | Scalar):
        yield item
    elif isinstance(item, CallRecord):
        yield from handles((item.args, tuple(item.options.values())))
    elif isinstance(item, list | tuple):
        for x in item:
            yield from handles(x)


def _stored(*items: Any) -> list[Tensor]:
    """Return the tensors among arguments whose bytes are no numbers."""
    listed = (list(x.values()) if isinstance(x, dict) else x for x in items)
    found = (x for item in listed for x in handles(item))
    return [x for x in found if isinstance(x, Tensor) and x.stored is not None]


def _tensors(made: Any) -> list[TensorView]:
    """Return the tensors that an operation gave."""
    if isinstance(made, TensorView):
        return [made]
    listed = made if isinstance(made, list | tuple) else ()
    return [x for item in listed for x in _tensors(item)]


def _meaning(item: Handle) -> Any:
    return item.view if isinstance(item, Tensor) else item.value


def _copied(x: Any) -> Any:
    return list(x) if isinstance(x, list) else x


def place(line: SourceLine | None) -> str:
    """Return the lines that name the user's line in a message."""
    return "" if line is None else f"\n  at {line}\n    {line.text}"
