# SPDX-License-Identifier: Apache-2.0
"""What the integers of a loop's body lie between, by the counters of all loops.

A loop without a number of turns has a condition, which holds in each of them: a number
that turns count towards a bound lies between where it begins and that bound.
"""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Constant, FromScalar, Loop, Pointwise, results
from nfuser.compiler.ir.point_op import CAST, POINT_OPS, is_copy
from nfuser.compiler.ir.same_value import original
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import maximum, minimum
from nfuser.compiler.ops.loops.induction import ends_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Generator, Iterable, Mapping

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.point_op import PointOp
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView

Range: TypeAlias = "tuple[Scalar, Scalar]"  # the least and the greatest
_ADD, _SUBTRACT, _MULTIPLY = (POINT_OPS[n] for n in ("add", "subtract", "multiply"))
_BOTH, _CHOICE = POINT_OPS["bit_and"], POINT_OPS["select"]
_NEGATIVE, _ABSOLUTE = POINT_OPS["negative"], POINT_OPS["absolute"]
_REST = POINT_OPS["remainder"]
_SHIFT = POINT_OPS["right_shift"]
_LESSENED = (POINT_OPS["floor_divide"], _SHIFT)
_EXTREMA = {POINT_OPS["minimum"]: minimum, POINT_OPS["maximum"]: maximum}
_FAR = 1 << 31  # steps that a counter takes beyond no axis and out of 64 bits
WORD = 1 << 62  # numbers below it in size, and what is next to them, take 64 bits
_TERMS = 8  # of both ends of a range that is multiplied or divided
_SHORT, _FEW = 1 << 60, 1 << 10
_BELOW = {POINT_OPS["less"]: 1, POINT_OPS["less_equal"]: 0}  # and by how much
_ABOVE = {POINT_OPS["greater"]: 1, POINT_OPS["greater_equal"]: 0}


