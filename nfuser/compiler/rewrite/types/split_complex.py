# SPDX-License-Identifier: Apache-2.0
"""Turn every complex tensor into a pair of real ones.

The verbs have already written complex functions in terms of the few operations below;
kernels never see a complex number. A complex output becomes two, real part first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.expr import (
    Argument,
    Called,
    Constant,
    Expand,
    Expr,
    FromScalar,
    Matmul,
    Part,
    Pointwise,
    Reduce,
    ReduceOp,
    Scan,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, with_sources
from nfuser.compiler.ir.point_op import CAST, POINT_OPS, SELECT
from nfuser.errors import VerifyError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.tensor import TensorView

Pair: TypeAlias = "tuple[TensorView, TensorView]"


def split_complex(fusion: Fusion) -> Fusion:
    """Return ``fusion`` over reals; itself where nothing is complex."""
    if not any(t.dtype.is_complex for t in fusion.definition):
        return fusion
    splitter = _Splitter()
    for expr in fusion.exprs:
        splitter.add(expr)
    outputs: list[TensorView] = []
    for tensor in fusion.outputs:
        outputs.extend(splitter.parts(tensor))
    return Fusion(fusion.name, splitter.exprs, outputs)


class _Splitter:
    def __init__(self) -> None:
        self.exprs: list[Expr] = []
        self._pairs: dict[TensorView, Pair] = {}
        self._real: dict[TensorView, TensorView] = {}

    def parts(self, tensor: TensorView) -> tuple[TensorView, ...]:
        """Return the pair of a complex tensor, or the one that stands for a real."""
        return self._pairs.get(tensor) or (self._real.get(tensor, tensor),)

    def add(self, expr: Expr) -> None:
        """Append the real form of ``expr``."""
        involved = (*sources(expr), *results(expr))
        if not any(t.dtype.is_complex for t in involved):
            own = [self._real.get(t, t) for t in sources(expr)]
            self.exprs.append(with_sources(expr, own))
            return
        match expr:
            case Pointwise():
                self._pointwise(expr)
            case Argument():
                self._both(
                    expr, lambda k: replace(expr, part=(Part.REAL, Part.IMAG)[k])
                )
            case Constant(number):
                parts = (complex(number).real, complex(number).imag)
                self._both(expr, lambda k: replace(expr, value=parts[k]))
            case FromScalar():
                real = replace(expr.result, dtype=expr.result.dtype.real)
                zero = replace(real)
                self.exprs += [replace(expr, result=real), Constant(0.0, zero)]
                self._pairs[expr.result] = (real, zero)
            case Matmul():
                self._matmul(expr)
            case Called():
                self._called(expr)
            case Reduce(op) | Scan(op) if op is not ReduceOp.SUM:
                message = f"no complex form of {op.value}"
                raise VerifyError(message)
            case _:
                pairs = [self._both_of(t) for t in sources(expr)]
                self._both(expr, lambda k: with_sources(expr, [p[k] for p in pairs]))

    def _both_of(self, tensor: TensorView) -> Pair:
        """Return the pair of a complex tensor; a real one, as of an index, twice."""
        real = self._real.get(tensor, tensor)
        return self._pairs.get(tensor, (real, real))

    def _both(self, expr: Expr, part: Callable[[int], Expr]) -> None:
        """Append ``part(0)`` and ``part(1)`` with real results; pair them."""
        old = results(expr)[0]
        pair: list[TensorView] = []
        for k in (0, 1):
            made = replace(old, dtype=old.dtype.real)
            piece = part(k)
            if isinstance(piece, Reduce):
                self.exprs.append(replace(piece, results=(made,)))
            else:
                self.exprs.append(replace(piece, result=made))
            pair.append(made)
        self._pairs[old] = (pair[0], pair[1])

    def _emit(
        self,
        name: str,
        operands: Sequence[TensorView],
        like: TensorView,
        dtype: DType | None = None,
    ) -> TensorView:
        made = replace(like, dtype=dtype or operands[-1].dtype)
        self.exprs.append(Pointwise(POINT_OPS[name], tuple(operands), made))
        return made

    def _pointwise(self, expr: Pointwise) -> None:
        op, result = expr.op, expr.result
        first, *rest = (self.parts(t) for t in expr.operands)
        second = rest[0] if rest else first
        match op.name:
            case "add" | "subtract":
                pairs = zip(first, second, strict=True)
                re, im = (self._emit(op.name, p, result) for p in pairs)
            case "negative" | "copy":
                re, im = (self._emit(op.name, (p,), result) for p in first)
            case "multiply":
                re, im = self._product(first, second, result)
            case "select":
                self._select(expr, first[0], second)
                return
            case "cast":
                self._cast(expr, first)
                return
            case "complex":
                re, im = first[0], second[0]
            case "real" | "imag":
                self._real[result] = first[0 if op.name == "real" else 1]
                return
            case "equal" | "not_equal":
                self._compare(expr, first, second)
                return
            case _:
                message = f"no complex form of {op.name}"
                raise VerifyError(message)
        self._pairs[result] = (re, im)

    def _product(
        self, x: tuple[TensorView, ...], y: tuple[TensorView, ...], like: TensorView
    ) -> Pair:
        """Multiply as NumPy does: (ac - bd, ad + bc), with no special cases."""
        (a, b), (c, d) = x, y
        ac, bd, ad, bc = (
            self._emit("multiply", p, like) for p in ((a, c), (b, d), (a, d), (b, c))
        )
        re = self._emit("subtract", (ac, bd), like)
        return re, self._emit("add", (ad, bc), like)

    def _called(self, expr: Called) -> None:
        """Give and take both parts, which the library sees as one."""
        given = [part for t in expr.operands for part in self.parts(t)]
        made: list[TensorView] = []
        for tensor in expr.results:
            if tensor.dtype.is_complex:
                kind = tensor.dtype.real
                pair = (replace(tensor, dtype=kind), replace(tensor, dtype=kind))
                self._pairs[tensor] = pair
                made += pair
            else:
                made.append(tensor)
        own = replace(expr, operands=tuple(given), results=tuple(made))
        self.exprs.append(own)

    def _matmul(self, expr: Matmul) -> None:
        """Multiply as ``_product`` does, matrices for numbers."""
        (a, b), (c, d) = self.parts(expr.lhs), self.parts(expr.rhs)
        real = replace(expr.result, dtype=expr.result.dtype.real)
        made = [Matmul(*p, replace(real)) for p in ((a, c), (b, d), (a, d), (b, c))]
        self.exprs += made
        ac, bd, ad, bc = (product.result for product in made)
        re = self._emit("subtract", (ac, bd), real)
        self._pairs[expr.result] = (re, self._emit("add", (ad, bc), real))

    def _select(
        self, expr: Pointwise, condition: TensorView, then: tuple[TensorView, ...]
    ) -> None:
        other = self.parts(expr.operands[2])
        pairs = zip(then, other, strict=True)
        re, im = (
            self._emit(SELECT.name, (condition, a, b), expr.result) for a, b in pairs
        )
        self._pairs[expr.result] = (re, im)

    def _cast(self, expr: Pointwise, parts: tuple[TensorView, ...]) -> None:
        result = expr.result
        if not result.dtype.is_complex:
            made = self._emit(CAST.name, parts[:1], result, result.dtype)
            self._real[result] = made
            return
        re = self._emit(CAST.name, parts[:1], result, result.dtype.real)
        if len(parts) == 2:
            im = self._emit(CAST.name, parts[1:], result, result.dtype.real)
        else:
            zero = replace(result, axes=(), dtype=result.dtype.real)
            self.exprs.append(Constant(0.0, zero))
            im = replace(result, dtype=result.dtype.real)
            self.exprs.append(Expand(zero, im))
        self._pairs[result] = (re, im)

    def _compare(
        self, expr: Pointwise, x: tuple[TensorView, ...], y: tuple[TensorView, ...]
    ) -> None:
        pairs = zip(x, y, strict=True)
        dtype = expr.result.dtype
        re, im = (self._emit(expr.op.name, p, expr.result, dtype) for p in pairs)
        joint = "bit_and" if expr.op.name == "equal" else "bit_or"
        self._real[expr.result] = self._emit(joint, (re, im), expr.result, dtype)
