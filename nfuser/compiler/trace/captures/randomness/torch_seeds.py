# SPDX-License-Identifier: Apache-2.0
"""Keys that generators of torch's give: with ``torch.manual_seed`` a run repeats.

The numbers are those of stream 1 for a key that the generator gives: a number of the
CPU's, and on a GPU a tensor, which torch's kernel fills and ours reads. So a CUDA graph
gives another one in each replay. Where a number is needed of a generator of a GPU, the
device is not asked: its seed and offset are the key, and the offset moves on.
"""

from __future__ import annotations

import hashlib
import sys
from functools import lru_cache
from typing import Any

from nfuser.compiler.trace.captures.lookup.origin import Origin, Root

_MOST = (1 << 63) - 1
_OFFSETS = 4  # torch counts words on a GPU, in blocks


def is_of_torch(item: Any) -> bool:
    """Tell whether ``item`` is a generator of torch's."""
    kind: type[object] = item.__class__
    return kind.__name__ == "Generator" and kind.__module__ == "torch._C"


def is_on_gpu(item: Any, device: Any) -> bool:
    """Tell whether ``item`` is a generator of torch's for ``device``, a GPU."""
    if not is_of_torch(item) or item.device.type != "cuda":
        return False
    own, torch = item.device, sys.modules["torch"]
    index = torch.cuda.current_device() if own.index is None else own.index
    return str(device) == f"cuda:{index}"


def key_of_torch(generator: Any) -> int:
    """Return a key that a generator of torch's gives, and advance it."""
    if generator.device.type == "cpu":
        torch = sys.modules["torch"]
        return int(torch.randint(_MOST, (), generator=generator))
    offset = generator.get_offset()
    generator.set_offset(offset + _OFFSETS)
    text = f"{generator.initial_seed()},{offset}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def tensor_of_torch(generator: Any) -> Any:
    """Return a key on the device of a generator of torch's, and advance it."""
    torch = sys.modules["torch"]
    device = generator.device
    return torch.randint(_MOST, (), device=device, generator=generator)


@lru_cache
def like_a_key(device: Any) -> Any:
    """Return a tensor that is described as a key on a device is."""
    torch = sys.modules["torch"]
    return torch.zeros((), dtype=torch.int64, device=device)


class _Likes(dict[Any, Any]):
    """The same as a place to read from, by the device and the slot of the key."""

    def __getitem__(self, key: tuple[Any, int]) -> Any:
        """Return a tensor like the key that a call is given in a slot."""
        return like_a_key(key[0])


_LIKES = _Likes()


def key_origin(device: Any, slot: int) -> Origin:
    """Return where a tensor is read that is like the key in ``slot``."""
    return Origin(Root(_LIKES, (device, slot)), f"a key of torch's on {device}")


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
