# SPDX-License-Identifier: Apache-2.0
"""What ``fd.ops`` has, as the code tells it."""

# The table is made of operations of many forms.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import inspect

from nfuser.frontend.definition.operations.creation import CREATION
from nfuser.frontend.definition.operations.gathers import GATHERS
from nfuser.frontend.definition.operations.moves import MOVES
from nfuser.frontend.definition.operations.ops import BINARY, GENERAL, TABLE, UNARY
from nfuser.frontend.definition.operations.scans import SCANS
from nfuser.frontend.definition.operations.shapes import SHAPES
from nfuser.frontend.definition.types import DataType

_REDUCTIONS = {
    *("all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min"),
    *("prod", "ptp", "std", "sum", "var", "var_mean", "welford"),
}
_NORMS = {"layer_norm", "log_softmax", "logsumexp", "rms_norm", "softmax"}
_AXES = {"expand_dims", "flip", "moveaxis", "swapaxes"}


def families() -> dict[str, list[str]]:
    """Return all operations, by what they do."""
    rest = [n for n in GENERAL if n not in {*_REDUCTIONS, *_NORMS, *_AXES, "full_like"}]
    listed = {*UNARY, *BINARY, *SHAPES, *MOVES, *GATHERS, *CREATION, *GENERAL, *SCANS}
    several = [n for n in TABLE if n not in listed | _REDUCTIONS]
    return {
        "Of one tensor": list(UNARY),
        "Of two": list(BINARY),
        "Elementwise, with arguments": [*several, *rest],
        "Reductions and norms": [*_REDUCTIONS, *_NORMS],
        "Scans": list(SCANS),
        "Axes and sizes": [*SHAPES, *_AXES],
        "Moves": list(MOVES),
        "Indices": list(GATHERS),
        "Arrays of numbers": [*CREATION, "full_like"],
    }


def arguments_of(name: str) -> str:
    """Return the signature without the first argument, types and wide defaults."""
    taken = list(inspect.signature(TABLE[name]).parameters.values())[1:]
    shown: list[str] = []
    for one in taken:
        if one.kind is one.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        if one.default is one.empty:
            shown.append(one.name)
        else:
            null = one.default is DataType.Null
            shown.append(f"{one.name}={'None' if null else repr(one.default)}")
    return f"({', '.join(shown)})"


def means(name: str) -> str:
    """Return the first sentence of what an operation says of itself."""
    text = inspect.getdoc(TABLE[name]) or ""
    line = " ".join(text.partition("\n\n")[0].split()).rstrip(".")
    return line.replace("``", "`").replace("|", "\\|")
