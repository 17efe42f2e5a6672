# SPDX-License-Identifier: Apache-2.0
"""Loops that read and write elements one by one, as steps that one thread takes.

All that a turn computes is single numbers; arrays are read and assigned to element by
element. Each array that a loop carries has one memory: a step that writes comes after
all that reads the elements as they were before. Loops inside are steps, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from nfuser.compiler.domains.loops.element_steps import (
    ArrayPart,
    Compute,
    Coordinate,
    ElementLoop,
    ElementPlace,
    OneByOne,
    ReadElement,
    Same,
    Step,
    Write,
    is_number,
)
from nfuser.compiler.domains.loops.in_place import (
    ElementLine,
    is_put_back,
    lines_written,
    writes_in_place,
)
from nfuser.compiler.domains.space import Mismatch
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    Argument,
    Assign,
    Constant,
    ExpandDims,
    Expr,
    FromScalar,
    Loop,
    Permute,
    Pointwise,
    Scatter,
    ScatterOp,
    Slice,
    Squeeze,
    Take,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, remembered
from nfuser.compiler.ir.point_op import CAST, is_copy
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ops.loops.index_ranges import Ranges
from nfuser.compiler.ops.shapes.scatter import indices_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nfuser.compiler.ir.tensor import TensorView


@remembered
def one_by_one(fusion: Fusion) -> OneByOne | Mismatch:
    """Return the steps of the only loop of ``fusion``, or what else there is in it."""
    try:
        return _Steps(fusion).run()
    except _OtherwiseError as found:
        return found.mismatch


class _OtherwiseError(Exception):
    def __init__(self, reason: str, tensor: TensorView) -> None:
        self.mismatch = Mismatch(reason, tensor)


def _refuse(reason: str, tensor: TensorView) -> NoReturn:
    raise _OtherwiseError(reason, tensor)


def _require_held(tensor: TensorView) -> None:
    """Refuse what is stored in another type than it is computed in."""
    if tensor.dtype.compute is not tensor.dtype:
        _refuse(_ROUNDED, tensor)


_WHOLE = "it computes more than one element of an array"
_STALE = "it reads elements as they were before others were written"
_FAILS = "it may fail while it runs"
_ROUNDED = "its elements are held in another type than they are stored in"


class _Steps:
    def __init__(self, fusion: Fusion) -> None:
        self._fusion = fusion
        self._parts: dict[TensorView, ArrayPart] = {}
        self._versions: dict[TensorView, int] = {}
        self._same: dict[tuple[TensorView, int], list[TensorView]] = {}
        self._steps: list[Step] = []
        self._ranges = Ranges(fusion.definition, {})
        # What was written last, by a scatter or a loop.
        self._written: dict[tuple[TensorView, int], ArrayPart] = {}

    def run(self) -> OneByOne:
        loop = self._outermost()
        copied: list[tuple[TensorView, TensorView]] = []
        for before, _, left in loop.pairs:
            if is_number(left):
                continue
            if left not in self._fusion.outputs:
                _refuse("nothing reads an array that it carries", left)
            copied.append((before, left))
            self._in_memory(left)
        arrays = [self._parts.get(left) for left in loop.results[: loop.carried]]
        self._turns(loop, arrays, {})
        return OneByOne(tuple(copied), tuple(self._steps))

    def _outermost(self) -> Loop:
        """Return the loop; note what is around it."""
        (loop,) = self._fusion.loops
        for expr in self._fusion.exprs:
            if isinstance(expr, Argument):
                if not is_number(expr.result):
                    self._in_memory(expr.result)
            elif isinstance(expr, (Constant, FromScalar)) and is_number(expr.result):
                self._steps.append(Compute(expr))
            elif expr is not loop:
                _refuse("something else is computed around the loop", results(expr)[0])
        return loop

    def _in_memory(self, tensor: TensorView) -> None:
        _require_held(tensor)
        self._versions[tensor] = 0
        self._note(tensor, self._whole(tensor, tensor.ndim))

    def _whole(self, array: TensorView, ndim: int) -> ArrayPart:
        index = (Coordinate(sc.const(0), 1),) * ndim
        return ArrayPart(array, self._versions[array], tuple(range(ndim)), index)

    def _note(self, tensor: TensorView, part: ArrayPart) -> None:
        self._parts[tensor] = part
        self._same.setdefault((part.array, part.version), []).append(tensor)

    def _now(self, tensor: TensorView) -> ArrayPart:
        """Return the part that ``tensor`` is, if its memory still holds it."""
        part = self._parts.get(tensor)
        if part is None:
            _refuse(_WHOLE, tensor)
        if part.version != self._versions[part.array]:
            _refuse(_STALE, tensor)
        return part

    def _overwritten(self, tensor: TensorView, *, whole: bool = True) -> ArrayPart:
        """Return what ``tensor`` is once that array, or part, is written into."""
        part = self._now(tensor)
        is_whole = part.is_whole or not whole
        if not is_whole or part.array not in self._fusion.outputs:
            _refuse(_WHOLE, tensor)
        self._versions[part.array] += 1
        return replace(part, version=self._versions[part.array])

    # -- loops ---------------------------------------------------------------

    def _turns(
        self,
        loop: Loop,
        arrays: list[ArrayPart | None],
        targets: Mapping[TensorView, ArrayPart],
    ) -> None:
        """Add a loop, which carries ``arrays``, and adds to ``targets`` in place."""
        memories = [part.array for part in arrays if part is not None]
        if len(set(memories)) < len(memories):
            _refuse(_WHOLE, loop.result)
        around, self._steps = self._steps, []
        given = {a.slot: a.result for a in loop.body.arguments}
        for slot, part in enumerate(arrays):
            if part is not None and slot in given:
                self._note(given[slot], part)
        for slot in range(loop.carried, len(loop.operands)):
            operand = loop.operands[slot]
            if slot in given and is_number(operand):
                around.append(Same(given[slot], operand))
            elif slot in given:
                self._note(given[slot], self._now(operand))
        outer = self._ranges
        self._ranges = outer.inside(loop)
        _Body(self, loop.body).run()
        self._ranges = outer
        steps, self._steps = self._steps, around
        added = self._added(loop, targets, steps)
        carried = self._left(loop, arrays, given)
        flag = None if loop.flag is None else given.get(loop.flag)
        if loop.flag is not None and flag is None:
            _refuse("whether it goes on is the same in each turn", loop.result)
        turns = ElementLoop(loop, carried, tuple(steps), flag, added)
        self._steps.append(turns)

    def _left(
        self,
        loop: Loop,
        arrays: list[ArrayPart | None],
        given: Mapping[int, TensorView],
    ) -> tuple[tuple[TensorView, TensorView, TensorView, TensorView], ...]:
        """Return the numbers that ``loop`` carries; note the arrays that it leaves."""
        numbers: list[tuple[TensorView, TensorView, TensorView, TensorView]] = []
        for slot, (part, pair) in enumerate(zip(arrays, loop.pairs, strict=True)):
            before, after, left = pair
            if part is None:
                _require_held(left)
                held = given.get(slot) or replace(left)
                numbers.append((before, held, after, left))
                continue
            found = self._now(after)
            if found.array is not part.array or not found.is_whole:
                _refuse("arrays that it carries change places", left)
            self._versions[part.array] += 1
            self._note(left, replace(found, version=self._versions[part.array]))
        return tuple(numbers)

    def _added(
        self, loop: Loop, targets: Mapping[TensorView, ArrayPart], steps: list[Step]
    ) -> tuple[tuple[TensorView, TensorView], ...]:
        """Return what goes into results; let ``steps`` write what goes elsewhere."""
        for row, whole in loop.added:
            if whole not in targets and whole not in self._fusion.outputs:
                _refuse(_WHOLE, whole)
            if not is_number(row):
                _refuse(_WHOLE, whole)
            _require_held(whole)
        writes = writes_in_place(loop, targets, steps)
        if writes is None:
            _refuse(_STALE, loop.result)
        steps += writes
        return tuple(x for x in loop.added if x[1] not in targets)

    def inner(self, loop: Loop, lines: Mapping[TensorView, ElementLine]) -> None:
        """Add a loop within another one, some of whose results are ``lines``."""
        arrays = [
            None if is_number(left) else self._overwritten(before)
            for before, _, left in loop.pairs
        ]
        targets: dict[TensorView, ArrayPart] = {}
        for whole, line in lines.items():
            part = self._now(line.array)
            if not part.is_whole:
                _refuse(_WHOLE, whole)
            index = (Coordinate(line.start, line.step),)
            targets[whole] = ArrayPart(part.array, part.version + 1, (0,), index)
        self._turns(loop, arrays, targets)
        for whole, line in lines.items():
            part = replace(self._overwritten(line.array), index=targets[whole].index)
            self._written[part.array, part.version] = part
            self._note(whole, part)

    # -- expressions ---------------------------------------------------------

    def written(
        self, expr: Expr, lines: Mapping[TensorView, ElementLine]
    ) -> list[TensorView]:
        """Return the tensors whose memory ``expr``, or a loop's ``lines``, lie in."""
        match expr:
            case Scatter():
                return [expr.source]
            case Assign() if is_number(expr.value) and not is_number(expr.result):
                return [expr.source]
            case Loop():
                pairs = expr.pairs
                own = [before for before, _, left in pairs if not is_number(left)]
                return own + [line.array for line in lines.values()]
            case _:
                return []

    def sharing(self, tensor: TensorView) -> list[TensorView]:
        """Return all that has its elements in the memory of ``tensor``, as it is now.

        The list grows as more of them are noted.
        """
        part = self._now(tensor)
        return self._same[part.array, part.version]

    def add(self, expr: Expr, lines: Mapping[TensorView, ElementLine]) -> None:
        """Add the step of an expression, if it takes one."""
        match expr:
            case Argument():
                pass
            case Constant() | FromScalar() if is_number(expr.result):
                self._steps.append(Compute(expr))
            case Pointwise() if is_number(expr.result):
                self._steps.append(Compute(expr))
            case Pointwise() if is_copy(expr.op) or self._is_spelling(expr):
                self._note(expr.result, self._now(expr.operands[0]))
            case ExpandDims() | Squeeze() | Permute() if is_number(expr.source):
                self._steps.append(Same(expr.result, expr.source))
            case Take() | Slice() | Squeeze() | Permute() | ExpandDims():
                self._select(expr)
            case Assign():
                self._assign(expr)
            case Scatter():
                self._scatter(expr)
            case Loop():
                self.inner(expr, lines)
            case _:
                _refuse(_WHOLE, results(expr)[0])

    def _is_spelling(self, expr: Pointwise) -> bool:
        """Tell whether a cast lets truth values be integers, or the other way round."""
        part = self._parts.get(expr.operands[0])
        kinds = {expr.operands[0].dtype, expr.result.dtype}
        is_cast = expr.op is CAST and kinds <= {DType.BOOL, DType.U8}
        return is_cast and part is not None and part.array.dtype.is_bool

    def _select(self, expr: Take | Slice | Squeeze | Permute | ExpandDims) -> None:
        if isinstance(expr, Slice) and is_number(expr.source):
            self._steps.append(Same(expr.result, expr.source))
            return
        part = self._now(expr.source)
        index, axes = list(part.index), part.axes
        match expr:
            case Take():
                if expr.index.ndim or expr.along:
                    _refuse(_WHOLE, expr.result)
                axis = axes[expr.axis]
                if axis < 0:
                    _refuse(_WHOLE, expr.result)
                old = index[axis]
                extent = expr.source.shape[expr.axis]
                index[axis] = Coordinate(
                    old.start, old.step, expr.index, extent, expr.inside
                )
                axes = (*axes[: expr.axis], *axes[expr.axis + 1 :])
            case Slice():
                for axis, start, step in zip(
                    axes, expr.starts, expr.steps, strict=True
                ):
                    if axis < 0:
                        continue
                    old = index[axis]
                    first = old.start + start * old.step
                    index[axis] = Coordinate(first, old.step * step)
            case Squeeze():
                axes = tuple(a for k, a in enumerate(axes) if k not in expr.axes)
            case Permute():
                axes = tuple(axes[k] for k in expr.order)
            case ExpandDims():
                rest = iter(axes)
                ndim = range(expr.result.ndim)
                axes = tuple(-1 if k in expr.axes else next(rest) for k in ndim)
        found = ArrayPart(part.array, part.version, axes, tuple(index))
        if is_number(expr.result):
            place = ElementPlace(part.array, found.index)
            self._steps.append(ReadElement(expr.result, place))
        else:
            self._note(expr.result, found)

    def _assign(self, expr: Assign) -> None:
        if is_number(expr.result):
            self._steps.append(Same(expr.result, expr.value))
            return
        if is_number(expr.value):
            part = self._overwritten(expr.source)
            index = tuple(Coordinate(start, 1) for start in expr.starts)
            self._steps.append(Write(ElementPlace(part.array, index), expr.value))
            self._note(expr.result, part)
            return
        part, source = self._now(expr.value), self._parts.get(expr.source)
        if source is None or source.array is not part.array or not source.is_whole:
            _refuse(_WHOLE, expr.result)
        all_of_it = expr.is_whole and part.is_whole
        written = self._written.get((part.array, part.version))
        if not all_of_it and not is_put_back(expr, part, source, written):
            _refuse(_WHOLE, expr.result)
        self._note(expr.result, self._whole(part.array, expr.result.ndim))

    def _scatter(self, expr: Scatter) -> None:
        if not expr.inside:
            _refuse(_FAILS, expr.result)
        are_numbers = is_number(expr.value) and is_number(expr.index)
        if expr.op is not ScatterOp.SET or not are_numbers:
            _refuse(_WHOLE, expr.result)
        if expr.lead != expr.source.ndim:
            _refuse(_WHOLE, expr.result)
        shape = expr.source.shape
        indices = indices_of(self._ranges.definition, expr.index, shape)
        if indices is None or -1 in self._now(expr.source).axes:
            _refuse(_WHOLE, expr.result)
        part = self._overwritten(expr.source, whole=False)
        index = list(part.index)
        pairs = zip(part.axes, shape, indices, strict=True)
        for axis, extent, number in pairs:
            old, known = index[axis], self._ranges.of(number)
            in_front = known is not None and sc.is_natural(known[0])
            index[axis] = Coordinate(old.start, old.step, number, extent, in_front)
        self._steps.append(Write(ElementPlace(part.array, tuple(index)), expr.value))
        self._written[part.array, part.version] = part
        self._note(expr.result, part)


