# SPDX-License-Identifier: Apache-2.0
"""Keys that generators of torch's give: with ``torch.manual_seed`` a run repeats.

The numbers are those of stream 1 for a key that the generator gives. A generator of the
CPU gives a number, and moves on. One of a GPU is asked nothing of the device: its seed
and offset are the key, and the offset moves on.
"""

# Generators of torch have no static type here.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import hashlib
import sys
from typing import Any

from nfuser.trace.captures.origins import Origin, Root

_MOST = (1 << 63) - 1
_OFFSETS = 4  # torch counts words on a GPU, in blocks


def is_of_torch(item: Any) -> bool:
    """Tell whether ``item`` is a generator of torch's."""
    kind: type[object] = item.__class__
    return kind.__name__ == "Generator" and kind.__module__ == "torch._C"


def key_of_torch(generator: Any) -> int:
    """Return a key that a generator of torch's gives, and advance it."""
    if generator.device.type == "cpu":
        torch = sys.modules["torch"]
        return int(torch.randint(_MOST, (), generator=generator))
    offset = generator.get_offset()
    generator.set_offset(offset + _OFFSETS)
    text = f"{generator.initial_seed()},{offset}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


class _Defaults(dict[Any, Any]):
    """The default generators as a place to read from, by the name of the device."""

    def __getitem__(self, name: str) -> Any:
        """Return the generator that torch has for the device now."""
        torch = sys.modules["torch"]
        device = torch.device(name)
        if device.type == "cpu":
            return torch.default_generator
        return torch.cuda.default_generators[device.index or 0]


_DEFAULTS = _Defaults()


def default_origin(device: Any) -> Origin:
    """Return where the default generator of a device is read."""
    return Origin(Root(_DEFAULTS, str(device)), f"torch's generator of {device}")
