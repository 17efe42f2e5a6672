# SPDX-License-Identifier: Apache-2.0
"""The namespace of fused functions: names of NumPy, the array API and a few more.

On traced arrays each function is traced. On NumPy arrays it computes at once, so that
the same code runs unfused. Every function that has a traced form is in it, but for
those that ``_UNLISTED`` names.
"""

# pyright: reportUnsupportedDunderAll=false

from __future__ import annotations

from typing import Any

import numpy as np

import nfuser.compiler.trace.numpy.names.fft as fft
import nfuser.compiler.trace.numpy.names.linalg as linalg
from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.trace.numpy.functions import HANDLERS
from nfuser.compiler.trace.numpy.movement.pads import pad_or_crop
from nfuser.compiler.trace.numpy.names.eager_or_traced import creation, function, ufunc
from nfuser.compiler.trace.numpy.without_axes import is_number, mark
from nfuser.compiler.trace.standins.literals import array_of
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.torch.unfused import on_tensors
from nfuser.compiler.trace.tracer import current_tracer

# Functions that write into an argument, old names, and what has no form for plain
# arrays.
_UNLISTED = frozenset(
    {
        *("copyto", "fill", "fill_diagonal", "place", "put", "put_along_axis"),
        *("putmask", "ndarray", "row_stack", "expit"),
        *("argwhere", "flatnonzero", "nonzero"),
        *("complex_of", "erfcinv", "erfinv", "lgamma", "truth"),
    }
)
_CREATIONS = (
    *("arange", "bartlett", "blackman", "empty", "eye", "fromfunction", "full"),
    *("geomspace", "hamming", "hanning", "identity", "indices", "kaiser", "linspace"),
    *("logspace", "ones", "tri", "zeros"),
)
_UFUNCS = ("add", "maximum", "minimum", "multiply")


def asarray(a: Any, dtype: Any = None, *, copy: Any = None, device: Any = None) -> Any:
    """Return ``a`` as an array; a traced one as it is, and numbers as a constant."""
    del device
    tracer = current_tracer()
    if tracer is None:
        return on_tensors(np.asarray, (a, dtype), {"copy": copy})
    is_array = isinstance(a, Standin) and not is_number(a)
    wanted = None if dtype is None else as_dtype(dtype)
    made = a if is_array else tracer.wrap(array_of(tracer, a, wanted))
    found = made if is_array else mark(made, (), is_array=True)
    if dtype is not None:
        return HANDLERS["astype"](tracer, found, dtype)
    return HANDLERS["copy"](tracer, found) if copy else found


def array(object: Any, dtype: Any = None, *, copy: Any = True) -> Any:  # noqa: A002
    """Return a new array of what ``object`` holds."""
    return asarray(object, dtype, copy=copy)


_NUMBERS = {name: getattr(np, name) for name in ("pi", "e", "inf", "nan", "newaxis")}
_DTYPES = {
    name: getattr(np, name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
        *("dtype", "finfo", "iinfo", "isdtype", "issubdtype", "promote_types"),
    )
}


def _functions() -> dict[str, Any]:
    listed = {name for name in HANDLERS if "." not in name} - _UNLISTED
    return (
        {name: function(name) for name in listed.difference(_CREATIONS, _UFUNCS)}
        | {name: creation(name) for name in _CREATIONS}
        | {name: ufunc(name) for name in _UFUNCS}
        | {"pad": function("pad", pad_or_crop), "array": array, "asarray": asarray}
    )


_NAMES = _functions() | _NUMBERS | _DTYPES | {"fft": fft, "linalg": linalg}
__all__ = sorted(_NAMES)
globals().update(_NAMES)
lib = np.lib  # asked for by xarray; NumPy itself brings its functions here
