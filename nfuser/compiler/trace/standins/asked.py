# SPDX-License-Identifier: Apache-2.0
"""Somebody asks for the elements of a traced array: who, and what to write instead."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.source_line import (
    is_users,
    library_function,
    running,
    users_frame,
)
from nfuser.errors import NfuserError, TraceError

if TYPE_CHECKING:
    from types import FrameType

MAKERS = (
    *("zeros", "ones", "empty", "full", "eye", "identity"),
    *("zeros_like", "ones_like", "empty_like", "full_like"),
)
RANGES = ("arange", "linspace")
NAMES = ("asarray", "array", "asanyarray", "ascontiguousarray", "asfortranarray")
_FUSED = ("softmax", "log_softmax", "logsumexp")
_NUMPY_NAMES = {
    "fabs": "abs",
    "pow": "power",
    "fsum": "sum",
    "dist": "linalg.norm",
    **{name: f"arc{name[1:]}" for name in ("asin", "acos", "atan", "atan2")},
    **{name: f"arc{name[1:]}" for name in ("asinh", "acosh", "atanh")},
}
TRUTH_OF_AXES = "bool(x), or `if x`, of an array with axes"
_UNKNOWN = "the values of a traced array, which are not known while tracing"


class AnewError(NfuserError):
    """A trace met what one that begins anew can take.

    It ``is_assigned`` to a part of an array that plain NumPy made while tracing, or
    that is from outside: ``outside`` is that array then.
    """

    is_assigned = False
    is_of_loop = False  # or of a branch: the function is to be written anew
    is_of_number = False  # of Python's, taken out of an array
    is_doubt = False  # whether an array was made, or computed of arrays from outside
    outside: Any = None


class ConversionError(AnewError, TraceError):
    """A stand-in met a conversion of NumPy's in a trace that does not take them."""


class UpdateError(AnewError):
    """A tensor that torch made while tracing is written.

    It is no ``TypeError``, after which Python would add in another way.
    """

    is_assigned = True


def ask_to_convert() -> None:
    """Ask for a trace with conversions, if the user's code calls one just now."""
    code = sys._getframe(2).f_code  # pyright: ignore[reportPrivateUsage]
    if is_users(code.co_filename) and any(n in NAMES for n in code.co_names):
        raise ConversionError(str(wanted()))


def ask_to_rewrite() -> None:
    """Ask for a trace in which loops and branches are expressions."""
    raise _made(str(wanted("bool(x), or `if x`,")), is_of_loop=True)


def ask_of_number(what: str) -> None:
    """Ask for a trace in which numbers of Python's are taken out of arrays."""
    raise _made(str(wanted(what)), is_of_number=True)


def ask_to_assign_outside(array: Any) -> None:
    """Ask for a trace in which an array from outside counts as an argument."""
    message = str(wanted("assigning to an array from outside"))
    raise _made(message, is_assigned=True, outside=array)


def ask_of_range(
    frame: FrameType, *, or_table: bool = False, or_length: bool = False
) -> None:
    """Ask for such a trace, if ``frame`` calls ``range``.

    So it may be if it reads a table of NumPy's at places that are traced, or asks for
    a length, of which it may make a range.
    """
    code = frame.f_code
    is_named = "range" in code.co_names
    if not (is_named or or_table) or not is_users(code.co_filename):
        return
    found = running()
    if found is None:
        return
    is_read = found.instruction == "BINARY_SUBSCR" and found.assigned is None
    called = ("range", "len") if or_length else ("range",)
    if (or_table and is_read) or (is_named and found.called in called):
        ask_to_rewrite()


def ask_of_call(name: str) -> None:
    """Ask for such a trace, if the user's code calls what is called so just now."""
    found = running()
    if found is not None and found.called == name:
        ask_to_rewrite()


def wanted(what: str | None = None) -> TraceError:
    """Return the error for a call that asks for the elements of a traced array.

    ``what`` says it in Python's words where no function is called.
    """
    found = running()
    if found is not None and found.assigned is not None:
        return to_be_assigned(_assigned(found.assigned))
    called = None if found is None else found.called
    library = library_function()
    name = (called or library or "").rpartition(".")[2]
    if library is not None:
        return TraceError(_of_library(library, called or library, name))
    if (called or "").startswith("math."):
        return TraceError(_of_math(f"{called}", name))
    if what is not None:
        return TraceError(_of_python(what, name))
    return TraceError(_of_numpy(called, name))


