# SPDX-License-Identifier: Apache-2.0
"""What is said of loops and branches that have no fused form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import nfuser.compiler.trace.call.tree as tree
import nfuser.config as config
from nfuser.compiler.trace.loops.rewriting.jumps import PREFIX
from nfuser.compiler.trace.standins.asked import AnewError
from nfuser.errors import NfuserError, TraceError, VerifyError

if TYPE_CHECKING:
    from types import FunctionType


_ALL = 2  # of what ``config.Config.verify`` may be
_MEANT = ArithmeticError  # of numbers of Python's, which nfuser computes with
_RUNTIME = Path(__file__).parent  # computes what the user's statements say
_OWN = _RUNTIME.parents[3]
MOST_NESTED = 40
RECURSION = (
    "write a loop, as `while x.sum() > 0`: a function that calls itself until an array "
    f"says that it is done has no end while tracing; found {MOST_NESTED} choices, one "
    "within the other"
)
ASSERTION = (
    "assert it before or after the call, or return the condition: whether it holds is "
    "not known while tracing; expected a condition on sizes, dtypes or numbers of "
    "Python's, found one on the elements of an array"
)
STEP = (
    "write a while loop, as `while k < n: ...; k += step`: the step of a range says "
    "which way it counts, and this one is not known while tracing"
)


def let_through(error: Exception) -> None:
    """Raise ``error`` again if it is no answer to what a body or a branch does.

    Where all is verified, what nfuser's own code raised and did not mean to raise is a
    bug that says so, and not a loop that Python runs turn by turn.
    """
    if isinstance(error, (AnewError, VerifyError)):
        raise error
    if config.current().verify < _ALL or isinstance(error, (NfuserError, _MEANT)):
        return
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    raised = Path(frames.tb_frame.f_code.co_filename if frames is not None else "")
    if _OWN not in raised.parents or _RUNTIME in raised.parents:
        return
    message = f"a trace raised {type(error).__name__}: {error}"
    raise VerifyError(message) from error


def refused(error: Exception) -> NfuserError:
    """Return what a loop raises whose body raised ``error`` while it was traced."""
    if isinstance(error, NfuserError):
        return error
    message = (
        "take it out of the loop, or write nfuser.unroll(range(n)) for a short one: "
        f"its body, which is traced once, raised {type(error).__name__}: {error}"
    )
    return TraceError(message)


def raising(error: Exception) -> TraceError:
    """Return what a branch raises that raised ``error`` while it was traced."""
    what = f"{type(error).__name__}: {error}"
    message = (
        "return the condition, and raise after the call, or look at the array before: "
        "whether this branch runs is not known while tracing, as its condition is "
        "computed of an array; expected branches that compute, found one that raises "
        f"{what}"
    )
    return TraceError(message)


def unequal(complaint: Exception) -> NfuserError:
    """Return what a loop raises that may end before ``complaint`` of its items does."""
    return TraceError(
        "compare the lengths before the loop, and write zip without strict=True: "
        "whether a break comes first is not known while the function is traced; "
        f"expected items of one length, found: {complaint}"
    )


def without_source(function: FunctionType) -> TraceError:
    """Return what is raised for ``function``, whose source is not known."""
    message = (
        f"define {name_of(function)} in a file or a notebook: it may write into an "
        "array from outside, which is followed in its source, and that is not known"
    )
    return TraceError(message)


def name_of(function: Any) -> str:
    """Return how a call of ``function`` is spelled."""
    found = getattr(function, "__qualname__", None) or type(function).__name__
    return f"{found}()"


def labels_of(names: list[str], values: list[Any]) -> list[str]:
    """Return what messages call each item of the values of variables.

    Some variables are those of a function that was written anew, and nobody's else.
    """
    found: list[str] = []
    for name, held in zip(names, values, strict=True):
        label = "a value" if name.startswith(PREFIX) else name
        found += [label] * len(tree.flatten(held)[0])
    return found
