# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: A001 (names are those of NumPy and the array API)
"""The namespace of fused functions: names of NumPy, the array API and a few more.

On traced arrays each function is traced. On NumPy arrays it computes at once, so that
the same code runs unfused.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.trace.eager import FUNCTIONS
from nfuser.trace.functions import HANDLERS
from nfuser.trace.pads import pad_or_crop
from nfuser.trace.standin import Standin
from nfuser.trace.tracer import Tracer, current_tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def _tracer_of(items: Iterable[Any]) -> Tracer | None:
    for item in items:
        if isinstance(item, Standin):
            return current_tracer()
        if isinstance(item, (tuple, list)) and _tracer_of(item):
            return current_tracer()
    return None


def _function(name: str, handler: Any = None) -> Callable[..., Any]:
    handler = handler or HANDLERS[name]
    plain: Any = FUNCTIONS.get(name) or getattr(np, name)
    return _named(_either(plain, handler), name)


def _ufunc(name: str) -> Any:
    """Return a function that can also ``accumulate``."""
    function: Any = _function(name)
    plain: Any = getattr(np, name).accumulate
    scan = f"{name}.accumulate"
    function.accumulate = _named(_either(plain, HANDLERS[scan]), scan)
    return function


def _either(plain: Any, handler: Any) -> Callable[..., Any]:
    def function(*args: Any, **options: Any) -> Any:
        tracer = _tracer_of((*args, *options.values()))
        if tracer is None:
            return plain(*args, **options)
        return handler(tracer, *args, **options)

    return function


def _named(function: Any, name: str) -> Callable[..., Any]:
    function.__module__ = "nfuser.numpy"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return ``{name}`` of traced arrays, or of NumPy's."
    return function


abs = _function("abs")
absolute = _function("absolute")
acos = _function("acos")
acosh = _function("acosh")
add = _ufunc("add")
angle = _function("angle")
arccos = _function("arccos")
arccosh = _function("arccosh")
arcsin = _function("arcsin")
arcsinh = _function("arcsinh")
arctan = _function("arctan")
arctan2 = _function("arctan2")
arctanh = _function("arctanh")
asin = _function("asin")
asinh = _function("asinh")
atan = _function("atan")
atan2 = _function("atan2")
atanh = _function("atanh")
bitwise_and = _function("bitwise_and")
bitwise_invert = _function("bitwise_invert")
bitwise_left_shift = _function("bitwise_left_shift")
bitwise_not = _function("bitwise_not")
bitwise_or = _function("bitwise_or")
bitwise_right_shift = _function("bitwise_right_shift")
bitwise_xor = _function("bitwise_xor")
cbrt = _function("cbrt")
ceil = _function("ceil")
clip = _function("clip")
conj = _function("conj")
conjugate = _function("conjugate")
copysign = _function("copysign")
cos = _function("cos")
cosh = _function("cosh")
deg2rad = _function("deg2rad")
degrees = _function("degrees")
divide = _function("divide")
divmod = _function("divmod")
equal = _function("equal")
erf = _function("erf")
erfc = _function("erfc")
exp = _function("exp")
exp2 = _function("exp2")
expm1 = _function("expm1")
fabs = _function("fabs")
fix = _function("fix")
float_power = _function("float_power")
floor = _function("floor")
floor_divide = _function("floor_divide")
fmax = _function("fmax")
fmin = _function("fmin")
fmod = _function("fmod")
gelu = _function("gelu")
greater = _function("greater")
greater_equal = _function("greater_equal")
heaviside = _function("heaviside")
hypot = _function("hypot")
imag = _function("imag")
invert = _function("invert")
isclose = _function("isclose")
isfinite = _function("isfinite")
isinf = _function("isinf")
isnan = _function("isnan")
isneginf = _function("isneginf")
isposinf = _function("isposinf")
left_shift = _function("left_shift")
less = _function("less")
less_equal = _function("less_equal")
log = _function("log")
log10 = _function("log10")
log1p = _function("log1p")
log2 = _function("log2")
logaddexp = _function("logaddexp")
logaddexp2 = _function("logaddexp2")
logical_and = _function("logical_and")
logical_not = _function("logical_not")
logical_or = _function("logical_or")
logical_xor = _function("logical_xor")
maximum = _ufunc("maximum")
minimum = _ufunc("minimum")
mod = _function("mod")
multiply = _ufunc("multiply")
nan_to_num = _function("nan_to_num")
negative = _function("negative")
nextafter = _function("nextafter")
not_equal = _function("not_equal")
positive = _function("positive")
pow = _function("pow")
power = _function("power")
rad2deg = _function("rad2deg")
radians = _function("radians")
real = _function("real")
reciprocal = _function("reciprocal")
relu = _function("relu")
remainder = _function("remainder")
right_shift = _function("right_shift")
rint = _function("rint")
round = _function("round")
rsqrt = _function("rsqrt")
sigmoid = _function("sigmoid")
sign = _function("sign")
signbit = _function("signbit")
silu = _function("silu")
sin = _function("sin")
sinc = _function("sinc")
sinh = _function("sinh")
softplus = _function("softplus")
sqrt = _function("sqrt")
square = _function("square")
subtract = _function("subtract")
tan = _function("tan")
tanh = _function("tanh")
true_divide = _function("true_divide")
trunc = _function("trunc")
where = _function("where")

all = _function("all")
any = _function("any")
amax = _function("amax")
amin = _function("amin")
argmax = _function("argmax")
argmin = _function("argmin")
count_nonzero = _function("count_nonzero")
logsumexp = _function("logsumexp")
max = _function("max")
mean = _function("mean")
min = _function("min")
prod = _function("prod")
ptp = _function("ptp")
std = _function("std")
sum = _function("sum")
var = _function("var")
var_mean = _function("var_mean")

cumprod = _function("cumprod")
cumsum = _function("cumsum")
cumulative_prod = _function("cumulative_prod")
cumulative_sum = _function("cumulative_sum")
nancumprod = _function("nancumprod")
nancumsum = _function("nancumsum")

layer_norm = _function("layer_norm")
log_softmax = _function("log_softmax")
rms_norm = _function("rms_norm")
softmax = _function("softmax")

broadcast_arrays = _function("broadcast_arrays")
broadcast_to = _function("broadcast_to")
expand_dims = _function("expand_dims")
flip = _function("flip")
fliplr = _function("fliplr")
flipud = _function("flipud")
matrix_transpose = _function("matrix_transpose")
moveaxis = _function("moveaxis")
permute_dims = _function("permute_dims")
squeeze = _function("squeeze")
swapaxes = _function("swapaxes")
transpose = _function("transpose")

astype = _function("astype")
copy = _function("copy")
empty_like = _function("empty_like")
full_like = _function("full_like")
ones_like = _function("ones_like")
result_type = _function("result_type")
zeros_like = _function("zeros_like")
ndim = _function("ndim")
shape = _function("shape")
size = _function("size")

matmul = _function("matmul")

append = _function("append")
array_split = _function("array_split")
atleast_1d = _function("atleast_1d")
atleast_2d = _function("atleast_2d")
atleast_3d = _function("atleast_3d")
block = _function("block")
column_stack = _function("column_stack")
concat = _function("concat")
concatenate = _function("concatenate")
dsplit = _function("dsplit")
dstack = _function("dstack")
hsplit = _function("hsplit")
hstack = _function("hstack")
ravel = _function("ravel")
repeat = _function("repeat")
reshape = _function("reshape")
roll = _function("roll")
split = _function("split")
stack = _function("stack")
take = _function("take")
take_along_axis = _function("take_along_axis")
tile = _function("tile")
tril = _function("tril")
triu = _function("triu")
unstack = _function("unstack")
vsplit = _function("vsplit")
vstack = _function("vstack")
pad = _function("pad", pad_or_crop)


def _creation(name: str) -> Callable[..., Any]:
    """Return a function that makes arrays: traced ones wherever a trace runs."""
    handler = HANDLERS[name]
    plain: Any = getattr(np, name)

    def function(*args: Any, **options: Any) -> Any:
        tracer = current_tracer()
        if tracer is None:
            return plain(*args, **options)
        return handler(tracer, *args, **options)

    return _named(function, name)


arange = _creation("arange")
empty = _creation("empty")
eye = _creation("eye")
full = _creation("full")
identity = _creation("identity")
linspace = _creation("linspace")
ones = _creation("ones")
tri = _creation("tri")
zeros = _creation("zeros")


def asarray(a: Any, dtype: Any = None, *, copy: Any = None, device: Any = None) -> Any:
    """Return ``a`` as an array; a traced array as it is."""
    del device
    if not isinstance(a, Standin):
        return np.asarray(a, dtype, copy=copy)
    tracer = current_tracer()
    if dtype is not None:
        return HANDLERS["astype"](tracer, a, dtype)
    return HANDLERS["copy"](tracer, a) if copy else a


pi, e, inf, nan, newaxis = np.pi, np.e, np.inf, np.nan, None
bool = np.bool
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64 = np.float16, np.float32, np.float64
complex64, complex128 = np.complex64, np.complex128
finfo, iinfo, dtype = np.finfo, np.iinfo, np.dtype

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "all",
    "amax",
    "amin",
    "angle",
    "any",
    "append",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "array_split",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "block",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "cbrt",
    "ceil",
    "clip",
    "column_stack",
    "complex64",
    "complex128",
    "concat",
    "concatenate",
    "conj",
    "conjugate",
    "copy",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "dsplit",
    "dstack",
    "dtype",
    "e",
    "empty",
    "empty_like",
    "equal",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "fabs",
    "finfo",
    "fix",
    "flip",
    "fliplr",
    "flipud",
    "float16",
    "float32",
    "float64",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "full",
    "full_like",
    "gelu",
    "greater",
    "greater_equal",
    "heaviside",
    "hsplit",
    "hstack",
    "hypot",
    "identity",
    "iinfo",
    "imag",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "invert",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "layer_norm",
    "left_shift",
    "less",
    "less_equal",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "moveaxis",
    "multiply",
    "nan",
    "nan_to_num",
    "nancumprod",
    "nancumsum",
    "ndim",
    "negative",
    "newaxis",
    "nextafter",
    "not_equal",
    "ones",
    "ones_like",
    "pad",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "power",
    "prod",
    "ptp",
    "rad2deg",
    "radians",
    "ravel",
    "real",
    "reciprocal",
    "relu",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "right_shift",
    "rint",
    "rms_norm",
    "roll",
    "round",
    "rsqrt",
    "shape",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "size",
    "softmax",
    "softplus",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tile",
    "transpose",
    "tri",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unstack",
    "var",
    "var_mean",
    "vsplit",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]