class _Body:
    """The expressions of a body, in an order in which memory holds what each reads."""

    def __init__(self, steps: _Steps, body: Fusion) -> None:
        self._steps, self._fusion = steps, body
        self._begun: set[Expr] = set()
        self._done: set[Expr] = set()

    def run(self) -> None:
        for expr in self._fusion.exprs:
            self._add(expr)

    def _add(self, expr: Expr) -> None:
        if expr in self._done:
            return
        if expr in self._begun:
            _refuse(_STALE, results(expr)[0])
        self._begun.add(expr)
        self._add_all(self._fusion.definition[t] for t in sources(expr))
        lines = self._lines(expr)
        for tensor in self._steps.written(expr, lines):
            sharing = self._steps.sharing(tensor)
            for shared in iter_growing(sharing):
                self._add_all(self._readers(shared, expr))
        self._steps.add(expr, lines)
        self._done.add(expr)

    def _lines(self, expr: Expr) -> Mapping[TensorView, ElementLine]:
        return lines_written(self._fusion, expr) if isinstance(expr, Loop) else {}

    def _add_all(self, exprs: Iterable[Expr]) -> None:
        for expr in exprs:
            self._add(expr)

    def _readers(self, tensor: TensorView, writer: Expr) -> list[Expr]:
        """Return what reads ``tensor``, but for what lets others stand for it."""
        return [
            user
            for user in self._fusion.users.get(tensor, ())
            if user is not writer
            and not (isinstance(user, Assign) and user.source is tensor)
            and tensor not in self._steps.written(user, self._lines(user))
        ]


def iter_growing(items: list[TensorView]) -> Iterable[TensorView]:
    """Yield all ``items``, those that are added meanwhile, too."""
    k = 0
    while k < len(items):
        yield items[k]
        k += 1
