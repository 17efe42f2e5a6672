# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: A001, A002, F403 (names are those of NumPy and the array API)
"""The namespace of fused functions: names of NumPy, the array API and a few more.

On traced arrays each function is traced. On NumPy arrays it computes at once, so that
the same code runs unfused.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np

import nfuser.trace.numpy.names.composed_names as composed_names
import nfuser.trace.numpy.names.fft as fft
import nfuser.trace.numpy.names.linalg as linalg
from nfuser.trace.numpy.functions import HANDLERS
from nfuser.trace.numpy.movement.pads import pad_or_crop
from nfuser.trace.numpy.names.composed_names import *
from nfuser.trace.numpy.names.eager_or_traced import creation, function, ufunc
from nfuser.trace.numpy.without_axes import is_number, mark
from nfuser.trace.standins.literals import array_of
from nfuser.trace.standins.standin import Standin
from nfuser.trace.torch.unfused import on_tensors
from nfuser.trace.tracer import current_tracer

lib = np.lib  # asked for by xarray; NumPy itself brings its functions here
abs = function("abs")
absolute = function("absolute")
acos = function("acos")
acosh = function("acosh")
add = ufunc("add")
angle = function("angle")
arccos = function("arccos")
arccosh = function("arccosh")
arcsin = function("arcsin")
arcsinh = function("arcsinh")
arctan = function("arctan")
arctan2 = function("arctan2")
arctanh = function("arctanh")
around = function("around")
asin = function("asin")
asinh = function("asinh")
atan = function("atan")
atan2 = function("atan2")
atanh = function("atanh")
bitwise_and = function("bitwise_and")
bitwise_invert = function("bitwise_invert")
bitwise_left_shift = function("bitwise_left_shift")
bitwise_not = function("bitwise_not")
bitwise_or = function("bitwise_or")
bitwise_right_shift = function("bitwise_right_shift")
bitwise_xor = function("bitwise_xor")
cbrt = function("cbrt")
ceil = function("ceil")
clip = function("clip")
conj = function("conj")
conjugate = function("conjugate")
copysign = function("copysign")
cos = function("cos")
cosh = function("cosh")
deg2rad = function("deg2rad")
degrees = function("degrees")
divide = function("divide")
divmod = function("divmod")
equal = function("equal")
erf = function("erf")
erfc = function("erfc")
exp = function("exp")
exp2 = function("exp2")
expm1 = function("expm1")
fabs = function("fabs")
fix = function("fix")
float_power = function("float_power")
floor = function("floor")
floor_divide = function("floor_divide")
fmax = function("fmax")
fmin = function("fmin")
fmod = function("fmod")
gcd = function("gcd")
gelu = function("gelu")
greater = function("greater")
greater_equal = function("greater_equal")
heaviside = function("heaviside")
hypot = function("hypot")
imag = function("imag")
invert = function("invert")
isclose = function("isclose")
isfinite = function("isfinite")
isinf = function("isinf")
isnan = function("isnan")
isneginf = function("isneginf")
isposinf = function("isposinf")
lcm = function("lcm")
ldexp = function("ldexp")
left_shift = function("left_shift")
less = function("less")
less_equal = function("less_equal")
log = function("log")
log10 = function("log10")
log1p = function("log1p")
log2 = function("log2")
logaddexp = function("logaddexp")
logaddexp2 = function("logaddexp2")
logical_and = function("logical_and")
logical_not = function("logical_not")
logical_or = function("logical_or")
logical_xor = function("logical_xor")
maximum = ufunc("maximum")
minimum = ufunc("minimum")
mod = function("mod")
multiply = ufunc("multiply")
nan_to_num = function("nan_to_num")
negative = function("negative")
nextafter = function("nextafter")
not_equal = function("not_equal")
positive = function("positive")
pow = function("pow")
power = function("power")
rad2deg = function("rad2deg")
radians = function("radians")
real = function("real")
reciprocal = function("reciprocal")
relu = function("relu")
remainder = function("remainder")
right_shift = function("right_shift")
rint = function("rint")
round = function("round")
rsqrt = function("rsqrt")
sigmoid = function("sigmoid")
sign = function("sign")
signbit = function("signbit")
silu = function("silu")
sin = function("sin")
sinc = function("sinc")
sinh = function("sinh")
softplus = function("softplus")
sqrt = function("sqrt")
square = function("square")
subtract = function("subtract")
tan = function("tan")
tanh = function("tanh")
true_divide = function("true_divide")
trunc = function("trunc")
where = function("where")

all = function("all")
any = function("any")
amax = function("amax")
amin = function("amin")
argmax = function("argmax")
argmin = function("argmin")
count_nonzero = function("count_nonzero")
logsumexp = function("logsumexp")
max = function("max")
mean = function("mean")
min = function("min")
prod = function("prod")
ptp = function("ptp")
std = function("std")
sum = function("sum")
var = function("var")
var_mean = function("var_mean")

cumprod = function("cumprod")
cumsum = function("cumsum")
cumulative_prod = function("cumulative_prod")
cumulative_sum = function("cumulative_sum")
nancumprod = function("nancumprod")
nancumsum = function("nancumsum")

layer_norm = function("layer_norm")
log_softmax = function("log_softmax")
rms_norm = function("rms_norm")
softmax = function("softmax")

broadcast_arrays = function("broadcast_arrays")
broadcast_to = function("broadcast_to")
expand_dims = function("expand_dims")
flip = function("flip")
fliplr = function("fliplr")
flipud = function("flipud")
matrix_transpose = function("matrix_transpose")
moveaxis = function("moveaxis")
permute_dims = function("permute_dims")
squeeze = function("squeeze")
swapaxes = function("swapaxes")
transpose = function("transpose")

astype = function("astype")
copy = function("copy")
empty_like = function("empty_like")
full_like = function("full_like")
ones_like = function("ones_like")
result_type = function("result_type")
zeros_like = function("zeros_like")
ndim = function("ndim")
shape = function("shape")
size = function("size")

matmul = function("matmul")

append = function("append")
array_split = function("array_split")
atleast_1d = function("atleast_1d")
atleast_2d = function("atleast_2d")
atleast_3d = function("atleast_3d")
block = function("block")
column_stack = function("column_stack")
concat = function("concat")
concatenate = function("concatenate")
dsplit = function("dsplit")
dstack = function("dstack")
hsplit = function("hsplit")
hstack = function("hstack")
ravel = function("ravel")
repeat = function("repeat")
reshape = function("reshape")
roll = function("roll")
split = function("split")
stack = function("stack")
take = function("take")
take_along_axis = function("take_along_axis")
tile = function("tile")
tril = function("tril")
triu = function("triu")
unstack = function("unstack")
vsplit = function("vsplit")
vstack = function("vstack")
pad = function("pad", pad_or_crop)

arange = creation("arange")
empty = creation("empty")
eye = creation("eye")
full = creation("full")
identity = creation("identity")
linspace = creation("linspace")
ones = creation("ones")
tri = creation("tri")
zeros = creation("zeros")


def asarray(a: Any, dtype: Any = None, *, copy: Any = None, device: Any = None) -> Any:
    """Return ``a`` as an array; a traced one as it is, and numbers as a constant."""
    del device
    tracer = current_tracer()
    if tracer is None:
        return on_tensors(np.asarray, (a, dtype), {"copy": copy})
    is_array = isinstance(a, Standin) and not is_number(a)
    made = a if is_array else tracer.wrap(array_of(tracer, a))
    found = made if is_array else mark(made, (), is_array=True)
    if dtype is not None:
        return HANDLERS["astype"](tracer, found, dtype)
    return HANDLERS["copy"](tracer, found) if copy else found


def array(object: Any, dtype: Any = None, *, copy: Any = True) -> Any:
    """Return a new array of what ``object`` holds."""
    return asarray(object, dtype, copy=copy)


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
    "around",
    "array",
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
    "fft",
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
    "gcd",
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
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "linalg",
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
__all__ += composed_names.__all__
