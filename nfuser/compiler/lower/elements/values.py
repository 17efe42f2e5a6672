# SPDX-License-Identifier: Apache-2.0
"""Pull values: turn (tensor, point) pairs into variables, each in its scope.

A point is written in the loops of the space; ``scopes`` says where its value belongs.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import Point, source_points
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    Argument,
    Concatenate,
    Constant,
    Expr,
    FromScalar,
    Iota,
    Pad,
    Pointwise,
    Reduce,
)
from nfuser.compiler.ir.point_op import NEAR, POINT_OPS
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.walk import toposort
from nfuser.compiler.lower.cuda import quotients
from nfuser.compiler.lower.elements.loads import Loads, risky
from nfuser.compiler.lower.elements.single_numbers import applied, from_scalar
from nfuser.compiler.lower.elements.value_scopes import Key, Scope
from nfuser.compiler.lower.folds.lower_bound import least
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    Element,
    IndexValue,
    Let,
    Number,
    SetElement,
    Stmt,
    Value,
    Var,
)

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.placement.varying import Within


class Values(Loads):
    """The values of a kernel under construction, each made once where it belongs."""

    def value(self, tensor: TensorView, point: Point) -> Value:
        """Return the value of ``tensor`` at ``point``, computing what is missing."""
        key = (tensor, point)
        for item in toposort([key], self._missing):
            if self.find(item) is None:
                self._make(item)
        found = self.find(key)
        assert found is not None
        return found

    def _missing(self, key: Key) -> list[Key]:
        if self.find(key) is not None or self._is_row_lane(key) or self._is_kept(key):
            return []
        return self.needs(key)

    def _is_row_lane(self, key: Key) -> bool:
        """Tell whether ``key`` varies by lane only, yet is wanted inside a tile."""
        place = self.place(key)
        is_plain = isinstance(self.definition[key[0]], Reduce)
        return (
            self.tile is not None
            and place.in_lane
            and not place.in_tile
            and not is_plain
        )

    def _is_kept(self, key: Key) -> bool:
        return self.tile is not None and key in self.filled

    def _make(self, key: Key) -> None:
        if self._is_row_lane(key):
            self._lay_out_row(key)
            return
        tensor, point = key
        if self._is_kept(key):
            scope = self.scope_of(self.place(key))
            if key in self.landed:
                self.outside_lane.stmts.append(self.landed[key])
            var = Var(tensor.dtype.compute, tensor)
            scope.stmts.append(Let(var, Element(self.kept[key], self.kept_index(key))))
            scope.values[key] = var
            return
        expr = self.definition[tensor]
        if isinstance(expr, Argument) and not expr.by_value:
            self._load(key)
            return
        place = self.place(key)
        scope = self.scope_of(place)
        made = self._computed(expr, point, place)
        scope.values[key] = made
        self.keep(key, made)

    def _computed(self, expr: Expr, point: Point, place: Within) -> Value:
        sources = source_points(expr, point)
        match expr:
            case Constant(number):
                assert not isinstance(number, complex)
                return Number(number, expr.result.dtype.compute)
            case FromScalar(scalar):
                return from_scalar(scalar, expr.result.dtype, self.integers)
            case Iota():
                return IndexValue(self.index(point[0], point), expr.result.dtype)
            case Pad() | Concatenate():
                return self._pieced(sources, point, place)
            case Argument():
                return self.parameters[expr.result]
            case Pointwise():
                operands = [self._operand(key) for key in sources]
                quotient = self._quotient(expr, sources, operands, place)
                return quotient or self._pointwise(expr, operands, place)
            case _:
                return self._operand(sources[0])

    def _quotient(
        self, expr: Pointwise, sources: list[Key], operands: list[Value], place: Within
    ) -> Value | None:
        """Return a quotient of all a row, or column, by one number as a product."""
        target, divisor = self.scheduled.target, sources[-1]
        in_row = self.tile is not None and place.in_tile and target.has_blocks
        if not in_row or self.place(divisor).in_tile:
            return None
        is_plain = expr.op is POINT_OPS["divide"] and expr.result.dtype is DType.F32
        if expr.op is NEAR["divide"]:
            make = quotients.near
        elif is_plain and target.fast_doubles:
            make = quotients.exact
        else:
            return None
        known = (divisor, make)
        if known not in self._inverses:
            bound = least(self.definition, divisor[0])
            by_lane = self.place(divisor).in_lane
            scope = Scope() if by_lane else self.row
            inverse = make.inverse(operands[1], scope.stmts, bound)
            self._inverses[known] = (
                self._laid_out(inverse, scope) if by_lane else inverse
            )
        var = Var(DType.F32, expr.result)
        product = make.product(operands[0], self._inverses[known])
        self.scope_of(place).stmts.append(Let(var, product))
        return var

    def _pieced(self, sources: list[Key], point: Point, place: Within) -> Value:
        """Return the first source whose guard holds, or else the last."""
        found = self._operand(sources[-1])
        for tensor, where in sources[-2::-1]:
            own = [
                self._condition(c, where, c in self.even)
                for c in where.guard
                if c not in point.guard
            ]
            open_ones = [c for c in own if not isinstance(c, sc.Const)]
            if sc.const(0) in own:
                continue
            taken = self._operand((tensor, where))
            if not open_ones:
                found = taken
                continue
            holds = (IndexValue(c, DType.BOOL) for c in open_ones)
            operands = (reduce(_both, holds), taken, found)
            found = Var(taken.dtype, tensor)
            call = Call("select", operands, found.dtype)
            self.scope_of(place).stmts.extend(self._sensible(found, call, own, point))
        return found

    def _sensible(
        self, var: Var, value: Value, scalars: list[Scalar], point: Point
    ) -> tuple[Stmt, ...]:
        """Give ``var`` its value where ``scalars`` have a meaning.

        A quotient of what is negative has none; the guard says where nobody reads it.
        """
        let = Let(var, value)
        if not (point.guard and risky(scalars)):
            return (let,)
        return (Let(var, Number(0, var.dtype)), *self._guarded(point, (let,)))

    def _operand(self, key: Key) -> Value:
        found = self.find(key)
        assert found is not None
        return found

    def _pointwise(
        self, expr: Pointwise, operands: list[Value], place: Within
    ) -> Value:
        made = applied(expr, operands)
        if made is operands[0]:
            return made
        var = Var(made.dtype, expr.result)
        self.scope_of(place).stmts.append(Let(var, made))
        return var

    def _lay_out_row(self, key: Key) -> None:
        """Compute what varies by lane only before the tile, and keep it by lane."""
        outer = (self.tile, self.lane)
        self.tile, self.lane = None, Scope()
        made = self.value(*key)
        (self.row.values[key],) = self._laid_out((made,), self.lane)
        self.tile, self.lane = outer

    def _laid_out(self, made: tuple[Value, ...], lane: Scope) -> tuple[Value, ...]:
        """Keep what is computed in ``lane``, before the tile, in arrays by lane."""
        arrays = [self.array(value.dtype, self.lane_size) for value in made]
        for array, value in zip(arrays, made, strict=True):
            lane.stmts.append(SetElement(array, self.lane_index, value))
        loop = self.in_lanes(lane)
        assert loop is not None
        self.row.stmts.append(loop)
        return tuple(Element(array, self.lane_index) for array in arrays)


def _both(a: Value, b: Value) -> Value:
    return Call("bit_and", (a, b), DType.BOOL)
