# SPDX-License-Identifier: Apache-2.0
"""Every error that nfuser raises on purpose, one class for each cause.

A message says what was expected, what was found, which operation, on which line of
the user's, and what to do. Each class is also the built-in error that NumPy raises in
the same case, so existing ``except`` clauses keep working.
"""

from __future__ import annotations

from functools import cache

import numpy as np


class NfuserError(Exception):
    """Base of every error that nfuser raises on purpose."""


class ShapeError(NfuserError, ValueError):
    """Sizes or axes do not fit an operation."""


class AxisError(ShapeError, np.exceptions.AxisError):
    """An axis number lies outside the array."""

    __str__ = Exception.__str__  # NumPy's would not show what is added to ``args``


class DTypeError(NfuserError, TypeError):
    """A dtype does not fit an operation, or is not one that nfuser computes with."""


class RangeError(NfuserError, OverflowError):
    """A Python integer does not fit the dtype it takes part in."""


class ArgumentError(NfuserError, TypeError):
    """An argument of an operation, or of a fused function, is not understood."""


class OptionError(ArgumentError, ValueError):
    """An argument has a value that the operation does not know."""


class UnsupportedError(NfuserError, NotImplementedError):
    """The operation has no fused form; the message names the alternative."""


class ChunkedError(UnsupportedError):
    """Something is asked of an array in chunks that takes arrays in memory."""


class MissingError(UnsupportedError, AttributeError):
    """An object has no such part, though it does in a library that users know."""


class TraceError(NfuserError, TypeError):
    """The traced function asks for something that is not known while tracing."""


class LastingEffectError(TraceError):
    """The body of a loop, or a branch, does what must not happen once for all."""


class TraceAttributeError(TraceError, AttributeError):
    """A traced array has no such attribute."""


class UnsupportedAttributeError(UnsupportedError, AttributeError):
    """A method of arrays that has no fused form."""


class EndlessError(TraceError, RecursionError):
    """The traced function calls itself deeper than Python can follow."""


class MutationError(NfuserError, ValueError):
    """The traced function assigns into an input in a way that has no fused form."""


class DeviceError(NfuserError, ValueError):
    """Arrays of one call lie on different devices, or on one that cannot be used."""


class BackendError(NfuserError, RuntimeError):
    """A backend is missing or failed; the message names the remedy."""


class CompileError(NfuserError, RuntimeError):
    """A generated kernel did not compile; this is a bug in nfuser."""


class HostError(NfuserError, RuntimeError):
    """A statement of a host program failed; the cause is the error that it raised."""


def host_error(message: str, cause: BaseException) -> HostError:
    """Return a HostError that is also the built-in error that ``cause`` is, if any."""
    found = (kind for kind in _KINDS if isinstance(cause, kind))
    kind = next(found, None)
    if type(cause).__name__ == "LinAlgError":  # one of NumPy's, which is a ValueError
        kind = type(cause)
    return HostError(message) if kind is None else _of_kind(kind)(message)


# What NumPy raises for what it refuses, the most special first.
_KINDS: tuple[type[Exception], ...] = (
    NotImplementedError,
    OverflowError,
    ZeroDivisionError,
    IndexError,
    TypeError,
    ValueError,
    MemoryError,
)


@cache
def _of_kind(kind: type[Exception]) -> type[HostError]:
    return type("HostError", (HostError, kind), {"__module__": __name__})


class VerifyError(NfuserError, AssertionError):
    """The IR broke an invariant; this is a bug in nfuser, not in the user's code."""


class InterpreterError(VerifyError):
    """An emitted kernel broke a rule that the hardware would not have reported."""
