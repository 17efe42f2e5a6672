# SPDX-License-Identifier: Apache-2.0
"""The part of the namespace that is made of the rest of it."""

from __future__ import annotations

import numpy as np

from nfuser.trace.numpy.names.eager_or_traced import creation, function

allclose = function("allclose")
argpartition = function("argpartition")
argsort = function("argsort")
array_equal = function("array_equal")
array_equiv = function("array_equiv")
average = function("average")
bincount = function("bincount")
broadcast_shapes = function("broadcast_shapes")
can_cast = function("can_cast")
choose = function("choose")
common_type = function("common_type")
convolve = function("convolve")
corrcoef = function("corrcoef")
correlate = function("correlate")
cov = function("cov")
cross = function("cross")
diag = function("diag")
diagflat = function("diagflat")
diagonal = function("diagonal")
diff = function("diff")
digitize = function("digitize")
dot = function("dot")
ediff1d = function("ediff1d")
einsum = function("einsum")
gradient = function("gradient")
histogram = function("histogram")
histogram2d = function("histogram2d")
histogramdd = function("histogramdd")
i0 = function("i0")
inner = function("inner")
interp = function("interp")
iscomplex = function("iscomplex")
iscomplexobj = function("iscomplexobj")
isin = function("isin")
isreal = function("isreal")
isrealobj = function("isrealobj")
kron = function("kron")
lexsort = function("lexsort")
matvec = function("matvec")
median = function("median")
meshgrid = function("meshgrid")
modf = function("modf")
nanargmax = function("nanargmax")
nanargmin = function("nanargmin")
nanmax = function("nanmax")
nanmean = function("nanmean")
nanmedian = function("nanmedian")
nanmin = function("nanmin")
nanpercentile = function("nanpercentile")
nanprod = function("nanprod")
nanquantile = function("nanquantile")
nanstd = function("nanstd")
nansum = function("nansum")
nanvar = function("nanvar")
outer = function("outer")
partition = function("partition")
percentile = function("percentile")
piecewise = function("piecewise")
polyadd = function("polyadd")
polyder = function("polyder")
polyint = function("polyint")
polysub = function("polysub")
polyval = function("polyval")
quantile = function("quantile")
ravel_multi_index = function("ravel_multi_index")
resize = function("resize")
rollaxis = function("rollaxis")
rot90 = function("rot90")
searchsorted = function("searchsorted")
select = function("select")
sort = function("sort")
tensordot = function("tensordot")
trace = function("trace")
trapezoid = function("trapezoid")
unravel_index = function("unravel_index")
unwrap = function("unwrap")
vander = function("vander")
vdot = function("vdot")
vecdot = function("vecdot")
vecmat = function("vecmat")

bartlett = creation("bartlett")
blackman = creation("blackman")
fromfunction = creation("fromfunction")
geomspace = creation("geomspace")
hamming = creation("hamming")
hanning = creation("hanning")
indices = creation("indices")
kaiser = creation("kaiser")
logspace = creation("logspace")

isdtype, issubdtype, promote_types = np.isdtype, np.issubdtype, np.promote_types

__all__ = [
    "allclose",
    "argpartition",
    "argsort",
    "array_equal",
    "array_equiv",
    "average",
    "bartlett",
    "bincount",
    "blackman",
    "broadcast_shapes",
    "can_cast",
    "choose",
    "common_type",
    "convolve",
    "corrcoef",
    "correlate",
    "cov",
    "cross",
    "diag",
    "diagflat",
    "diagonal",
    "diff",
    "digitize",
    "dot",
    "ediff1d",
    "einsum",
    "fromfunction",
    "geomspace",
    "gradient",
    "hamming",
    "hanning",
    "histogram",
    "histogram2d",
    "histogramdd",
    "i0",
    "indices",
    "inner",
    "interp",
    "iscomplex",
    "iscomplexobj",
    "isdtype",
    "isin",
    "isreal",
    "isrealobj",
    "issubdtype",
    "kaiser",
    "kron",
    "lexsort",
    "logspace",
    "matvec",
    "median",
    "meshgrid",
    "modf",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "outer",
    "partition",
    "percentile",
    "piecewise",
    "polyadd",
    "polyder",
    "polyint",
    "polysub",
    "polyval",
    "promote_types",
    "quantile",
    "ravel_multi_index",
    "resize",
    "rollaxis",
    "rot90",
    "searchsorted",
    "select",
    "sort",
    "tensordot",
    "trace",
    "trapezoid",
    "unravel_index",
    "unwrap",
    "vander",
    "vdot",
    "vecdot",
    "vecmat",
]
