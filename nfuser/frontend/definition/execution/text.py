# SPDX-License-Identifier: Apache-2.0
"""A definition as Python that makes it again."""

# What users pass to operations has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import cmath
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.concretize import DEFAULT_RESIZE
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.frontend.definition.types import DataType, Scalar, Tensor, data_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.concretize import ResizePolicy
    from nfuser.frontend.definition.types import CallRecord

HEADER = "def nfuser_fusion(fd: FusionDefinition) -> None:"
FOOTER = "with FusionDefinition({}) as fd:\n    nfuser_fusion(fd)\n"


def definition_text(
    records: Sequence[CallRecord], backend: str | None, resize: ResizePolicy
) -> str:
    """Return a program after which ``fd`` is a definition like this one."""
    lines = [f"    {_line(record)}" for record in records] or ["    pass"]
    imports = ["from nfuser import DataType, FusionDefinition"]
    if any("np." in line for line in lines):
        imports.insert(0, "import numpy as np\n")
    if any("ml_dtypes." in line for line in lines):
        imports.insert(0, "import ml_dtypes")
    chosen = [] if backend is None else [f"backend={backend!r}"]
    chosen += [] if resize == DEFAULT_RESIZE else [f"resize={resize!r}"]
    footer = FOOTER.format(", ".join(chosen))
    parts = ["\n".join(imports), "\n".join([HEADER, *lines]), footer]
    return "\n\n\n".join(parts)


def _line(record: CallRecord) -> str:
    passed = [literal(x) for x in record.args]
    passed += [f"{name}={literal(x)}" for name, x in record.options.items()]
    call = f"fd.{record.name}({', '.join(passed)})"
    return call if record.result is None else _assigned(record.result, call)


def _assigned(result: Any, call: str) -> str:
    if isinstance(result, Tensor | Scalar):
        return f"{result.name} = {call}"
    if not result:
        return call
    names = ", ".join(item.name for item in result)
    return f"[{names}] = {call}"


def literal(x: Any) -> str:
    """Return an expression for an argument.

    >>> literal([1, float("nan"), DataType.Half]), literal(np.float32(2))
    ("[1, float('nan'), DataType.Half]", 'np.float32(2.0)')
    """
    match x:
        case Tensor() | Scalar():
            return x.name
        case list():
            return f"[{', '.join(literal(item) for item in x)}]"
        case tuple():
            return f"({''.join(f'{literal(item)}, ' for item in x)})"
        case np.generic():
            return _numpy_literal(x)
        case DType():
            return repr(data_type(x))
        case float() if not math.isfinite(x):
            return f"float({str(x)!r})"
        case complex() if not cmath.isfinite(x) or x.real == 0:
            # A literal sum would lose the sign of a zero, and has no infinity.
            return f"complex({literal(x.real)}, {literal(x.imag)})"
        case _ if not _is_plain(x) and _is_dtype(x):
            return repr(data_type(as_dtype(x)))
        case _:
            return repr(x)


def _numpy_literal(x: np.generic) -> str:
    module = "ml_dtypes" if x.dtype == DType.BF16.numpy else "np"
    number = x.item()
    name = "bool" if isinstance(number, bool) else x.dtype.name
    return f"{module}.{name}({literal(number)})"


def _is_dtype(x: object) -> bool:
    try:
        as_dtype(x)
    except TypeError:
        return False
    return True


def _is_plain(x: object) -> bool:
    return x is None or isinstance(x, bool | int | float | complex | str | DataType)
