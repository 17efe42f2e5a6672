# SPDX-License-Identifier: Apache-2.0
"""Functions of torch's that make a tensor: of traced sizes, or that is written.

Where all is known, torch itself makes it, as it does what asks for a gradient.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.torch.state import default_float
from nfuser.compiler.trace.torch.words.common import refuse_others, sizes_of
from nfuser.compiler.trace.torch.words.kinds import filled
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.trace.torch.words.common import Word
    from nfuser.compiler.trace.tracer import Tracer


def make(
    t: Tracer, name: str, plain: Callable[..., Any], args: Any, options: dict[str, Any]
) -> Any:
    """Return what ``torch.name(*args, **options)`` makes, as a traced tensor."""
    given = {key: option for key, option in options.items() if option}
    more = given.keys() - {"dtype", "device"}
    if not t.dialect.has_words or more or not _is_here(t, given.get("device")):
        return plain(*args, **options)
    if name in WORDS:
        return WORDS[name](t, *args, **options)
    made = plain(*args, **options)
    if isinstance(made, Standin) or not made.is_floating_point():
        return made  # integers are counters and indices as often as what is added to
    return t.wrap(t.tensor(made)).clone()


def _is_here(t: Tracer, device: Any) -> bool:
    """Tell whether a tensor would be made where the arguments are."""
    torch: Any = sys.modules["torch"]
    wanted = torch.get_default_device() if device is None else torch.device(device)
    here = torch.device(str(t.device))
    return wanted.type == here.type and wanted.index in (None, here.index or 0)


def _check_here(t: Tracer, name: str, device: Any, options: Mapping[str, Any]) -> None:
    refuse_others(name, **options)
    if not _is_here(t, device):
        message = (
            f"write torch.{name}(..., device=x.device): a fused function makes tensors "
            f"where its arguments are, on {t.device}"
        )
        raise UnsupportedError(message)


def _filler(name: str, value: float) -> Word:
    def word(
        t: Tracer, *size: Any, dtype: Any = None, device: Any = None, **options: Any
    ) -> Any:
        _check_here(t, name, device, options)
        return filled(t, sizes_of(size), value, dtype or default_float(t))

    return word


def _full(
    t: Tracer,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    **options: Any,
) -> Any:
    _check_here(t, "full", device, options)
    if dtype is None and isinstance(fill_value, float):
        dtype = default_float(t)
    torch: Any = sys.modules["torch"]
    like = torch.bool if isinstance(fill_value, bool) else torch.int64
    return filled(t, sizes_of((size,)), fill_value, dtype or like)


WORDS: dict[str, Word] = {
    "zeros": _filler("zeros", 0),
    "ones": _filler("ones", 1),
    "empty": _filler("empty", 0),
    "full": _full,
}
MAKERS = (*WORDS, "arange", "linspace", "eye", "tensor")