def ask_of_joined() -> None:
    """Ask for such a trace, if NumPy is to make one array of several inside a call.

    ``np.r_`` and ``np.c_`` do, and folds of ufuncs, and no protocol hands them over.
    """
    found, frame = running(), users_frame()
    if found is None or frame is None:
        return
    named = frame.f_code.co_names
    is_read = found.instruction == "BINARY_SUBSCR" and found.assigned is None
    is_fold = (found.called or "").endswith((".reduce", ".accumulate"))
    if is_fold or (is_read and ("r_" in named or "c_" in named)):
        ask_to_rewrite()


_MADE = (
    "make the array with np.zeros, np.full, np.arange or np.array: what else of plain "
    "NumPy's makes an array while tracing gives constants, which traced values cannot "
    "be assigned to"
)


def to_be_assigned(message: str = _MADE) -> ConversionError:
    """Ask for a trace in which arrays that are made inside may be assigned to."""
    return _made(message, is_assigned=True)


def ask_who_made() -> None:
    """Ask for a trace that sees all arrays made inside, so others were computed."""
    raise _made(_MADE, is_doubt=True)


def _made(message: str, **asked: Any) -> ConversionError:
    """Return the error that asks for it; whoever raises it holds it by no name.

    A frame that did would be kept by its traceback, and what the call was given.
    """
    error = ConversionError(message)
    vars(error).update(asked)
    return error


def _assigned(part: str) -> str:
    array = part.partition("[")[0].strip() or "the array"
    return (
        f"build {array} at once in place of {part} = ...: np.concatenate and np.stack "
        "join parts, where(condition, new, x) chooses elements, np.pad adds borders; "
        f"expected numbers, as {array} is an array of plain NumPy's, whose elements "
        "are constants of the trace; found a traced array"
    )


def _of_library(library: str, called: str, name: str) -> str:
    if name in _FUSED:
        return (
            f"write nfuser.numpy.{name} in place of {called}: scipy.special.{name} "
            f"takes no traced array, as it asks for {_UNKNOWN}"
        )
    top = library.partition(".")[0]
    return (
        f"call {called} outside the fused function, or write what it computes with "
        f"NumPy's functions: {top} asks for {_UNKNOWN}"
    )


def _of_math(called: str, name: str) -> str:
    numpys = _NUMPY_NAMES.get(name, name)
    place = "xp" if name in ("erf", "erfc") else "np"
    named = ", where xp is nfuser.numpy" if place == "xp" else ""
    if place == "np" and not hasattr(np, numpys.partition(".")[0]):
        return (
            f"call {called} outside the fused function: it takes one number, and asks "
            f"for {_UNKNOWN}"
        )
    return (
        f"write {place}.{numpys}(x) in place of {called}(x){named}: the function of "
        f"math takes one number, and asks for {_UNKNOWN}"
    )


_CHOICE = (
    "use where(condition, a, b) for a choice, or compute the number outside the fused "
    "function"
)
_INSTEAD = {
    "max": "write np.maximum(a, b) in place of max(a, b), and x.max() for max(x)",
    "min": "write np.minimum(a, b) in place of min(a, b), and x.min() for min(x)",
    "sorted": "write np.sort(x) in place of sorted(x)",
    TRUTH_OF_AXES: "write x.any() or x.all(), or np.where(condition, a, b) for a "
    "choice of each element",
    "int(x)": "write x.astype(int) for an index or a number to compute with, and pass "
    "what is to be a size, as in np.zeros(n) or x[:n], as an argument",
    "float(x)": "leave float() out: a number of an array is computed with as it is",
    "complex(x)": "leave complex() out, or write x + 0j",
    "x.item()": "leave .item() out: a number of an array is computed with as it is",
    "x.tolist()": "return the array, and call .tolist() of what the call returns",
}


def _of_python(what: str, called: str) -> str:
    advice = _INSTEAD.get(called) or _INSTEAD.get(what, _CHOICE)
    return (
        f"{advice}: {what} asks for the value of an array, which is not known while "
        "tracing"
    )


def _of_numpy(called: str | None, name: str) -> str:
    if name in NAMES:
        return (
            f"leave {called} out, or write np.{name} by its full name: a traced array "
            "is an array already, and only names that are looked up in numpy itself "
            "give it back"
        )
    asking = called or "a function that NumPy does not hand over"
    return (
        f"call {asking} outside the fused function, or write it with array operations "
        "(np.stack([x, y]) makes one array of several; a table from outside is indexed "
        f"as nfuser.numpy.asarray(TABLE)[i]): it asks for {_UNKNOWN}"
    )
