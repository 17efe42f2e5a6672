# SPDX-License-Identifier: Apache-2.0
"""The elementwise operations, as data: arity, what they take, what they give.

Operands of one operation have one dtype (``select``'s condition apart); the verbs in
``nfuser.compiler.ops`` insert the casts. To add an operation, add its row here, its
primitive to each vocabulary, its meaning to the tests' oracle, and its verb to
``nfuser.compiler.ops``.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Literal

from nfuser.compiler.ir.base import value

Takes = Literal["float", "real", "number", "integer", "bits", "bool", "any"]
Gives = Literal["same", "bool", "cast"]
NamedOrder = Literal["K", "A", "C", "F", "like"]
MemoryOrder = NamedOrder | tuple[int, ...]


@value
class PointOp:
    """One elementwise operation.

    ``takes`` names the dtypes admitted (real: no complex, no bool; number: no bool;
    bits: integers and bool); ``infix`` is its spelling between operands, if any;
    ``order`` is the memory order of its result, as NumPy names them: K that of ufuncs,
    ``like`` what K means to copies, which order stretched axes by their stride 0, too.
    A tuple has the axes themselves, the fastest first.
    """

    name: str
    arity: int
    takes: Takes
    gives: Gives = "same"
    infix: str | None = None
    is_costly: bool = False  # dearer than reading a kept value back
    order: MemoryOrder = "K"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Pickle a row of the table as its name: passes know rows by identity."""
        if POINT_OPS.get(self.name) is self:
            return _row, (self.name,)
        return PointOp, tuple(getattr(self, field.name) for field in fields(self))


_COSTLY_FUNCTIONS = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("erf", "erfc", "erfinv", "erfcinv", "sqrt", "rsqrt", "cbrt"),
)
_ROUNDINGS = ("floor", "ceil", "trunc", "rint", "reciprocal")
_COMPARISONS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_ROWS = (
    *(PointOp(name, 1, "float", is_costly=True) for name in _COSTLY_FUNCTIONS),
    *(PointOp(name, 1, "float") for name in _ROUNDINGS),
    *(PointOp(name, 1, "number") for name in ("negative", "absolute", "sign")),
    PointOp("isnan", 1, "float", "bool"),
    PointOp("isinf", 1, "float", "bool"),
    PointOp("isfinite", 1, "float", "bool"),
    PointOp("signbit", 1, "float", "bool"),
    PointOp("invert", 1, "bits"),
    PointOp("copy", 1, "any"),
    PointOp("add", 2, "number", infix="+"),
    PointOp("subtract", 2, "number", infix="-"),
    PointOp("multiply", 2, "number", infix="*"),
    PointOp("divide", 2, "float", is_costly=True),
    # Of what is rounded to 16 bits, where a GPU is faster so: quotients within 2 ulp of
    # f32, exponentials within 5 ulp for small powers and 2**-16 for all, hyperbolic
    # tangents within 2**-14, and within 2**-20 of 1 where sums with it may cancel, and
    # roots within an ulp.
    PointOp("exp_near", 1, "float", is_costly=True),
    # Within 2 ulp, but 0 in place of what is subnormal: of what is added to 1, also
    # where that is not rounded to 16 bits.
    PointOp("exp2_near", 1, "float", is_costly=True),
    PointOp("sqrt_near", 1, "float", is_costly=True),
    PointOp("tanh_near", 1, "float", is_costly=True),
    PointOp("divide_near", 2, "float", is_costly=True),
    PointOp("reciprocal_near", 1, "float"),
    PointOp("floor_divide", 2, "real", is_costly=True),
    PointOp("remainder", 2, "real", is_costly=True),
    PointOp("fmod", 2, "real", is_costly=True),
    PointOp("power", 2, "number", is_costly=True),
    PointOp("maximum", 2, "real"),
    PointOp("minimum", 2, "real"),
    PointOp("fmax", 2, "real"),
    PointOp("fmin", 2, "real"),
    PointOp("atan2", 2, "float", is_costly=True),
    PointOp("hypot", 2, "float", is_costly=True),
    PointOp("logaddexp", 2, "float", is_costly=True),
    PointOp("nextafter", 2, "float", is_costly=True),
    PointOp("copysign", 2, "float"),
    # The exponent is a whole number, as a float.
    PointOp("ldexp", 2, "float"),
    # The logarithm of a positive number that is neither subnormal nor infinite.
    PointOp("log_positive", 1, "float", is_costly=True),
    # a * b + c, rounded once where the target does it in one.
    PointOp("multiply_add", 3, "float"),
    PointOp("gcd", 2, "integer", is_costly=True),
    PointOp("left_shift", 2, "integer"),
    PointOp("right_shift", 2, "integer"),
    PointOp("bit_and", 2, "bits", infix="&"),
    PointOp("bit_or", 2, "bits", infix="|"),
    PointOp("bit_xor", 2, "bits", infix="^"),
    *(PointOp(name, 2, "any", "bool", infix=s) for name, s in _COMPARISONS.items()),
    PointOp("select", 3, "any"),
    # Random words of 64-bit places, keys and draw calls: see docs/random.md.
    PointOp("philox16", 3, "integer", is_costly=True),
    PointOp("philox32", 3, "integer", is_costly=True),
    PointOp("philox64", 3, "integer", is_costly=True),
    PointOp("cast", 1, "any", "cast"),
    # Complex numbers only; they are gone after the rewrite that splits them.
    PointOp("complex", 2, "float", "cast"),
    PointOp("real", 1, "any", "cast"),
    PointOp("imag", 1, "any", "cast"),
)
POINT_OPS = {row.name: row for row in _ROWS}
NEAR = {
    name: POINT_OPS[f"{name}_near"]
    for name in ("divide", "reciprocal", "exp", "sqrt", "tanh")
}
CAST, COPY, SELECT = (POINT_OPS[name] for name in ("cast", "copy", "select"))


def copy_in(order: MemoryOrder) -> PointOp:
    """Return the copy whose result lies in memory as ``order`` says."""
    return replace(COPY, order=order)


def is_copy(op: PointOp) -> bool:
    """Tell whether ``op`` is a copy, in whatever memory order."""
    return op.name == COPY.name


def _row(name: str) -> PointOp:
    return POINT_OPS[name]
