# SPDX-License-Identifier: Apache-2.0
"""What torch keeps for a process or a thread that changes what an operation means.

A trace that depends on it is told, as of a global that it read.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.trace.captures.lookup.origin import Origin, Root
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


class _Autocast(dict[Any, Any]):
    """Whether autocast is on, by kind of device, as a place to read from."""

    def __getitem__(self, kind: str) -> bool:
        """Return the state now."""
        return sys.modules["torch"].is_autocast_enabled(kind)


class _Default(dict[Any, Any]):
    """The default dtype as a place to read from."""

    def __getitem__(self, _: str) -> str:
        """Return its name now."""
        return str(sys.modules["torch"].get_default_dtype())


_AUTOCAST, _DEFAULT = _Autocast(), _Default()
# In half precision, on a GPU: autocast gives them in float32.
_WIDENED = frozenset(["sum", "prod", "cumsum", "cumprod", "power", "divide"])


def default_float(t: Tracer) -> DType:
    """Return the dtype that torch gives a Python float, and a quotient of integers."""
    name = _DEFAULT["dtype"]
    t.note(Origin(Root(_DEFAULT, "dtype"), "torch.get_default_dtype()"), name)
    return as_dtype(getattr(sys.modules["torch"], name.removeprefix("torch.")))


def check_autocast(t: Tracer, name: str, *dtypes: DType) -> None:
    """Refuse an operation whose dtype autocast changes, while it is on.

    That is a product of matrices, and in 16 bits what loses digits.
    """
    is_half = any(d in (DType.F16, DType.BF16) for d in dtypes)
    is_product = name == "matmul" and any(d.is_float for d in dtypes)
    if not is_product and not (name in _WIDENED and is_half):
        return
    kind = str(getattr(t.device, "type", "cpu"))
    is_on = _AUTOCAST[kind]
    t.note(Origin(Root(_AUTOCAST, kind), f"torch.is_autocast_enabled({kind!r})"), is_on)
    if not is_on:
        return
    what = "@" if name == "matmul" else name
    message = (
        f"write `with torch.autocast({kind!r}, enabled=False):` around the call, and "
        f"x.astype(dtype) where another dtype is wanted: autocast would change that of "
        f"{what}, and a fused function computes in the dtypes of its arrays"
    )
    raise UnsupportedError(message)
