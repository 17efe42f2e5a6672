# SPDX-License-Identifier: Apache-2.0
"""The functions of floats that are a row each: all names here are verbs."""

from __future__ import annotations

from nfuser.compiler.ops.elementwise.of_rows import binary as _binary
from nfuser.compiler.ops.elementwise.of_rows import unary as _unary
from nfuser.compiler.ops.elementwise.of_rows import whole as _whole

exp, exp2, expm1 = _unary("exp"), _unary("exp2"), _unary("expm1")
log, log2, log10, log1p = (_unary(n) for n in ("log", "log2", "log10", "log1p"))
sin, cos, tan = _unary("sin"), _unary("cos"), _unary("tan")
asin, acos, atan = _unary("asin"), _unary("acos"), _unary("atan")
sinh, cosh, tanh = _unary("sinh"), _unary("cosh"), _unary("tanh")
asinh, acosh, atanh = _unary("asinh"), _unary("acosh"), _unary("atanh")
sqrt, rsqrt, cbrt = _unary("sqrt"), _unary("rsqrt"), _unary("cbrt")
erf, erfc = _unary("erf"), _unary("erfc")
erfinv, erfcinv = _unary("erfinv"), _unary("erfcinv")
rint, floor, ceil, trunc = (
    _unary("rint"),
    _whole("floor"),
    _whole("ceil"),
    _whole("trunc"),
)
atan2, hypot = _binary("atan2"), _binary("hypot")
logaddexp = _binary("logaddexp")
copysign = _binary("copysign")
