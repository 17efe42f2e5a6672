# SPDX-License-Identifier: Apache-2.0
"""Arrays that a caller has made for the outputs of a call."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from nfuser.execution.device.describe.descriptor import Descriptor, describe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.execution.runtime.call import DescribedCall

Ready: TypeAlias = "Mapping[int, tuple[Any, Descriptor]]"
NOTHING_READY: Ready = MappingProxyType({})


def apart(call: DescribedCall, outputs: Sequence[Any]) -> Ready:
    """Return the outputs that kernels may write, each with what it is, by number."""
    if all(array is None for array in outputs):
        return NOTHING_READY
    taken = [describe(array, "an input") for array in call.arrays.values()]
    homes = {(d.library, d.device) for d in taken}
    ready: dict[int, tuple[Any, Descriptor]] = {}
    for number, array in enumerate(outputs):
        if array is None:
            continue
        d = describe(array, f"output {number}")
        sizes = zip(d.shape, d.strides, strict=True)
        is_apart = not any(d.meets(other) for other in taken)
        is_apart &= all(n == 1 or step for n, step in sizes)
        if d.writable and is_apart and {(d.library, d.device)} == homes:
            # What the kernel depends on, and no more: the address is another each time.
            ready[number] = array, replace(d, pointer=d.pointer & 15)
        taken.append(d)
    return ready