class Ranges:
    """What the integers of a body lie between; ``given`` is known of its arguments."""

    def __init__(
        self,
        definition: Mapping[TensorView, Expr],
        given: Mapping[TensorView, Range],
        compared: dict[Scalar, None] | None = None,
    ) -> None:
        self.definition = definition
        self._given = given
        self.compared = {} if compared is None else compared
        """Numbers that conditions are of. Kernels compare what 64 bits hold of them:

        ranges are right where all of these are less than `WORD` in size.
        """
        self._found: dict[TensorView, Range | None] = {}

    def _around(self, loop: Loop) -> Ranges:
        """Return what the body of ``loop`` is given, beside what turns carry on."""
        known = {
            a.result: self.of(loop.operands[a.slot])
            for a in loop.body.arguments
            if loop.carried <= a.slot < len(loop.operands)
        }
        given = {t: found for t, found in known.items() if found is not None}
        if loop.turn is not None and loop.trips is not None:
            given[loop.turn] = ends_of(loop.trips, (sc.const(0), 1))
        return Ranges(loop.body.definition, given, self.compared)

    def inside(self, loop: Loop) -> Ranges:
        """Return what is known in the body of ``loop``, which stands here."""
        body = self._around(loop)
        carried = [a for a in loop.body.arguments if a.slot < loop.carried]
        known = {a.result: self._during(loop, a.slot, body) for a in carried}
        given = {t: found for t, found in known.items() if found is not None}
        return Ranges(loop.body.definition, {**body._given, **given}, self.compared)

    def beside(self, exprs: Iterable[Expr]) -> Ranges:
        """Return what is known where ``exprs`` are written down, too."""
        made = {t: e for e in exprs for t in results(e)}
        return Ranges(ChainMap(made, dict(self.definition)), self._given, self.compared)

    def _during(self, loop: Loop, slot: int, body: Ranges) -> Range | None:
        """Return the range of a number that turns carry on, in all turns."""
        counted = self._counted(loop, slot, body)
        if counted is not None:
            return counted[0]
        found = self.of(loop.operands[slot])
        found = _combined(
            _ADD, found, None if found is None else self._of_turns(loop, slot)
        )
        if found is not None:
            self._compare(*found)
        return found

    def of(self, tensor: TensorView) -> Range | None:
        """Return the least and the greatest of ``tensor`` in all turns, if known."""
        if tensor in self._given:
            return self._given[tensor]
        if tensor.ndim or tensor.dtype is not DType.I64:
            return None
        for before in _in_order(tensor, self._read, self._found):
            self._found[before] = self._computed(before)
        return self._found[tensor]

    def _read(self, tensor: TensorView) -> list[TensorView]:
        """Return of which numbers ``tensor`` is computed, whose ranges tell its own."""
        match self.definition.get(tensor):
            case Pointwise(_, operands):
                read = operands
            case Loop() as loop:
                read = loop.operands[: loop.carried]
            case _:
                return []
        wanted = [t for t in read if not t.ndim and t.dtype is DType.I64]
        return [t for t in wanted if t not in self._given]

    def _computed(self, tensor: TensorView) -> Range | None:
        match self.definition.get(tensor):
            case Constant(int() as number):
                return sc.const(number), sc.const(number)
            case FromScalar(scalar):
                return scalar, scalar
            case Pointwise(op, (operand,)) if op is CAST and operand.dtype.is_bool:
                return sc.const(0), sc.const(1)
            case Pointwise(op, operands) if op is CAST or is_copy(op):
                return self.of(operands[0])
            case Pointwise(op, operands):
                return _combined(op, *map(self.of, operands[op is _CHOICE :]))
            case Loop() as loop:
                slot = loop.results.index(tensor)
                return self._left(loop, slot) or self._turned(loop, slot)
            case _:
                return None

    def _turned(self, loop: Loop, slot: int) -> Range | None:
        """Return the range of a number that ``loop`` leaves after so many turns."""
        first = self.of(loop.operands[slot]) if slot < loop.carried else None
        if first is None:
            return None
        found = _combined(_ADD, first, self._of_turns(loop, slot))
        if found is not None:
            self._compare(*found)
            return found
        body, held = self.inside(loop), _carried(loop, slot)
        for _ in range(2):  # a turn leaves what was there, or what the turn says
            given = {**body._given} if held is None else {**body._given, held: first}
            ranges = Ranges(loop.body.definition, given, self.compared)
            left = ranges.of(loop.body.outputs[slot])
            grown = None if left is None else _hull(first, left)
            if grown is None or grown == first:
                return grown
            first = grown
        return None

    def _of_turns(self, loop: Loop, slot: int) -> Range | None:
        """Return what all turns of ``loop`` add to a number, if each adds to it."""
        held = _carried(loop, slot)
        trips = self._most_turns(loop) if loop.trips is None else loop.trips
        if held is None or trips is None:
            return None
        each = self._around(loop).steps(loop.body.outputs[slot], held, {})
        if each is None:
            return None
        low, high = _hull(each, (sc.const(0), sc.const(0)))
        return low * trips, high * trips

    def _most_turns(self, loop: Loop) -> Scalar | None:
        """Return how many turns ``loop`` has at most, if some number counts them."""
        body = self._around(loop)
        for slot in range(loop.carried):
            counted = self._counted(loop, slot, body)
            if counted is not None:
                (low, high), step = counted
                return maximum((high - low) // abs(step) + 1, 0)
        return None

    def steps(
        self,
        after: TensorView,
        before: TensorView,
        found: dict[TensorView, Range | None],
    ) -> Range | None:
        """Return what is added to ``before`` to give ``after``, at least and at most.

        ``found`` is what is known of numbers on the way.
        """
        after = self._original(after)
        found[before] = sc.const(0), sc.const(0)
        for later in _in_order(after, self._summed, found):
            found[later] = self._steps(later, before, found)
        return found[after]

    def _summed(self, after: TensorView) -> list[TensorView]:
        """Return to which numbers something is added to give ``after``."""
        match self.definition.get(after):
            case Pointwise(op, (_, left, right)) if op is _CHOICE:
                read = [left, right]
            case Pointwise(op, (left, right)) if op is _ADD:
                read = [left, right]
            case Pointwise(op, (left, _)) if op is _SUBTRACT:
                read = [left]
            case Loop() as loop:
                slot = loop.results.index(after)
                read = list(loop.operands[slot : slot + 1])
            case _:
                read = []
        return [self._original(t) for t in read]

    def _steps(
        self,
        after: TensorView,
        before: TensorView,
        found: dict[TensorView, Range | None],
    ) -> Range | None:
        match self.definition.get(after):
            case Pointwise(op, (_, left, right)) if op is _CHOICE:
                return _combined(
                    op, *(self.steps(x, before, found) for x in (left, right))
                )
            case Pointwise(op, (left, right)) if op in (_ADD, _SUBTRACT):
                if op is _ADD and self.steps(left, before, found) is None:
                    left, right = right, left
                return _combined(op, self.steps(left, before, found), self.of(right))
            case Loop() as loop:
                slot = loop.results.index(after)
                if slot >= loop.carried:
                    return None
                begun = self.steps(loop.operands[slot], before, found)
                return _combined(_ADD, begun, self._of_turns(loop, slot))
            case _:
                return None

    def _left(self, loop: Loop, slot: int) -> Range | None:
        """Return the range of a number that ``loop`` leaves, after no turn, too."""
        first = self.of(loop.operands[slot]) if slot < loop.carried else None
        counted = self._counted(loop, slot, self.inside(loop)) if first else None
        if first is None or counted is None:
            return None
        (low, high), step = counted
        if step > 0:
            return first[0], maximum(first[1], high + step)
        return minimum(first[0], low + step), first[1]

    def _counted(self, loop: Loop, slot: int, body: Ranges) -> tuple[Range, int] | None:
        """Return the range of a number that each turn counts on, and by how much.

        There is a turn only while a condition holds of it: before the first one, and
        after each for the next.
        """
        held = _carried(loop, slot)
        after, first = loop.body.outputs[slot], self.of(loop.operands[slot])
        step = None if held is None else body.step(after, held)
        if loop.flag is None or first is None or not step:
            return None
        ends = (
            self.limit(loop.operands[loop.flag], loop.operands[slot], up=step > 0),
            body.limit(loop.body.outputs[loop.flag], after, up=step > 0),
        )
        begin, later = ends
        if later is None:
            return None
        if begin is None:  # as where it is known that there is a turn
            begin = first[step > 0]
        last = maximum(begin, later) if step > 0 else minimum(begin, later)
        self._compare(*first, last + step)
        return ((first[0], last) if step > 0 else (last, first[1])), step

    def _compare(self, *numbers: Scalar) -> None:
        self.compared.update(dict.fromkeys(x for x in numbers if not _is_short(x)))

    def step(self, after: TensorView, before: TensorView) -> int | None:
        """Return what is added to ``before`` to give ``after``, if that is constant."""
        match self.definition.get(self._original(after)):
            case Pointwise(op, (left, right)) if op in (_ADD, _SUBTRACT):
                if op is _ADD and self._original(left) is not before:
                    left, right = right, left
                added = self.definition.get(self._original(right))
                if self._original(left) is not before or not isinstance(
                    added, Constant
                ):
                    return None
                if not isinstance(added.value, int) or abs(added.value) > _FAR:
                    return None
                return added.value if op is _ADD else -added.value
            case _:
                return None

    def limit(
        self, condition: TensorView, number: TensorView, *, up: bool
    ) -> Scalar | None:
        """Return what ``number`` is at most where a condition holds; not ``up``: least.

        None if the condition does not say it.
        """
        stack, wanted = [condition], self._original(number)
        while stack:
            expr = self.definition.get(self._original(stack.pop()))
            if not isinstance(expr, Pointwise) or len(expr.operands) != 2:
                continue
            if expr.op is _BOTH:
                stack += expr.operands
                continue
            for (one, other), below, above in (
                (expr.operands, _BELOW, _ABOVE),
                (expr.operands[::-1], _ABOVE, _BELOW),
            ):
                by = (below if up else above).get(expr.op)
                if by is None or self._original(one) is not wanted:
                    continue
                bound = self.of(other)
                if bound is not None:
                    self._compare(*bound)
                    return bound[1] - by if up else bound[0] + by
        return None

    def _original(self, tensor: TensorView) -> TensorView:
        return original(self.definition, tensor)


def _in_order(
    tensor: TensorView,
    read: Callable[[TensorView], list[TensorView]],
    found: Container[TensorView],
) -> Generator[TensorView]:
    """Give what ``tensor`` reads, sooner or later, and it, each after what it reads.

    What is ``found`` is not given again: chains may be longer than calls can nest.
    """
    stack = [tensor]
    while stack:
        if stack[-1] in found:
            stack.pop()
        elif waiting := [t for t in read(stack[-1]) if t not in found]:
            stack += waiting
        else:
            yield stack.pop()


def _is_short(x: Scalar) -> bool:
    """Tell whether ``x`` is less than `WORD` in size, as few sizes of arrays are."""
    return all(
        abs(count) < (_FEW if product else _SHORT)
        and len(product) < 2
        and all(isinstance(atom, sc.Size) for atom in product)
        for product, count in sc.terms_of(x).items()
    )


def _carried(loop: Loop, slot: int) -> TensorView | None:
    """Return what a carried number is in the body, which may not read it."""
    return next((a.result for a in loop.body.arguments if a.slot == slot), None)


def _combined(op: PointOp, *found: Range | None) -> Range | None:
    """Return the range of what is computed of numbers with these ranges."""
    one, other = found[0], found[-1]
    if one is None or other is None:
        return None
    if op is _ADD:
        return one[0] + other[0], one[1] + other[1]
    if op is _SUBTRACT:
        return one[0] - other[1], one[1] - other[0]
    if op is _MULTIPLY:
        return _product(one, other) or _product(other, one)
    if op is _CHOICE:
        return _hull(one, other)
    if op in _EXTREMA:
        return _EXTREMA[op](one[0], other[0]), _EXTREMA[op](one[1], other[1])
    negated = one[1] * -1, one[0] * -1
    if op is _NEGATIVE:
        return negated
    if op is _ABSOLUTE:
        return maximum(maximum(one[0], negated[0]), 0), maximum(one[1], negated[1])
    return _of_whole(op, one, other)


def _of_whole(op: PointOp, one: Range, other: Range) -> Range | None:
    """Return the range of a quotient, a rest, or of bits, by what is not negative."""
    if op is _BOTH and sc.is_natural(one[0]):
        one, other = other, one
    if not sc.is_natural(other[0]):
        return None
    if op is _BOTH:
        return sc.const(0), other[1]
    if op is _REST:
        return sc.const(0), maximum(other[1] - 1, 0)
    if op not in _LESSENED:
        return None
    match other[0]:
        case sc.Const(by) if other[1] is other[0] and by and _is_natural(one):
            divisor = 1 << min(by, 63) if op is _SHIFT else by
            return one[0] // divisor, one[1] // divisor
        case _:  # it goes towards 0 or, below it, -1
            return minimum(one[0], 0), maximum(one[1], 0)


def _is_natural(known: Range) -> bool:
    """Tell whether no number of the range is below 0, and its ends are simple.

    Products and quotients of others would grow with each step of a long chain.
    """
    products = [product for end in known for product in sc.terms_of(end)]
    atoms = [atom for product in products for atom in product]
    is_linear = len(products) <= _TERMS and all(len(p) < 2 for p in products)
    is_simple = all(isinstance(atom, sc.Size | sc.ScalarInput) for atom in atoms)
    return is_linear and is_simple and sc.is_natural(known[0])


def _hull(one: Range, other: Range) -> Range:
    """Return the least range that holds both."""
    return minimum(one[0], other[0]), maximum(one[1], other[1])


def _product(known: Range, by: Range) -> Range | None:
    """Return the range of a product by a constant, or of what is not negative."""
    low, high = by
    if _is_natural(known) and _is_natural(by):
        return known[0] * low, known[1] * high
    if low is not high or not isinstance(low, sc.Const):
        return None
    ends = known[0] * low.value, known[1] * low.value
    return ends if low.value >= 0 else (ends[1], ends[0])
